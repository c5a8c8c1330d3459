/* The conversion around a float32 kernel. Scratch holds a float32 form of the half-precision inputs and outputs, each
 * from a cache line on, and then what the kernel itself asks for. Constants that the kernel packs when it is prepared
 * are packed from a float32 form that is given up afterwards: a packed form is all that a kernel reads in a run.
 * Invariant: the places depend on shapes, and on what is packed. */
#include "ops/kernels/vector/widen.h"

#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "ops/kernels/vector/number.h"

#include <stdio.h>

enum { MOST_VALUES = 16, LINE_BYTES = 64 };

/* The state of a prepared node: the kernel's own state, and by bits the inputs that it has packed. */
typedef struct wide_state {
    void *inner;
    uint32_t packed;
} wide_state;

/* The node as the float32 kernel sees it; holds pointers into itself. */
typedef struct widened {
    prony_context context;
    const prony_value *input_pointers[MOST_VALUES];
    prony_value *output_pointers[MOST_VALUES];
    prony_value inputs[MOST_VALUES], outputs[MOST_VALUES];
    size_t bytes; /* before the kernel's own scratch */
} widened;

static bool is_half(const prony_value *value)
{
    return value && value->kind == PRONY_TENSOR && (value->dtype == PRONY_FLOAT16 || value->dtype == PRONY_BFLOAT16);
}

