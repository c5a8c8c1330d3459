/* Shared by the files *_simd.c, which are compiled once per variant of the instruction set (cmake/PronyIsa.cmake lists
 * them, PRN_SIMD names one; PRN_NEON is defined in those of AArch64 above "scalar"). Also picks the table for the
 * running processor. */
#ifndef PRN_BASE_CPU_SIMD_H
#define PRN_BASE_CPU_SIMD_H

#include "base/cpu/isa.h"

/* Tiles that this variant may use. Older clangs have other names for gcc's __AMX_TILE__ and so on. */
#if defined(__AMX_INT8__) || defined(__AMXINT8__)
#define PRN_TILES_INT8
#endif
#if defined(__AMX_BF16__) || defined(__AMXBF16__)
#define PRN_TILES_BF16
#endif

/* X(variant, required capabilities, …) for every variant of this build, the most demanding first. */
#if defined(__x86_64__)
#define PRN_SIMD_VARIANTS(X, ...)                                                                                      \
    X(avx512, PRN_HAS_AVX512, __VA_ARGS__) X(avx2, PRN_HAS_AVX2, __VA_ARGS__) X(scalar, 0, __VA_ARGS__)
#elif defined(__aarch64__)
#define PRN_SIMD_VARIANTS(X, ...) X(neon, PRN_HAS_NEON, __VA_ARGS__) X(scalar, 0, __VA_ARGS__)
#else
#define PRN_SIMD_VARIANTS(X, ...) X(scalar, 0, __VA_ARGS__)
#endif

/* The same for the files *_dot_simd.c, which also have variants for processors that multiply bytes and bfloat16
 * numbers. */
#if defined(__x86_64__)
#define PRN_SIMD_DOT_VARIANTS(X, ...)                                                                                  \
    X(amx, PRN_HAS_AVX512 | PRN_HAS_VNNI | PRN_HAS_AMX, __VA_ARGS__)                                                   \
    X(bf16, PRN_HAS_AVX512 | PRN_HAS_VNNI | PRN_HAS_BF16, __VA_ARGS__)                                                 \
    X(vnni, PRN_HAS_AVX512 | PRN_HAS_VNNI, __VA_ARGS__) PRN_SIMD_VARIANTS(X, __VA_ARGS__)
#elif defined(__aarch64__)
#define PRN_SIMD_DOT_VARIANTS(X, ...)                                                                                  \
    X(i8mm, PRN_HAS_NEON | PRN_HAS_DOTPROD | PRN_HAS_I8MM, __VA_ARGS__)                                                \
    X(dotprod, PRN_HAS_NEON | PRN_HAS_DOTPROD, __VA_ARGS__) PRN_SIMD_VARIANTS(X, __VA_ARGS__)
#else
#define PRN_SIMD_DOT_VARIANTS(X, ...) PRN_SIMD_VARIANTS(X, __VA_ARGS__)
#endif

/* Declares the tables prefix##avx512, … and defines `function`, which returns the first table that the processor can
 * run:
 *
 *   PRN_SIMD_PICK(prn_vec_table, prn_vec_, const prn_vec_table *prn_vec) */
#define PRN_SIMD_PICK(type, prefix, function)                                                                          \
    PRN_SIMD_VARIANTS(PRN_SIMD_DECLARE_, type, prefix)                                                                 \
    function(void)                                                                                                     \
    {                                                                                                                  \
        return PRN_SIMD_VARIANTS(PRN_SIMD_CHOOSE_, type, prefix) & prefix##scalar;                                     \
    }
#define PRN_SIMD_PICK_DOT(type, prefix, function)                                                                      \
    PRN_SIMD_DOT_VARIANTS(PRN_SIMD_DECLARE_, type, prefix)                                                             \
    function(void)                                                                                                     \
    {                                                                                                                  \
        return PRN_SIMD_DOT_VARIANTS(PRN_SIMD_CHOOSE_, type, prefix) & prefix##scalar;                                 \
    }
#define PRN_SIMD_DECLARE_(variant, needs, type, prefix) extern const type prefix##variant;
#define PRN_SIMD_CHOOSE_(variant, needs, type, prefix) prn_isa_has(needs) ? &prefix##variant:

/* ---- in a file that is compiled once per variant */

#ifndef PRN_SIMD
#define PRN_SIMD scalar
#endif
#define PRN_SIMD_JOIN_(a, b) a##b
#define PRN_SIMD_JOIN(a, b) PRN_SIMD_JOIN_(a, b)
#define PRN_SIMD_TEXT_(a) #a
#define PRN_SIMD_TEXT(a) PRN_SIMD_TEXT_(a)
/* Name of the variant's table, and of the variant. */
#define PRN_SIMD_TABLE(prefix) PRN_SIMD_JOIN(prefix, PRN_SIMD)
#define PRN_SIMD_NAME PRN_SIMD_TEXT(PRN_SIMD)

#if defined(__AVX512F__) || defined(PRN_EMULATED_AVX512)
#define PRN_SIMD_BYTES 64 /* of a vector */
#elif defined(__AVX2__)
#define PRN_SIMD_BYTES 32
#else
#define PRN_SIMD_BYTES 16
#endif

/* Sanitizer builds do not unroll: they check every element of every unrolled step, and compiling would take minutes a
 * file. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PRN_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PRN_SANITIZED
#endif
#endif
/* gcc 12 for riscv64 warns of annotated loops that it has removed. */
#if defined(PRN_SANITIZED) || !(defined(__x86_64__) || defined(__aarch64__))
#define PRN_UNROLL
#elif defined(__clang__)
#define PRN_UNROLL _Pragma("unroll")
#else
#define PRN_UNROLL _Pragma("GCC unroll 16")
#endif

#endif
