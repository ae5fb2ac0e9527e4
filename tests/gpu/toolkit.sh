#!/usr/bin/env bash
# CUDA's compiler and libraries from PyPI, for machines without the toolkit and without a GPU. Sourced by compile.sh:
# sets CUDA_HOME and its kin, so that `cargo check|build --features cuda` works from here on.
#
# The version is 13.0 on purpose: what nvcc 13.0 makes runs on every driver for CUDA 13 (580 and later), what 13.2
# makes does not: a driver refuses newer PTX, and it lacks the newer functions that cudarc would then bind.
set -euo pipefail

where=${TRAJSCOPE_CUDA_DIR:-$PWD/target/gpu}
packages=(
    nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-cuda-nvrtc==13.0.88
    nvidia-cublas==13.0.2.14 nvidia-curand==10.4.0.35
    nvidia-cutlass==4.2.0.0
)
mkdir -p "$where"
if ! [ -x "$where/venv/bin/pip" ]; then
    python3 -m venv "$where/venv"
fi
"$where/venv/bin/pip" install -q --no-deps --disable-pip-version-check "${packages[@]}"
site=$("$where/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
cuda=$site/nvidia/cu13

# The packages carry only lib*.so.N; linkers want lib*.so.
for library in cublas cublasLt cudart curand nvrtc; do
    file=$(cd "$cuda/lib" && ls "lib$library.so."[0-9]* | head -1)
    ln -sf "$file" "$cuda/lib/lib$library.so"
done
ln -sfn lib "$cuda/lib64"

# The driver's library belongs to the driver. To link, a stand-in with the same names is enough; every function of it
# answers CUDA_ERROR_STUB_LIBRARY (34), as NVIDIA's own stub does.
cargo fetch -q
version=$(sed -n '/^name = "cudarc"/{n;s/version = "\(.*\)"/\1/p}' Cargo.lock)
bindings=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/cudarc-"$version"/src/driver/sys/mod.rs | head -1)
mkdir -p "$where/driver-stub"
grep -oE 'pub unsafe fn cu[A-Za-z0-9_]+' "$bindings" | sed 's/.* //' | sort -u |
    sed 's/.*/int &(void) { return 34; }/' > "$where/driver-stub/stub.c"
cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$where/driver-stub/libcuda.so.1" "$where/driver-stub/stub.c"
ln -sf libcuda.so.1 "$where/driver-stub/libcuda.so"

# candle-flash-attn fetches CUTLASS from GitHub unless it finds it, at its commit, in cudaforge's cache. NVIDIA's own
# package on PyPI has the headers (4.2.0): they are put there under that commit's name.
flash_version=$(sed -n '/^name = "candle-flash-attn"/{n;s/version = "\(.*\)"/\1/p}' Cargo.lock)
flash=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/candle-flash-attn-"$flash_version" | head -1)
commit=$(sed -n 's/^const CUTLASS_COMMIT: &str = "\(.*\)";/\1/p' "$flash/build.rs")
export CUDAFORGE_HOME=${CUDAFORGE_HOME:-$where/cudaforge}
cutlass=$CUDAFORGE_HOME/git/checkouts/cutlass-${commit:0:16}
if ! [ -e "$cutlass/include" ]; then
    mkdir -p "$cutlass/tools/util"
    git -C "$cutlass" init -q
    echo "$commit" > "$cutlass/.git/HEAD"
    ln -sfn "$site/cutlass_library/source/include" "$cutlass/include"
fi

export CUDA_HOME=$cuda CUDA_PATH=$cuda CUDA_ROOT=$cuda CUDA_TOOLKIT_ROOT_DIR=$cuda
export PATH=$cuda/bin:$PATH
export CUDA_COMPUTE_CAP=${CUDA_COMPUTE_CAP:-90}
export LIBRARY_PATH=$where/driver-stub:$cuda/lib${LIBRARY_PATH:+:$LIBRARY_PATH}
