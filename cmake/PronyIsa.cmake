# Instruction-set levels of the target architecture: the one list of variants that *_simd.c and *_dot_simd.c are compiled for.
# base/cpu/simd.h lists the same variants for the choice at run time; base/cpu/isa_x86.c and base/cpu/isa_arm64.c detect them.
#
#   PRN_ARCHITECTURE          x86_64, arm64 or other
#   prn_simd_variants         variants of all *_simd.c, narrowest first
#   prn_simd_dot_variants     more variants of *_dot_simd.c
#   prn_simd_VARIANT_options  compiler options of a variant
#   prn_architecture_options  compiler options of every C source
#   prn_scalar_loops          compiler options of C sources that are neither operators nor kernels
#
# An architecture that is not named here gets the variant `scalar`: vectors of 128 bits as the compiler makes them.

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(PRN_ARCHITECTURE x86_64)
  set(prn_simd_variants scalar avx2 avx512)
  set(prn_simd_dot_variants vnni bf16 amx)
  set(prn_simd_avx2_options -mavx2 -mfma -mf16c -mbmi2)
  set(prn_simd_avx512_options -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mbmi2)
  set(prn_simd_vnni_options ${prn_simd_avx512_options} -mavx512vnni)
  set(prn_simd_bf16_options ${prn_simd_vnni_options} -mavx512bf16)
  set(prn_simd_amx_options ${prn_simd_vnni_options} -mamx-tile -mamx-int8 -mamx-bf16)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(PRN_ARCHITECTURE arm64)
  set(prn_simd_variants scalar neon)
  set(prn_simd_dot_variants dotprod i8mm)
  # Every AArch64 processor multiplies and adds at once. Kernels of the level `neon` do, as those of AVX2 do.
  set(prn_simd_neon_options -DPRN_NEON -ffp-contract=$<IF:$<C_COMPILER_ID:GNU>,fast,on>)
  # gcc's first scheduling, which other architectures do not have by default, spreads a tile over more registers than there are: it made
  # spills in four of seven inner loops (tests/tree/check_arm_loops.py).
  list(APPEND prn_simd_neon_options $<$<C_COMPILER_ID:GNU>:-fno-schedule-insns>)
  set(prn_simd_dotprod_options ${prn_simd_neon_options} -march=armv8.2-a+dotprod)
  set(prn_simd_i8mm_options ${prn_simd_neon_options} -march=armv8.2-a+dotprod+i8mm)
else()
  set(PRN_ARCHITECTURE other)
  set(prn_simd_variants scalar)
  set(prn_simd_dot_variants "")
endif()
set(prn_simd_scalar_options "")

# The same C has the same results everywhere: elsewhere the base instruction set fuses multiplication and addition, and plain char is
# unsigned, which x86-64 does not have.
set(prn_architecture_options "")
if(NOT PRN_ARCHITECTURE STREQUAL x86_64)
  set(prn_architecture_options -ffp-contract=off -fsigned-char)
endif()

# gcc 12 ends with an internal error in vect_transform_reduction where it vectorises fmax or fmin of numbers widened to double for AArch64.
set(prn_scalar_loops "")
if(PRN_ARCHITECTURE STREQUAL arm64 AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13)
  set(prn_scalar_loops -fno-tree-loop-vectorize)
endif()
