#!/usr/bin/env bash
# Install a real SGLang 0.5.23 that runs on a CPU, into DIR (default: ~/.cache/sgmon/real-server). About 3.5 GB, some minutes.
# Needs Python 3.11 on x86_64. The only part that is not real is sgl_kernel, which has no CPU build on PyPI:
# stub/ stands in for it in pure torch (a machine without AMX calls one function of it).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-${SGMON_REAL_SERVER:-${XDG_CACHE_HOME:-$HOME/.cache}/sgmon/real-server}}
mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
python=${PYTHON311:-python3.11}
command -v "$python" >/dev/null || python=python3
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
    echo "the real server needs Python 3.11 on x86_64 (PYTHON311=/path/to/python3.11)" >&2; exit 1; }
"$python" -m venv "$dir/venv"
pip="$dir/venv/bin/pip"
echo 'torch==2.13.0' > "$dir/constraints.txt"
"$pip" install -q torch==2.13.0
"$pip" install -q -c "$dir/constraints.txt" -r "$here/deps.txt"
"$pip" install -q --no-deps outlines==0.1.11 outlines_core==0.1.26 xgrammar==0.2.7 compressed-tensors==0.18.0 \
    timm==1.0.25 torch_memory_saver triton torchvision==0.28.0 sglang==0.5.23
site=$("$dir/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
cp -r "$here/stub/sgl_kernel" "$site/"
"$dir/venv/bin/python" "$here/torchvision_ops.py"
# A model of random weights in several shards: make_model.py DIR HIDDEN LAYERS INTERMEDIATE MAX_SHARD [VOCAB]
"$dir/venv/bin/python" "$here/make_model.py" "$dir/models/tiny" 256 2 512 800KB
"$dir/venv/bin/python" "$here/make_model.py" "$dir/models/mid" 2048 12 8192 300MB 32000
echo "installed in $dir"