/* false: too large. `space` is the scratch, or NULL before it exists. */
static bool widen_value(widened *wide, prony_value *value, char *space)
{
    value->dtype = PRONY_FLOAT32;
    value->data = space ? space + wide->bytes : NULL;
    const size_t bytes = prn_value_bytes(value);
    if (bytes > SIZE_MAX / 2 - wide->bytes - LINE_BYTES) return false;
    wide->bytes += (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    return true;
}

/* Inputs in `packed` keep the bytes that they have. */
static bool widen_node(const prony_context *context, uint32_t packed, widened *wide, char *space)
{
    if (context->input_count > MOST_VALUES || context->output_count > MOST_VALUES) return false;
    wide->context = *context;
    wide->context.inputs = wide->input_pointers;
    wide->context.outputs = wide->output_pointers;
    wide->bytes = 0;
    for (size_t i = 0; i < context->input_count; i++) {
        wide->input_pointers[i] = context->inputs[i];
        if (!is_half(context->inputs[i])) continue;
        wide->inputs[i] = *context->inputs[i];
        wide->input_pointers[i] = &wide->inputs[i];
        if (packed >> i & 1)
            wide->inputs[i].dtype = PRONY_FLOAT32;
        else if (!widen_value(wide, &wide->inputs[i], space))
            return false;
    }
    for (size_t k = 0; k < context->output_count; k++) {
        wide->output_pointers[k] = context->outputs[k];
        if (!is_half(context->outputs[k])) continue;
        wide->outputs[k] = *context->outputs[k];
        wide->output_pointers[k] = &wide->outputs[k];
        if (!widen_value(wide, &wide->outputs[k], space)) return false;
    }
    return true;
}

bool prn_widen_supported(const prony_context *context, const prn_kernel *inner)
{
    widened wide;
    if (!widen_node(context, 0, &wide, NULL)) return false;
    return prn_kernel_takes_types(inner, &wide.context) && (!inner->supported || inner->supported(&wide.context));
}

typedef struct conversion {
    void *to;
    const void *from;
    prony_dtype to_type, from_type;
} conversion;

static void widen_convert_range(void *argument, int64_t begin, int64_t end)
{
    const conversion *job = argument;
    prn_convert((char *)job->to + prony_dtype_bytes(job->to_type, begin), job->to_type,
                (const char *)job->from + prony_dtype_bytes(job->from_type, begin), job->from_type, end - begin);
}

static void widen_convert(const prony_context *context, const prony_value *to, const prony_value *from)
{
    conversion job = {to->data, from->data, to->dtype, from->dtype};
    const int64_t count = prony_shape_numel(&from->shape);
    if (count > 0) prn_parallel_range(context->threads, count, 8192, widen_convert_range, &job);
}

/* ---- preparing: the host that the kernel sees packs from float32 forms of the constants */

typedef struct wide_services {
    prn_services services; /* first: what the kernel's context points at */
    const prony_context *context;
    const widened *wide;
    char *bytes[MOST_VALUES]; /* room for the float32 forms of constant inputs, filled when packed; NULL: not
                                 constant */
    uint32_t packed;
} wide_services;

typedef struct wide_pack {
    const wide_services *services;
    size_t input;
    prn_pack_fn *build;
    void *argument;
} wide_pack;

/* Nothing is converted for what another session has packed, or for what is not packed at all. */
static prony_status build_widened(const prony_context *context, void *argument, void *packed)
{
    const wide_pack *pack = argument;
    const wide_services *host = pack->services;
    widen_convert(host->context, &host->wide->inputs[pack->input], host->context->inputs[pack->input]);
    return pack->build(context, pack->argument, packed);
}

/* The identity of what is packed is the constant's own, so that sessions share it. */
static prony_status pack_widened(const prony_context *context, const void *source, const prn_pack_key *key,
                                 size_t bytes, void *argument, const void **out)
{
    wide_services *wide = (wide_services *)(uintptr_t)context->services;
    const prn_services *host = wide->context->services;
    for (size_t i = 0; i < wide->context->input_count; i++) {
        const prony_value *own = wide->context->inputs[i];
        const uintptr_t distance = (uintptr_t)source - (uintptr_t)wide->bytes[i];
        if (!wide->bytes[i] || (uintptr_t)source < (uintptr_t)wide->bytes[i] || distance > 2 * prn_value_bytes(own))
            continue;
        wide_pack pack = {wide, i, key->build, argument};
        prn_pack_key widened_key = *key;
        widened_key.inner = key->build;
        widened_key.build = build_widened;
        wide->packed |= UINT32_C(1) << i;
        return host->packed(context, (const char *)own->data + distance / 2, &widened_key, bytes, &pack, out);
    }
    return host->packed(context, source, key, bytes, argument, out);
}

static prony_status place_constants(wide_services *host, widened *wide)
{
    const prony_context *context = host->context;
    for (size_t i = 0; i < context->input_count; i++) {
        const prony_value *own = context->inputs[i];
        if (!is_half(own) || !own->data) continue;
        const size_t bytes = prn_value_bytes(&wide->inputs[i]);
        host->bytes[i] = prn_alloc_aligned(LINE_BYTES, bytes ? bytes : 1);
        if (!host->bytes[i]) return prn_no_memory(context->error);
        wide->inputs[i].data = host->bytes[i];
    }
    return PRONY_OK;
}

/* Prepares `inner` on a float32 view of a half-precision node. Constants are widened only while they are packed; the
 * state remembers which were. */
prony_status prn_widen_prepare(const prony_context *context, const prn_kernel *inner, prn_prepared *out)
{
    widened wide;
    wide_services host = {.context = context, .wide = &wide};
    prn_prepared own = {0};
    wide_state *state = prn_calloc(1, sizeof *state);
    if (!state) return prn_no_memory(context->error);
    if (context->services) host.services = *context->services;
    host.services.packed = pack_widened;
    prony_status status = PRONY_OK;
    if (!widen_node(context, 0, &wide, NULL))
        status = prony_fail(context, PRONY_LIMIT, "the inputs do not fit in memory");
    wide.context.services = &host.services;
    if (status == PRONY_OK && inner->prepare) status = place_constants(&host, &wide);
    if (status == PRONY_OK && inner->prepare) status = inner->prepare(&wide.context, &own);
    for (size_t i = 0; i < MOST_VALUES; i++) prn_free_aligned(host.bytes[i]);
    *state = (wide_state){own.state, host.packed};
    if (status == PRONY_OK && (!widen_node(context, state->packed, &wide, NULL) || own.scratch_bytes > SIZE_MAX / 2)) {
        if (inner->release) inner->release(own.state);
        status = prony_fail(context, PRONY_LIMIT, "the inputs do not fit in memory");
    }
    if (status == PRONY_OK)
        *out = (prn_prepared){state, wide.bytes + own.scratch_bytes};
    else
        prn_free(state);
    return status;
}

void prn_widen_release(void *argument, const prn_kernel *inner)
{
    wide_state *state = argument;
    if (state && inner->release) inner->release(state->inner);
    prn_free(state);
}

prony_status prn_widen_run(const prony_context *context, const prn_kernel *inner)
{
    const wide_state *state = context->state;
    widened wide;
    if (!widen_node(context, state->packed, &wide, context->scratch))
        return prony_fail(context, PRONY_LIMIT, "the inputs do not fit in memory");
    for (size_t i = 0; i < context->input_count; i++) {
        if (is_half(context->inputs[i]) && !(state->packed >> i & 1))
            widen_convert(context, &wide.inputs[i], context->inputs[i]);
    }
    wide.context.state = state->inner;
    wide.context.scratch_bytes = context->scratch_bytes - wide.bytes;
    wide.context.scratch = wide.context.scratch_bytes ? (char *)context->scratch + wide.bytes : NULL;
    PRN_TRY(inner->run(&wide.context));
    for (size_t k = 0; k < context->output_count; k++) {
        if (is_half(context->outputs[k])) widen_convert(context, context->outputs[k], &wide.outputs[k]);
    }
    return PRONY_OK;
}
