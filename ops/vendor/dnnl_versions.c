/* See dnnl_versions.h. */
#include "ops/op.h"

#ifdef PRN_HAVE_DNNL

#include "ops/vendor/dnnl_versions.h"

#include <stdio.h>
#include <string.h>

prn_dnnl_desc_view prn_dnnl_desc_of(const prn_dnnl_desc *desc)
{
#if DNNL_VERSION_MAJOR == 2
    return desc->made ? &desc->desc : NULL;
#else
    return desc->made ? desc->desc : NULL;
#endif
}

void prn_dnnl_desc_drop(prn_dnnl_desc *desc)
{
#if DNNL_VERSION_MAJOR > 2
    if (desc->made) dnnl_memory_desc_destroy(desc->desc);
#endif
    desc->made = false;
}

dnnl_status_t prn_dnnl_desc_make(prn_dnnl_desc *out, int axes, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
#if DNNL_VERSION_MAJOR == 2
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(&out->desc, axes, dims, dnnl_f32, tag);
#else
    dnnl_status_t status = dnnl_memory_desc_create_with_tag(&out->desc, axes, dims, dnnl_f32, tag);
#endif
    out->made = status == dnnl_success;
    return status;
}

static bool is_allowed(const_dnnl_primitive_desc_t desc, bool (*allowed)(const char *name))
{
    const char *name = "";
    return dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name) == dnnl_success && allowed(name);
}

#if DNNL_VERSION_MAJOR == 2
dnnl_primitive_desc_t prn_dnnl_convolution_desc(const prn_dnnl_convolution *conv,
                                                const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                                                bool (*allowed)(const char *name))
{
    dnnl_convolution_desc_t described;
    dnnl_primitive_desc_iterator_t each;
    dnnl_primitive_desc_t found = NULL;
    if (dnnl_dilated_convolution_forward_desc_init(&described, dnnl_forward_inference, dnnl_convolution_direct, conv->x,
                                                   conv->weights, conv->bias, conv->y, conv->stride, conv->dilation,
                                                   conv->pad_begin, conv->pad_end) != dnnl_success ||
        dnnl_primitive_desc_iterator_create(&each, &described, attributes, engine, NULL) != dnnl_success)
        return NULL;
    do {
        dnnl_primitive_desc_t candidate = dnnl_primitive_desc_iterator_fetch(each);
        if (!candidate) break;
        if (is_allowed(candidate, allowed))
            found = candidate;
        else
            dnnl_primitive_desc_destroy(candidate);
    } while (!found && dnnl_primitive_desc_iterator_next(each) == dnnl_success);
    dnnl_primitive_desc_iterator_destroy(each);
    return found;
}
#else
dnnl_primitive_desc_t prn_dnnl_convolution_desc(const prn_dnnl_convolution *conv,
                                                const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                                                bool (*allowed)(const char *name))
{
    dnnl_primitive_desc_t desc = NULL;
    if (dnnl_convolution_forward_primitive_desc_create(
            &desc, engine, dnnl_forward_inference, dnnl_convolution_direct, conv->x, conv->weights, conv->bias, conv->y,
            conv->stride, conv->dilation, conv->pad_begin, conv->pad_end, attributes) != dnnl_success)
        return NULL;
    bool found = is_allowed(desc, allowed);
    while (!found && dnnl_primitive_desc_next_impl(desc) == dnnl_success) found = is_allowed(desc, allowed);
    if (found) return desc;
    dnnl_primitive_desc_destroy(desc);
    return NULL;
}
#endif

dnnl_status_t prn_dnnl_append_sum(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR == 2
    return dnnl_post_ops_append_sum(ops, 1.0f);
#else
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
#endif
}

/* HardSwish has its parameters, 1/6 and 1/2, by itself in 2.x and is told them in 3.x. */
dnnl_status_t prn_dnnl_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm, float alpha, float beta)
{
#if DNNL_VERSION_MAJOR == 2
    return dnnl_post_ops_append_eltwise(ops, 1.0f, algorithm, alpha, beta);
#else
    if (algorithm == dnnl_eltwise_hardswish) return dnnl_post_ops_append_eltwise(ops, algorithm, 1.0f / 6.0f, 0.5f);
    return dnnl_post_ops_append_eltwise(ops, algorithm, alpha, beta);
#endif
}

dnnl_status_t prn_dnnl_get_eltwise(const_dnnl_post_ops_t ops, int index, dnnl_alg_kind_t *algorithm, float *alpha,
                                   float *beta)
{
#if DNNL_VERSION_MAJOR == 2
    float scale;
    return dnnl_post_ops_get_params_eltwise(ops, index, &scale, algorithm, alpha, beta);
#else
    return dnnl_post_ops_get_params_eltwise(ops, index, algorithm, alpha, beta);
#endif
}

dnnl_status_t prn_dnnl_set_handle(dnnl_memory_t memory, void *data, dnnl_stream_t stream)
{
#if DNNL_VERSION_MAJOR == 2
    return dnnl_memory_set_data_handle_v2(memory, data, stream);
#else
    (void)stream;
    return dnnl_memory_set_data_handle(memory, data);
#endif
}

/* Writes size, dimensions, strides and inner blocks, by which packed weights are told apart; at most
 * PRN_DNNL_DESC_NUMBERS. */
size_t prn_dnnl_desc_numbers(prn_dnnl_desc_view desc, int64_t numbers[PRN_DNNL_DESC_NUMBERS])
{
    size_t used = 0;
    numbers[used++] = (int64_t)dnnl_memory_desc_get_size(desc);
#if DNNL_VERSION_MAJOR == 2
    const int axes = desc->ndims, blocks = desc->format_desc.blocking.inner_nblks;
    const dnnl_dim_t *dims = desc->dims, *strides = desc->format_desc.blocking.strides,
                     *inner = desc->format_desc.blocking.inner_blks, *index = desc->format_desc.blocking.inner_idxs;
#else
    int axes = 0, blocks = 0;
    const dnnl_dims_t *d = NULL, *s = NULL, *n = NULL, *x = NULL;
    dnnl_memory_desc_query(desc, dnnl_query_ndims_s32, &axes);
    dnnl_memory_desc_query(desc, dnnl_query_dims, &d);
    dnnl_memory_desc_query(desc, dnnl_query_strides, &s);
    dnnl_memory_desc_query(desc, dnnl_query_inner_nblks_s32, &blocks);
    dnnl_memory_desc_query(desc, dnnl_query_inner_blks, &n);
    dnnl_memory_desc_query(desc, dnnl_query_inner_idxs, &x);
    if (!d || !s) return used;
    const dnnl_dim_t *dims = *d, *strides = *s, *inner = n ? *n : NULL, *index = x ? *x : NULL;
#endif
    numbers[used++] = axes;
    numbers[used++] = blocks;
    for (int i = 0; i < axes; i++) {
        numbers[used++] = dims[i];
        numbers[used++] = strides[i];
    }
    for (int i = 0; i < blocks && inner && index; i++) {
        numbers[used++] = inner[i];
        numbers[used++] = index[i];
    }
    return used;
}

#endif
