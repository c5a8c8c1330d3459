/* Implements opencl_launch.h, and the run of a prepared step. */
#include "ops/vendor/opencl/opencl.h"

#ifdef PRN_HAVE_OPENCL
#include "base/memory/alloc.h"
#include "ops/vendor/opencl/opencl_launch.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef enum operand_kind { OPERAND_INPUT, OPERAND_OUTPUT, OPERAND_BESIDE } operand_kind;

typedef struct operand {
    cl_uint argument;
    operand_kind kind;
    uint16_t index;
    uint64_t shift;
    const void *bound; /* the address that the argument has; NULL: none yet */
} operand;

typedef struct launch {
    cl_kernel kernel;
    const char *name;
    cl_uint arguments;
    size_t global[3], local[3];
    operand operands[PRN_OPENCL_OPERANDS];
    size_t operand_count;
} launch;

/* Bytes of the step's own on the device. Its address is their identity there. */
typedef struct opencl_table {
    struct opencl_table *next;
    void *address;
} opencl_table;

struct opencl_state {
    prn_device *device;
    opencl_table *tables;
    void *kept;
    size_t count, capacity;
    launch launches[];
};

/* ---- defines ---- */

void prn_opencl_define(opencl_defines *d, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(d->text + d->used, sizeof d->text - d->used, format, arguments);
    va_end(arguments);
    d->full |= length < 0 || (size_t)length >= sizeof d->text - d->used;
    if (!d->full) d->used += (size_t)length;
}

