#!/usr/bin/env bash
# On a machine with an NVIDIA card: builds trajscope with `cuda,flash-attn`, holds it to PyTorch's numbers, and measures
# tokens per second and the share of the card's bf16 peak on random weights of 0.5B, 4B and 32B shapes. In under eight
# minutes, the build not counted.
#
#   tests/gpu/run.sh [OUT]
#
# OUT (default target/gpu-run) gets one JSON file a step and a summary. TRAJSCOPE_BIN=FILE takes a program that was built
# elsewhere (with tests/gpu/compile.sh's toolkit: then it runs on every driver for CUDA 13), for machines without cargo
# or network. TRAJSCOPE_FEATURES (default cuda,flash-attn) says what to build. TRAJSCOPE_REFS=DIR adds the checkpoints
# that shared/tools/make_reference.py wrote.
#
# Exit 1: a value is too far from PyTorch's. A shape for which the card is too small is said and left out.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${1:-target/gpu-run}
mkdir -p "$out"
started=$SECONDS
failed=0

nvidia-smi --query-gpu=name,memory.total,memory.free,driver_version,clocks.max.sm --format=csv | tee "$out/card.csv"

program=${TRAJSCOPE_BIN:-}
if [ -z "$program" ]; then
    cargo build --release --features "${TRAJSCOPE_FEATURES:-cuda,flash-attn}" --bin trajscope || exit 2
    program=${CARGO_TARGET_DIR:-target}/release/trajscope
    started=$SECONDS
fi
# The libraries of CUDA that the program is linked to; Python's packages carry them where no toolkit is installed.
if ! "$program" --version > /dev/null 2>&1; then
    found=$(python3 -c 'import nvidia, os; print(":".join(os.path.join(p, d, "lib") for p in nvidia.__path__
        for d in sorted(os.listdir(p)) if os.path.isdir(os.path.join(p, d, "lib"))))' 2> /dev/null || true)
    export LD_LIBRARY_PATH=/usr/local/cuda/lib64:$found${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
"$program" --version || exit 2
"$program" doctor | tee "$out/doctor.txt"

# Text of a step's result, or why there is none.
step() {
    local name=$1
    shift
    local begun=$SECONDS
    echo "== $name"
    timeout "${STEP_SECONDS:-120}" "$program" "$@" > "$out/$name.json" 2> "$out/$name.err"
    local code=$?
    cat "$out/$name.json"
    [ -s "$out/$name.err" ] && sed 's/^/   /' "$out/$name.err"
    echo "   ($((SECONDS - begun)) s, exit $code)"
    return $code
}

# Values: f32 by the tolerance of the CPU; halves by `verify`'s own for the type.
for folder in tests/fixtures/engine/*/ ${TRAJSCOPE_REFS:+"$TRAJSCOPE_REFS"/*/}; do
    [ -e "$folder/reference.json" ] || continue
    name=$(basename "$folder")
    STEP_SECONDS=60 step "verify-f32-$name" verify "$folder" --device cuda --dtype f32 --json || failed=1
    STEP_SECONDS=60 step "verify-f32-chunk-$name" verify "$folder" --device cuda --dtype f32 --chunk 64 --json || failed=1
    STEP_SECONDS=60 step "verify-bf16-$name" verify "$folder" --device cuda --dtype bf16 --json || failed=1
    # The checks may take half of the time.
    [ $((SECONDS - started)) -lt 240 ] || { echo "stopped checking values after four minutes"; break; }
done

for shape in 0.5b 4b 32b; do
    step "bench-$shape" bench --random "$shape" --device cuda --tokens 512,2048,8192,32768 --json || echo "   $shape: not measured"
    [ $((SECONDS - started)) -lt 460 ] || { echo "stopped measuring after eight minutes"; break; }
done

{
    echo "seconds: $((SECONDS - started))"
    echo "values: $([ $failed = 0 ] && echo good || echo WRONG)"
} | tee "$out/summary.txt"
exit $failed
