/* Launches of a step: made while it is prepared, run in order. A builder keeps the first failure, so that its calls need no
 * checks between them. */
#ifndef PRN_OPS_VENDOR_OPENCL_LAUNCH_H
#define PRN_OPS_VENDOR_OPENCL_LAUNCH_H

#include "ops/vendor/opencl/opencl.h"
#include "ops/vendor/opencl/opencl_device.h"

enum { PRN_OPENCL_OPERANDS = 10, PRN_OPENCL_DEFINES = 4096 };

/* Lines that stand before a source: "#define NAME VALUE". */
typedef struct opencl_defines {
    char text[PRN_OPENCL_DEFINES];
    size_t used;
    bool full;
} opencl_defines;
void prn_opencl_define(opencl_defines *defines, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* FINISH(v, at): the node's post-operations on the value v of output element `at`; FINISH_ARGUMENTS: the kernel's arguments
 * for them, which prn_opencl_finish_operands binds in their place. */
void prn_opencl_define_finish(opencl_defines *defines, const prony_context *context);

typedef struct opencl_state opencl_state;
typedef struct opencl_builder {
    const prony_context *context;
    opencl_state *state;
    prony_status status;
} opencl_builder;

/* Begins a step of up to `launches` launches. */
opencl_builder prn_opencl_begin(const prony_context *context, size_t launches);
/* The next launch: kernel `name` of the source behind the defines. Its arguments follow in order. */
void prn_opencl_launch(opencl_builder *b, const prn_opencl_source *source, const opencl_defines *defines,
                       const char *name);
/* Two arguments: the buffer, and the byte offset in it (AT() of common.cl). `shift` bytes are added to the offset. */
void prn_opencl_input(opencl_builder *b, size_t input, uint64_t shift);
void prn_opencl_output(opencl_builder *b, size_t output, uint64_t shift);
/* The address that the run gives as number `index` (prn_opencl_run_beside). */
void prn_opencl_beside(opencl_builder *b, size_t index, uint64_t shift);
void prn_opencl_finish_operands(opencl_builder *b);
/* Two arguments likewise: `bytes` bytes, above 0, that are copied to the device now and live as long as the step. */
void *prn_opencl_table(opencl_builder *b, const void *data, size_t bytes); /* its address; NULL: a failure */
/* The same for bytes that several steps share: `source` is their identity, as in prn_device_constant. */
void *prn_opencl_shared_table(opencl_builder *b, const void *source, const void *data, size_t bytes);
void prn_opencl_argument(opencl_builder *b, const void *value, size_t size);
void prn_opencl_int(opencl_builder *b, int64_t value); /* int */
void prn_opencl_float(opencl_builder *b, float value);
/* Work items, rounded up to whole groups of local items; local 0: the device chooses. */
void prn_opencl_work(opencl_builder *b, size_t x, size_t y, size_t z, size_t local_x, size_t local_y, size_t local_z);
/* Bytes for the step's own run, 16-byte aligned and zero, that live as long as the step; `state` is the context's. NULL from
 * prn_opencl_keep: a failure. */
void *prn_opencl_keep(opencl_builder *b, size_t bytes);
void *prn_opencl_kept(const void *state);
/* prn_opencl_run with the addresses of prn_opencl_beside. */
PRN_MUST_USE prony_status prn_opencl_run_beside(const prony_context *context, void *const *beside);
/* The state goes to `out`, or is released after a failure. */
prony_status prn_opencl_end(opencl_builder *b, prn_prepared *out);

/* true: the step has a device, its operands are dense tensors of known shape with 1 to 2^31 - 1 elements, and its inputs have
 * the first one's type where `alike`. Optional operands may be missing. */
bool prn_opencl_takes(const prony_context *context, bool alike);
/* true: the device has groups of so many work items, and so much local memory. */
bool prn_opencl_group_fits(const prony_context *context, size_t items, size_t local_bytes);
/* The same where the kernel reads only the inputs of the mask on the device; the others stay on the host. */
bool prn_opencl_takes_inputs(const prony_context *context, uint32_t inputs);

#endif
