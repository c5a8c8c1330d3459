/* Types, shapes and values: tensors, sequences and optionals, read from files and text. Conventions: prony.h, which
 * includes it. */
#ifndef PRONY_TENSOR_H
#define PRONY_TENSOR_H

#include "prony_status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types; the numbers are those of ONNX TensorProto.DataType. */
typedef enum prony_dtype {
    PRONY_UNDEFINED = 0,
    PRONY_FLOAT32 = 1,
    PRONY_UINT8 = 2,
    PRONY_INT8 = 3,
    PRONY_UINT16 = 4,
    PRONY_INT16 = 5,
    PRONY_INT32 = 6,
    PRONY_INT64 = 7,
    PRONY_STRING = 8,
    PRONY_BOOL = 9,
    PRONY_FLOAT16 = 10,
    PRONY_FLOAT64 = 11,
    PRONY_UINT32 = 12,
    PRONY_UINT64 = 13,
    PRONY_COMPLEX64 = 14,
    PRONY_COMPLEX128 = 15,
    PRONY_BFLOAT16 = 16,
    PRONY_FLOAT8E4M3FN = 17,
    PRONY_FLOAT8E4M3FNUZ = 18,
    PRONY_FLOAT8E5M2 = 19,
    PRONY_FLOAT8E5M2FNUZ = 20,
    PRONY_UINT4 = 21,
    PRONY_INT4 = 22,
    PRONY_FLOAT4E2M1 = 23,
    PRONY_FLOAT8E8M0 = 24,
    PRONY_UINT2 = 25,
    PRONY_INT2 = 26,
    PRONY_DTYPE_COUNT = 27
} prony_dtype;

PRONY_API const char *prony_dtype_name(prony_dtype dtype); /* "float32", "int64", … as NumPy spells them */

#define PRONY_MAX_RANK 16

/* rank -1: unknown rank; dim -1: unknown extent. */
typedef struct prony_shape {
    int32_t rank;
    int64_t dim[PRONY_MAX_RANK];
} prony_shape;

typedef enum prony_kind { PRONY_TENSOR = 0, PRONY_SEQUENCE = 1, PRONY_OPTIONAL = 2 } prony_kind;

/* A string element of a PRONY_STRING tensor; not NUL-terminated. */
typedef struct prony_string {
    const char *data;
    size_t size;
} prony_string;

/* A value, or only its type and shape while `data` is NULL. Tensor: `data` holds numel elements of `dtype` (4-bit and
 * 2-bit types: packed, low bits first). The function that gives a value tells the owner of `data`. Sequence and
 * optional: `items` holds `count` values (an empty optional has count 0). `layout` is 0 (plain, row-major) in every
 * value a user sees. */
typedef struct prony_value {
    prony_kind kind;
    prony_dtype dtype;
    prony_shape shape;
    void *data;
    struct prony_value *items;
    size_t count;
    uint8_t layout;
} prony_value;

/* Elements of a fully known shape; -1 if a dimension is unknown or the product of those that are not 0 exceeds 63
 * bits. */
PRONY_API int64_t prony_shape_numel(const prony_shape *shape);
/* Bytes of `count` elements; SIZE_MAX on overflow. A string takes sizeof(prony_string). */
PRONY_API size_t prony_dtype_bytes(prony_dtype dtype, int64_t count);

/* Reads one tensor from FILE.npy, FILE.npz (which then holds one array) or FILE.pb (TensorProto). Text in an .npy is <U
 * or |S. The caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_value_load(prony_value **out, const char *path, prony_error *error);
/* As above. A .pb file does not state its message; `kind` says if it is a TensorProto, SequenceProto or
 * OptionalProto. */
PRONY_API PRONY_MUST_USE prony_status prony_value_load_kind(prony_value **out, const char *path, prony_kind kind,
                                                            prony_error *error);
/* One array of FILE.npz by its name; NULL: the only one. An only array that numpy.savez called arr_0 has any name. */
PRONY_API PRONY_MUST_USE prony_status prony_value_load_array(prony_value **out, const char *path, const char *name,
                                                             prony_error *error);
/* Wraps the bytes of a raw little-endian file as a tensor of the given type and shape; the size must match. */
PRONY_API PRONY_MUST_USE prony_status prony_value_load_raw(prony_value **out, const char *path, prony_dtype dtype,
                                                           const prony_shape *shape, prony_error *error);
/* A tensor written as text, for an input of this type and shape: a number or true or false, which fills it; [1, 2, 3]
 * or nested lists, of the input's own number of elements or, where dimensions are free (-1), of a rank up to the
 * input's, with leading dimensions of 1 as in broadcasting; zeros; ones; uniform:LOW:HIGH, drawn from `seed` (of
 * integers: both ends included). Of strings: "x" or 'x', or lists of them, with the escapes of JSON. A number that the
 * type cannot hold is PRONY_INVALID_ARGUMENT; a free dimension that the text leaves open is PRONY_NEEDS_DIMENSION. The
 * caller owns *out. */
PRONY_API PRONY_MUST_USE prony_status prony_value_parse(prony_value **out, const char *text, prony_dtype dtype,
                                                        const prony_shape *shape, uint64_t seed, prony_error *error);
/* true: prony_value_parse may read the text. */
PRONY_API bool prony_value_is_literal(const char *text);
/* Writes a tensor as .npy (format 1.0), to a temporary name first, then renamed. Text is <U; an element that ends with
 * NUL is PRONY_UNSUPPORTED. Types that NumPy lacks are widened without loss: bfloat16, 8-bit and 4-bit floats to
 * float32, integers of 4 and 2 bits to int8 or uint8. */
PRONY_API PRONY_MUST_USE prony_status prony_value_save_npy(const prony_value *value, const char *path,
                                                           prony_error *error);
/* Frees the value with its data and items; for values that a function gave to the caller. NULL is accepted. */
PRONY_API void prony_value_release(prony_value *value);

#ifdef __cplusplus
}
#endif
#endif
