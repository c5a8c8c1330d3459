/* Prony's use of oneDNN. dnnl*.c are the only files that know its API; without PRN_HAVE_DNNL the kernels below do
 * not exist and the version is empty. */
#ifndef PRN_OPS_VENDOR_DNNL_H
#define PRN_OPS_VENDOR_DNNL_H

#include "ops/op.h"

/* "2.6.3", or "" if oneDNN is not built in. */
const char *prn_dnnl_version(void);

#ifdef PRN_HAVE_DNNL
/* Conv in float32 with constant weights and bias, on blocked layouts. */
bool prn_dnnl_conv_supported(const prony_context *context);
void prn_dnnl_conv_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
prony_status prn_dnnl_conv_prepare(const prony_context *context, prn_prepared *out);
prony_status prn_dnnl_conv_run(const prony_context *context);
void prn_dnnl_conv_release(void *state);
#endif

#endif
