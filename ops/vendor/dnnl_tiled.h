/* A convolution computed tile by tile; shared by the dnnl*.c files alone. */
#ifndef PRN_OPS_VENDOR_DNNL_TILED_H
#define PRN_OPS_VENDOR_DNNL_TILED_H

#include "ops/vendor/dnnl_call.h"

typedef struct prn_dnnl_tiled prn_dnnl_tiled;

/* Of a problem that has tiles; `places` has weights and bias (NULL: none). *scratch: bytes that a run needs. */
dnnl_status_t prn_dnnl_tiled_make(prn_dnnl_tiled **out, const prony_context *context, const prn_dnnl_problem *problem,
                                  const prn_dnnl_operands *places, size_t weights_step, size_t *scratch);
void prn_dnnl_tiled_drop(prn_dnnl_tiled *tiled);
/* `places` are those of the whole. */
dnnl_status_t prn_dnnl_tiled_run(prn_dnnl_tiled *tiled, int threads, dnnl_stream_t stream,
                                 const prn_dnnl_operands *places);

#endif
