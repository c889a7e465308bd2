#!/usr/bin/env bash
# serve.sh DIR MODEL [any vllm flag ...]     e.g.  serve.sh ./vllm-cpu tiny -tp 2 --port 31100 > server.log 2>&1
set -euo pipefail
dir=$(cd "$1" && pwd); model=$2; shift 2
unset PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
# Else the CPU backend gives each rank a NUMA node of its own, and a machine with one node has room for one rank.
export VLLM_CPU_OMP_THREADS_BIND="${VLLM_CPU_OMP_THREADS_BIND-nobind}" OMP_NUM_THREADS="${OMP_NUM_THREADS-1}"
export VLLM_CACHE_ROOT="${VLLM_CACHE_ROOT-$dir/cache}" TORCHINDUCTOR_CACHE_DIR="${TORCHINDUCTOR_CACHE_DIR-$dir/cache/inductor}"
cd "$dir"
case $model in /*) ;; *) model=models/$model;; esac
exec "$dir/venv/bin/python" "$dir/venv/bin/vllm" serve "$model" --max-model-len 512 --max-num-seqs 4 \
    --kv-cache-memory-bytes 67108864 --enforce-eager "$@"
