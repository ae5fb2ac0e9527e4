#!/usr/bin/env bash
# Compiles and links trajscope with `--features cuda` on a machine without a GPU and without CUDA: everything comes from
# PyPI and crates.io (see toolkit.sh). Slow (every kernel of candle: about nine minutes on two quiet cores), so not part
# of CI.
#
#   tests/gpu/compile.sh            checks and links with `cuda`, and runs the program: it must say that no card answers
#                                   and go on with the CPU
#   tests/gpu/compile.sh flash      the same with `flash-attn`. Of its 53 kernel files those that trajscope's models
#                                   need are compiled (head widths 64 and 128, causal); TRAJSCOPE_KERNELS=. compiles all
#   tests/gpu/compile.sh metal      type-checks the Rust code of `metal` for Apple's processors (needs rustup; shaders are
#                                   compiled on the Mac, when the program runs)
#
# TRAJSCOPE_CUDA_DIR = where the toolkit goes (default target/gpu), CUDA_COMPUTE_CAP = the card (default 90: H100, H200).
set -euo pipefail
cd "$(dirname "$0")/../.."
export TRAJSCOPE_CUDA_DIR=${TRAJSCOPE_CUDA_DIR:-$PWD/target/gpu}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$TRAJSCOPE_CUDA_DIR/target}
if [ "${1:-}" = metal ]; then
    rustup target add aarch64-apple-darwin
    exec cargo check --target aarch64-apple-darwin --features metal
fi
. tests/gpu/toolkit.sh

features=cuda
if [ "${1:-}" = flash ]; then
    features=cuda,flash-attn
    # cudaforge takes the compiler that NVCC names, and the headers beside it.
    mkdir -p "$TRAJSCOPE_CUDA_DIR/part/bin"
    ln -sfn "$CUDA_HOME/include" "$TRAJSCOPE_CUDA_DIR/part/include"
    ln -sf "$PWD/tests/gpu/nvcc-part.sh" "$TRAJSCOPE_CUDA_DIR/part/bin/nvcc"
    export TRAJSCOPE_NVCC=$CUDA_HOME/bin/nvcc NVCC=$TRAJSCOPE_CUDA_DIR/part/bin/nvcc
    export TRAJSCOPE_KERNELS=${TRAJSCOPE_KERNELS:-'^flash_fwd_hdim(64|128)_(bf16|fp16)_causal_sm80$'}
    export TRAJSCOPE_KERNELS_LOG=$TRAJSCOPE_CUDA_DIR/kernels-compiled.txt
fi

echo "== cargo check --features $features"
cargo check --features "$features" --all-targets
echo "== cargo build --features $features"
cargo build --features "$features" --bin trajscope
binary=$CARGO_TARGET_DIR/debug/trajscope
ls -l "$binary"
ldd "$binary" | grep -E 'cuda|cublas|curand|nvrtc' || true

echo "== without a driver"
export LD_LIBRARY_PATH=$TRAJSCOPE_CUDA_DIR/driver-stub:$CUDA_HOME/lib
"$binary" doctor
echo "ok"
