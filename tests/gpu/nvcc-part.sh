#!/usr/bin/env bash
# Stands in for nvcc in compile.sh, for candle-flash-attn alone: compiles the kernels named in TRAJSCOPE_KERNELS
# (an extended regular expression on file names) for real, and instead of every other one a function that stops the
# program and says why. All of them together take hours on two cores. Never part of a product build.
set -euo pipefail
out= source=
arguments=("$@")
for ((i = 0; i < ${#arguments[@]}; i++)); do
    case ${arguments[i]} in
        -o) out=${arguments[i + 1]} ;;
        *.cu) source=${arguments[i]} ;;
    esac
done
name=$(basename "${source:-none}" .cu)
if [[ $name != flash_fwd_* ]] || [[ $name =~ ${TRAJSCOPE_KERNELS:?} ]]; then
    [[ $name == none ]] || echo "$name" >> "${TRAJSCOPE_KERNELS_LOG:-/dev/null}"
    exec "${TRAJSCOPE_NVCC:?}" "$@"
fi
# flash_fwd[_splitkv]_hdim128_bf16[_causal]_sm80
[[ $name =~ ^flash_fwd_(splitkv_)?hdim([0-9]+)_(bf16|fp16)_(causal_)?sm80$ ]]
split=${BASH_REMATCH[1]} dim=${BASH_REMATCH[2]} causal=$([[ ${BASH_REMATCH[4]} ]] && echo true || echo false)
type=$([[ ${BASH_REMATCH[3]} == bf16 ]] && echo cutlass::bfloat16_t || echo cutlass::half_t)
function=$([[ $split ]] && echo run_mha_fwd_splitkv_paged_ || echo run_mha_fwd_)
# Declarations as in kernels/flash.h; a name is all that these types must have.
c++ -x c++ -fPIC -c -o "$out" - <<END
#include <cstdio>
#include <cstdlib>
struct CUstream_st;
struct Flash_fwd_params;
namespace cutlass { struct half_t; struct bfloat16_t; }
template<typename T, int Headdim, bool Is_causal> void $function(Flash_fwd_params &params, CUstream_st *stream);
template<> void $function<$type, $dim, $causal>(Flash_fwd_params &, CUstream_st *) {
    std::fprintf(stderr, "$name was left out of this build (tests/gpu/nvcc-part.sh)\n");
    std::abort();
}
END
