/* Element by element on an OpenCL device: functions of one tensor, of two with broadcasting, and copies. */
#ifndef PRN_OPS_VENDOR_OPENCL_MAP_H
#define PRN_OPS_VENDOR_OPENCL_MAP_H

#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/vec.h"
#include "ops/vendor/opencl/opencl.h"

bool prn_opencl_map_supported(const prony_context *context);
/* Of input 0; the other inputs are constants that `prepare` reads on the host (host_inputs). */
bool prn_opencl_first_supported(const prony_context *context);
bool prn_opencl_binary_supported(const prony_context *context);
/* Types that copies take: float32, what float32 graphs need between float operators, and 8-bit codes. Shapes and their
 * computations stay on the host. */
#define PRN_OPENCL_COPIED (PRN_TYPE_F32 | PRN_TYPE(PRONY_BOOL) | PRN_TYPE(PRONY_INT8) | PRN_TYPE(PRONY_UINT8))
/* Of all inputs, which are alike. */
bool prn_opencl_copy_supported(const prony_context *context);
/* true: copies take the value's type and rank, and it is no part of a computation of shapes. */
bool prn_opencl_is_copied(const prony_value *value);
/* The same where the other inputs are constants, as in prn_opencl_first_supported. */
bool prn_opencl_move_supported(const prony_context *context);

/* Output 0 = map(input 0; a, b). */
prony_status prn_opencl_map_prepare(const prony_context *context, prn_prepared *out, prn_map_id map, float a, float b);
/* The same of input 0 + input 1, if there is an input 1. */
prony_status prn_opencl_biased_map_prepare(const prony_context *context, prn_prepared *out, prn_map_id map, float a,
                                           float b);
/* Output 0 = `text`, an expression of OpenCL C in x (input 0), a and b. Both have types that the device knows: float32,
 * int32, int64, int8, uint8, bool. */
prony_status prn_opencl_expression_prepare(const prony_context *context, prn_prepared *out, const char *text, float a,
                                           float b);
/* Output 0 = input 0 op input 1 op …, broadcast. */
prony_status prn_opencl_binary_prepare(const prony_context *context, prn_prepared *out, prn_binary_id op);
/* The sum divided by the number of inputs. */
prony_status prn_opencl_mean_prepare(const prony_context *context, prn_prepared *out);
/* Output 0 = `text`, an expression in a (input 0) and b (input 1), broadcast. */
prony_status prn_opencl_pair_prepare(const prony_context *context, prn_prepared *out, const char *text);
/* Output 0 = input 0 ? input 1 : input 2, broadcast; input 0 is bool. */
prony_status prn_opencl_pick_prepare(const prony_context *context, prn_prepared *out);

/* A strided copy from an input to an output, `from` and `to` elements behind their beginnings. */
typedef struct prn_opencl_move {
    size_t input, output;
    int64_t from, to;
    prn_copy copy;
} prn_opencl_move;
/* `fill`: one element that output 0 is filled with before; NULL: moves write all of it. */
prony_status prn_opencl_copy_prepare(const prony_context *context, prn_prepared *out, const prn_opencl_move *moves,
                                     size_t count, const void *fill);

typedef enum prn_opencl_pad {
    PRN_OPENCL_CONSTANT,
    PRN_OPENCL_REFLECT,
    PRN_OPENCL_EDGE,
    PRN_OPENCL_WRAP
} prn_opencl_pad;
/* Output 0 = input 0 with `begin` elements before each axis, or without them where that is negative; `fill` is one
 * element. */
prony_status prn_opencl_pad_prepare(const prony_context *context, prn_prepared *out, prn_opencl_pad mode,
                                    const int64_t *begin, const void *fill);

#endif
