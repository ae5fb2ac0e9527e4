#!/bin/bash
# Everything that README says about the engine's speed, on one machine in one go (quiet, please: 20 to 40 minutes).
#   benches/compare.sh [DIR] [PYTHON]
# DIR: a checkpoint of Qwen2.5-0.5B's shape; written with random weights (1.4 GB) if it is not there.
# PYTHON: one with torch and transformers; llama.cpp is measured too if LLAMA_PY names a folder that holds the packages
# llama-cpp-cffi, gguf, cffi and pycparser (pip install --no-deps --target FOLDER ...).
set -e
cd "$(dirname "$0")/.."
model=${1:-/tmp/trajscope-bench-05b} python=${2:-python3}
uptime
cargo bench --no-run --bench engine 2>&1 | tail -1
bench=$(ls -t target/release/deps/engine-* | grep -v '\.d$' | head -1)
tiny=/tmp/trajscope-bench-tiny
"$python" benches/peer_torch.py "$tiny" --make tiny --bench "$bench" --tokens 512,2048,8192 --threads 1,2 --rounds 5
"$python" benches/peer_torch.py "$model" --make 0.5b --bench "$bench" --tokens 512,2048 --threads 1,2 --rounds 5
"$python" benches/peer_torch.py "$model" --bench "$bench" --tokens 8192 --threads 1,2 --rounds 3
if [ -n "$LLAMA_PY" ]; then
    PYTHONPATH=$LLAMA_PY "$python" benches/peer_llama.py "$model" --bench "$bench" --tokens 512,2048 --threads 1,2 --rounds 3
fi
TRAJSCOPE_BENCH_MODEL=$tiny "$bench" --strategy
TRAJSCOPE_BENCH_MODEL=$tiny "$bench" --long
