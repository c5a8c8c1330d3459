/* Arguments of oneDNN's convolutions. */
#include "ops/op.h"

#ifdef PRN_HAVE_DNNL

#include "ops/vendor/dnnl_call.h"
#include "ops/vendor/dnnl_guard.h"

static dnnl_status_t add_argument(prn_dnnl_call *call, int kind, prn_dnnl_desc_view desc, const void *data,
                                  dnnl_memory_t *out)
{
    dnnl_memory_t memory = NULL;
    dnnl_status_t status = dnnl_memory_create(&memory, desc, prn_dnnl_engine(), (void *)(uintptr_t)data);
    if (status != dnnl_success) return status;
    call->arguments[call->count++] = (dnnl_exec_arg_t){kind, memory};
    *out = memory;
    return dnnl_success;
}

static dnnl_status_t add_residuals(prn_dnnl_call *call, const prn_post_ops *post_ops, prn_dnnl_desc_view y)
{
    int position = 0;
    for (size_t i = 0; post_ops && i < post_ops->count; i++) {
        if (post_ops->op[i].kind == PRN_POST_ADD && !prn_dnnl_summed_in_place(post_ops, i)) {
            int kind = DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1;
            dnnl_status_t status = add_argument(call, kind, y, NULL, &call->residual[i]);
            if (status != dnnl_success) return status;
        }
        position += prn_dnnl_post_op_count(&post_ops->op[i]);
    }
    return dnnl_success;
}

dnnl_status_t prn_dnnl_call_make(prn_dnnl_call *call, dnnl_primitive_t primitive, const_dnnl_primitive_desc_t desc,
                                 const prn_post_ops *post_ops, bool bias, const prn_dnnl_operands *operands)
{
    prn_dnnl_desc_view x = dnnl_primitive_desc_query_md(desc, dnnl_query_src_md, 0);
    prn_dnnl_desc_view weights = dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
    prn_dnnl_desc_view y = dnnl_primitive_desc_query_md(desc, dnnl_query_dst_md, 0);
    prn_dnnl_desc_view work = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    call->primitive = primitive;
    dnnl_status_t status = add_argument(call, DNNL_ARG_SRC, x, operands->x, &call->x);
    if (status == dnnl_success)
        status = add_argument(call, DNNL_ARG_WEIGHTS, weights, operands->weights, &call->weights);
    if (status == dnnl_success && bias)
        status = add_argument(call, DNNL_ARG_BIAS, dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 1),
                              operands->bias, &call->bias);
    if (status == dnnl_success) status = add_argument(call, DNNL_ARG_DST, y, operands->y, &call->y);
    if (status == dnnl_success && dnnl_memory_desc_get_size(work))
        status = add_argument(call, DNNL_ARG_SCRATCHPAD, work, operands->scratch, &call->scratch);
    return status == dnnl_success ? add_residuals(call, post_ops, y) : status;
}

void prn_dnnl_call_drop(prn_dnnl_call *call)
{
    for (int i = 0; i < call->count; i++) dnnl_memory_destroy(call->arguments[i].memory);
    call->count = 0;
}

/* Setting a handle costs heap calls, and buffers seldom move between runs; without data it keeps what it has. */
static dnnl_status_t set_handle(dnnl_memory_t memory, const void *data, dnnl_stream_t stream)
{
    void *former = NULL;
    if (!memory || !data) return dnnl_success;
    dnnl_status_t status = dnnl_memory_get_data_handle(memory, &former);
    if (status != dnnl_success || former == data) return status;
    return prn_dnnl_set_handle(memory, (void *)(uintptr_t)data, stream);
}

typedef struct call_request {
    prn_dnnl_call *call;
    dnnl_stream_t stream;
    const prn_dnnl_operands *operands;
} call_request;

/* A callback of prn_dnnl_guarded: `argument` is a call_request. */
static dnnl_status_t run_requested(void *argument)
{
    const call_request *request = argument;
    prn_dnnl_call *call = request->call;
    const prn_dnnl_operands *operands = request->operands;
    dnnl_stream_t stream = request->stream;
    dnnl_status_t status = set_handle(call->x, operands->x, stream);
    if (status == dnnl_success) status = set_handle(call->weights, operands->weights, stream);
    if (status == dnnl_success) status = set_handle(call->bias, operands->bias, stream);
    if (status == dnnl_success) status = set_handle(call->y, operands->y, stream);
    if (status == dnnl_success) status = set_handle(call->scratch, operands->scratch, stream);
    for (int i = 0; i < PRN_MAX_POST_OPS && status == dnnl_success; i++)
        status = set_handle(call->residual[i], operands->residual[i], stream);
    if (status == dnnl_success) status = dnnl_primitive_execute(call->primitive, stream, call->count, call->arguments);
    return status;
}

dnnl_status_t prn_dnnl_call_run(prn_dnnl_call *call, dnnl_stream_t stream, const prn_dnnl_operands *operands)
{
    call_request request = {call, stream, operands};
    return prn_dnnl_guarded(run_requested, &request);
}

#endif