/* The activations' own expressions (ops/activations.inc), as text. */
static const char *const finish_texts[] = {
#define PRN_ACTIVATION(SYMBOL, operator, attributes, a, b, flops, special, madds, in_double, in_float, dnnl)           \
    [PRN_POST_##SYMBOL] = #in_float,
#include "ops/activations.inc"
};

/* A constant that OpenCL C reads as the same float. */
static const char *float_text(char text[40], float value)
{
    if (isnan(value)) return "NAN";
    if (isinf(value)) return value < 0 ? "(-INFINITY)" : "INFINITY";
    snprintf(text, 40, "%af", (double)value);
    return text;
}

void prn_opencl_define_finish(opencl_defines *d, const prony_context *context)
{
    const prn_post_ops *ops = context->post_ops;
    const size_t count = ops ? ops->count : 0;
    char a[40], b[40];
    prn_opencl_define(d, "#define FINISH_ARGUMENTS");
    for (size_t i = 0; i < count; i++)
        if (ops->op[i].kind == PRN_POST_ADD)
            prn_opencl_define(d, " , __global const float *added%zu, ulong added%zu_at", i, i);
    prn_opencl_define(d, "\n#define FINISH(v, at) do { float x = v, a, b; (void)a; (void)b;");
    for (size_t i = 0; i < count; i++) {
        const prn_post_op *op = &ops->op[i];
        if (op->kind == PRN_POST_ADD) {
            prn_opencl_define(d, " x = x + AT(const float, added%zu)[at];", i);
            continue;
        }
        prn_opencl_define(d, " a = %s; b = %s; x = %s;", float_text(a, op->a), float_text(b, op->b),
                          op->kind == PRN_POST_AFFINE ? "a * x + b" : finish_texts[op->kind]);
    }
    prn_opencl_define(d, " v = x; } while (0)\n");
}

/* ---- building ---- */

opencl_builder prn_opencl_begin(const prony_context *context, size_t launches)
{
    opencl_builder b = {.context = context};
    b.state = prn_calloc(1, sizeof *b.state + launches * sizeof *b.state->launches);
    if (!b.state) {
        b.status = prn_no_memory(context->error);
        return b;
    }
    b.state->device = context->device->device;
    b.state->capacity = launches;
    return b;
}

static launch *last(const opencl_builder *b)
{
    return &b->state->launches[b->state->count - 1];
}

void prn_opencl_launch(opencl_builder *b, const prn_opencl_source *source, const opencl_defines *defines,
                       const char *name)
{
    if (b->status != PRONY_OK) return;
    if (b->state->count == b->state->capacity || defines->full) {
        b->status = prony_fail(b->context, PRONY_INTERNAL, "too many launches or defines");
        return;
    }
    launch *l = &b->state->launches[b->state->count];
    b->status = prn_opencl_kernel(b->state->device, source, defines->text, name, &l->kernel, b->context->error);
    if (b->status != PRONY_OK) return;
    l->name = name;
    b->state->count++;
}

void prn_opencl_argument(opencl_builder *b, const void *value, size_t size)
{
    if (b->status != PRONY_OK) return;
    launch *l = last(b);
    const cl_int code = PRN_CL(clSetKernelArg, l->kernel, l->arguments++, size, value);
    b->status = prn_opencl_status(code, b->state->device->info.id, "setting an argument", b->context->error);
}

static void add_operand(opencl_builder *b, operand_kind kind, size_t index, uint64_t shift)
{
    if (b->status != PRONY_OK) return;
    launch *l = last(b);
    if (l->operand_count == PRN_OPENCL_OPERANDS) {
        b->status = prony_fail(b->context, PRONY_INTERNAL, "a kernel has too many operands");
        return;
    }
    l->operands[l->operand_count++] = (operand){l->arguments, kind, (uint16_t)index, shift, NULL};
    l->arguments += 2;
}

void prn_opencl_input(opencl_builder *b, size_t input, uint64_t shift)
{
    add_operand(b, OPERAND_INPUT, input, shift);
}

void prn_opencl_output(opencl_builder *b, size_t output, uint64_t shift)
{
    add_operand(b, OPERAND_OUTPUT, output, shift);
}

void prn_opencl_beside(opencl_builder *b, size_t index, uint64_t shift)
{
    add_operand(b, OPERAND_BESIDE, index, shift);
}

void prn_opencl_finish_operands(opencl_builder *b)
{
    const prn_post_ops *ops = b->context->post_ops;
    for (size_t i = 0; ops && i < ops->count; i++)
        if (ops->op[i].kind == PRN_POST_ADD) prn_opencl_input(b, ops->op[i].input, 0);
}

void *prn_opencl_table(opencl_builder *b, const void *data, size_t bytes)
{
    return prn_opencl_shared_table(b, NULL, data, bytes);
}

void *prn_opencl_shared_table(opencl_builder *b, const void *source, const void *data, size_t bytes)
{
    if (b->status != PRONY_OK) return NULL;
    prn_device *device = b->state->device;
    opencl_table *table = prn_calloc(1, sizeof *table);
    b->status =
        table ? prn_device_constant(device, source ? source : table, data, bytes, &table->address, b->context->error)
              : prn_no_memory(b->context->error);
    if (b->status != PRONY_OK) {
        prn_free(table);
        return NULL;
    }
    table->next = b->state->tables;
    b->state->tables = table;
    size_t offset = 0;
    const cl_mem memory = prn_opencl_find(device, table->address, &offset);
    const cl_ulong at = offset;
    prn_opencl_argument(b, &memory, sizeof(cl_mem));
    prn_opencl_argument(b, &at, sizeof at);
    return table->address;
}

void *prn_opencl_keep(opencl_builder *b, size_t bytes)
{
    if (b->status != PRONY_OK) return NULL;
    b->state->kept = prn_calloc(1, bytes);
    if (!b->state->kept) b->status = prn_no_memory(b->context->error);
    return b->state->kept;
}

void *prn_opencl_kept(const void *state)
{
    return ((const opencl_state *)state)->kept;
}

void prn_opencl_int(opencl_builder *b, int64_t value)
{
    const cl_int number = (cl_int)value;
    prn_opencl_argument(b, &number, sizeof number);
}

void prn_opencl_float(opencl_builder *b, float value)
{
    prn_opencl_argument(b, &value, sizeof value);
}

void prn_opencl_work(opencl_builder *b, size_t x, size_t y, size_t z, size_t local_x, size_t local_y, size_t local_z)
{
    if (b->status != PRONY_OK) return;
    launch *l = last(b);
    const size_t global[3] = {x, y, z}, local[3] = {local_x, local_y, local_z};
    for (int i = 0; i < 3; i++) {
        l->local[i] = local[i];
        l->global[i] = local[i] ? (global[i] + local[i] - 1) / local[i] * local[i] : global[i];
    }
}

prony_status prn_opencl_end(opencl_builder *b, prn_prepared *out)
{
    if (b->status == PRONY_OK)
        out->state = b->state;
    else
        prn_opencl_release(b->state);
    return b->status;
}

void prn_opencl_release(void *state)
{
    opencl_state *s = state;
    for (size_t i = 0; s && i < s->count; i++) prn_opencl_kernel_release(s->device, s->launches[i].kernel);
    for (opencl_table *table = s ? s->tables : NULL, *next; table; table = next) {
        next = table->next;
        prn_device_constant_drop(s->device, table->address);
        prn_free(table);
    }
    if (s) prn_free(s->kept);
    prn_free(s);
}

bool prn_device_launch_at(const void *state, size_t index, prn_device_launch *out)
{
    const opencl_state *s = state;
    if (!s || index >= s->count) return false;
    *out = (prn_device_launch){.kernel = s->launches[index].name};
    memcpy(out->global, s->launches[index].global, sizeof out->global);
    memcpy(out->local, s->launches[index].local, sizeof out->local);
    return true;
}

/* ---- supported ---- */

/* Every kernel here has groups of 64 items or fewer, unless it asks prn_opencl_group_fits. */
static bool has_device(const prony_context *context)
{
    enum { ITEMS = 64 };
    return context->device && context->device->device && !context->device->stays_on_host &&
           prn_device_description(context->device->device)->largest_work_group >= ITEMS;
}

static bool takes_operand(const prony_value *value)
{
    if (value->kind != PRONY_TENSOR || value->dtype == PRONY_STRING || value->shape.rank < 0) return false;
    const int64_t count = prony_shape_numel(&value->shape);
    return count > 0 && count < INT32_MAX;
}

bool prn_opencl_takes(const prony_context *context, bool alike)
{
    if (!has_device(context)) return false;
    const prony_value *first = NULL;
    for (size_t i = 0; i < context->input_count; i++) {
        const prony_value *in = context->inputs[i];
        if (!in) continue;
        if (!first) first = in;
        if (!takes_operand(in) || (alike && in->dtype != first->dtype)) return false;
    }
    for (size_t k = 0; k < context->output_count; k++)
        if (context->outputs[k] && !takes_operand(context->outputs[k])) return false;
    return true;
}

bool prn_opencl_group_fits(const prony_context *context, size_t items, size_t local_bytes)
{
    const prony_device_info *info = prn_device_description(context->device->device);
    return items <= info->largest_work_group && local_bytes <= info->local_memory_bytes;
}

bool prn_opencl_takes_inputs(const prony_context *context, uint32_t inputs)
{
    if (!has_device(context)) return false;
    for (size_t i = 0; i < context->input_count && i < 32; i++)
        if (context->inputs[i] && inputs >> i & 1 && !takes_operand(context->inputs[i])) return false;
    for (size_t k = 0; k < context->output_count; k++)
        if (context->outputs[k] && !takes_operand(context->outputs[k])) return false;
    return true;
}

/* ---- run ---- */

/* An address beside the values may mean other memory than in the run before. */
static prony_status bind_operands(const prony_context *context, prn_device *device, launch *l, void *const *beside)
{
    for (size_t i = 0; i < l->operand_count; i++) {
        operand *o = &l->operands[i];
        const void *data = o->kind == OPERAND_BESIDE   ? beside[o->index]
                           : o->kind == OPERAND_OUTPUT ? context->outputs[o->index]->data
                                                       : context->inputs[o->index]->data;
        if (o->bound == data && o->kind != OPERAND_BESIDE) continue;
        size_t offset = 0;
        cl_mem memory = prn_opencl_find(device, data, &offset);
        const cl_ulong at = offset + o->shift;
        cl_int code = PRN_CL(clSetKernelArg, l->kernel, o->argument, sizeof(cl_mem), &memory);
        if (code == CL_SUCCESS) code = PRN_CL(clSetKernelArg, l->kernel, o->argument + 1, sizeof at, &at);
        PRN_TRY(prn_opencl_status(code, device->info.id, "setting an argument", context->error));
        o->bound = data;
    }
    return PRONY_OK;
}

static prony_status run_launches(const prony_context *context, opencl_state *state, void *const *beside)
{
    prn_device *device = state->device;
    for (size_t i = 0; i < state->count; i++) {
        launch *l = &state->launches[i];
        PRN_TRY(bind_operands(context, device, l, beside));
        cl_event event = NULL, *timed = context->device->timed ? &event : NULL;
        const cl_int code = PRN_CL(clEnqueueNDRangeKernel, device->queue, l->kernel, 3, NULL, l->global,
                                   l->local[0] ? l->local : NULL, 0, NULL, timed);
        PRN_TRY(prn_opencl_status(code, device->info.id, l->name, context->error));
        if (timed) PRN_TRY(prn_opencl_timed(device, event, context->device, context->error));
    }
    return PRONY_OK;
}

/* Queues the launches; a stamped run waits for each, since the step's time would otherwise be that of queueing. The state's
 * arguments are bound by the run, so a step runs once at a time, as its plan does. */
prony_status prn_opencl_run(const prony_context *context)
{
    return prn_opencl_run_beside(context, NULL);
}

prony_status prn_opencl_run_beside(const prony_context *context, void *const *beside)
{
    const prony_status status = run_launches(context, context->state, beside);
    if (status != PRONY_OK) prn_error_name_node(context->error, context->node);
    return status;
}
#else
#include "ops/device.h"

bool prn_device_launch_at(const void *state, size_t index, prn_device_launch *out)
{
    (void)state, (void)index, (void)out;
    return false;
}
#endif
