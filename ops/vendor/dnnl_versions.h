/* The calls of oneDNN that differ between versions 2.6 to 2.7 and 3.x; shared by the dnnl*.c files alone. They are
 * written here in the terms of 3.x: a memory descriptor is made and dropped, and a primitive descriptor follows from
 * the problem in one call. */
#ifndef PRN_OPS_VENDOR_DNNL_VERSIONS_H
#define PRN_OPS_VENDOR_DNNL_VERSIONS_H

#include <dnnl.h>

#include <stdbool.h>
#include <stddef.h>

#if DNNL_VERSION_MAJOR < 2 || (DNNL_VERSION_MAJOR == 2 && DNNL_VERSION_MINOR < 6) || DNNL_VERSION_MAJOR > 3
#error "oneDNN 2.6 to 3.x is needed"
#endif

#if DNNL_VERSION_MAJOR == 2
typedef const dnnl_memory_desc_t *prn_dnnl_desc_view; /* borrowed */
#else
typedef const_dnnl_memory_desc_t prn_dnnl_desc_view;
#endif

/* A memory descriptor, owned. Zero-initialise; dropping one that was never made does nothing. */
typedef struct prn_dnnl_desc {
    dnnl_memory_desc_t desc;
    bool made;
} prn_dnnl_desc;

dnnl_status_t prn_dnnl_desc_make(prn_dnnl_desc *out, int axes, const dnnl_dims_t dims, dnnl_format_tag_t tag);
void prn_dnnl_desc_drop(prn_dnnl_desc *desc);
/* NULL of one that was not made. */
prn_dnnl_desc_view prn_dnnl_desc_of(const prn_dnnl_desc *desc);

/* A convolution's tensors and window, float32; `bias` NULL: none. */
typedef struct prn_dnnl_convolution {
    prn_dnnl_desc_view x, weights, bias, y;
    dnnl_dims_t stride, dilation, pad_begin, pad_end; /* a dilation of 0 reads neighbours */
} prn_dnnl_convolution;

/* The first implementation that `allowed` names, or NULL. The caller destroys it. */
dnnl_primitive_desc_t prn_dnnl_convolution_desc(const prn_dnnl_convolution *conv,
                                                const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                                                bool (*allowed)(const char *name));

dnnl_status_t prn_dnnl_append_sum(dnnl_post_ops_t ops);
dnnl_status_t prn_dnnl_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm, float alpha, float beta);
dnnl_status_t prn_dnnl_get_eltwise(const_dnnl_post_ops_t ops, int index, dnnl_alg_kind_t *algorithm, float *alpha,
                                   float *beta);
dnnl_status_t prn_dnnl_set_handle(dnnl_memory_t memory, void *data, dnnl_stream_t stream);
/* Dimensions, strides and inner blocks of a blocked layout, and the bytes of any; returns how many numbers they are. */
enum { PRN_DNNL_DESC_NUMBERS = 3 + 4 * DNNL_MAX_NDIMS };
size_t prn_dnnl_desc_numbers(prn_dnnl_desc_view desc, int64_t numbers[PRN_DNNL_DESC_NUMBERS]);

#endif
