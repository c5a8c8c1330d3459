/* The library's package has no headers. Its functions are in one table, OrtApi, which only grows at its end. So a
 * position has the same meaning in every release since the requested version, and functions are called by position. All
 * of them except releases return a status: NULL, or an object with a message. */
#include "bench/versus/ort.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { API_VERSION = 12, LOG_ERRORS = 3, OPTIMISE_ALL = 99, ARENA_ALLOCATOR = 1, DEFAULT_MEMORY = 0 };

enum position {
    GET_ERROR_MESSAGE = 2,
    CREATE_ENV = 3,
    CREATE_SESSION = 7,
    RUN = 9,
    CREATE_SESSION_OPTIONS = 10,
    ENABLE_PROFILING = 14,
    SET_OPTIMISATION_LEVEL = 23,
    SET_INTRA_OP_THREADS = 24,
    INPUT_COUNT = 30,
    OUTPUT_COUNT = 31,
    OUTPUT_NAME = 37,
    CREATE_TENSOR_WITH_DATA = 49,
    IS_TENSOR = 50,
    TENSOR_DATA = 51,
    TENSOR_ELEMENT_TYPE = 60,
    TENSOR_DIMENSION_COUNT = 61,
    TENSOR_DIMENSIONS = 62,
    TENSOR_TYPE_AND_SHAPE = 65,
    CREATE_CPU_MEMORY_INFO = 69,
    ALLOCATOR_FREE = 76,
    DEFAULT_ALLOCATOR = 78,
    RELEASE_ENV = 92,
    RELEASE_STATUS = 93,
    RELEASE_MEMORY_INFO = 94,
    RELEASE_SESSION = 95,
    RELEASE_VALUE = 96,
    RELEASE_TYPE_AND_SHAPE = 99,
    RELEASE_SESSION_OPTIONS = 100
};

typedef struct api_base {
    const void *const *(*get_api)(uint32_t version);
    const char *(*version)(void);
} api_base;

static bool ort_take(ort *o, void *status)
{
    if (!status) return true;
    const char *message = ((const char *(*)(const void *))o->api[GET_ERROR_MESSAGE])(status);
    snprintf(o->error, sizeof o->error, "%s", message ? message : "it failed without a message");
    ((void (*)(void *))o->api[RELEASE_STATUS])(status);
    return false;
}

/* Arguments must have exactly the types of the function at this position. */
#define FUNCTION(o, position, ...) ((void *(*)(__VA_ARGS__))(o)->api[position])

static void ort_release(const ort *o, enum position position, void *object)
{
    if (object) ((void (*)(void *))o->api[position])(object);
}

bool ort_open(ort *o, const char *path)
{
    *o = (ort){.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!o->library) {
        const char *why = dlerror();
        snprintf(o->error, sizeof o->error, "%s", why ? why : "it cannot be loaded");
        return false;
    }
    const api_base *(*base_of)(void) = NULL;
    *(void **)&base_of = dlsym(o->library, "OrtGetApiBase");
    if (!base_of) {
        snprintf(o->error, sizeof o->error, "it is not ONNX Runtime: it has no OrtGetApiBase");
        return false;
    }
    const api_base *base = base_of();
    const char *version = base && base->version ? base->version() : NULL;
    snprintf(o->version, sizeof o->version, "%s", version ? version : "of unknown version");
    o->api = base && base->get_api ? base->get_api(API_VERSION) : NULL;
    if (o->api) return true;
    snprintf(o->error, sizeof o->error, "ONNX Runtime %.60s has no interface version %d; wanted 1.12 or newer",
             o->version, API_VERSION);
    return false;
}

static bool read_output_names(ort *o)
{
    if (!ort_take(o, FUNCTION(o, INPUT_COUNT, const void *, size_t *)(o->session, &o->input_count)) ||
        !ort_take(o, FUNCTION(o, OUTPUT_COUNT, const void *, size_t *)(o->session, &o->output_count)) ||
        !ort_take(o, FUNCTION(o, DEFAULT_ALLOCATOR, void **)(&o->allocator)))
        return false;
    o->output_names = calloc(o->output_count + 1, sizeof *o->output_names);
    o->outputs = calloc(o->output_count + 1, sizeof *o->outputs);
    if (!o->output_names || !o->outputs) return snprintf(o->error, sizeof o->error, "out of memory"), false;
    for (size_t k = 0; k < o->output_count; k++)
        if (!ort_take(o, FUNCTION(o, OUTPUT_NAME, const void *, size_t, void *, char **)(o->session, k, o->allocator,
                                                                                         &o->output_names[k])))
            return false;
    return true;
}

bool ort_session(ort *o, const char *model, int threads, const char *profile_prefix)
{
    return ort_take(o, FUNCTION(o, CREATE_ENV, int, const char *, void **)(LOG_ERRORS, "prony", &o->environment)) &&
           ort_take(o, FUNCTION(o, CREATE_SESSION_OPTIONS, void **)(&o->options)) &&
           ort_take(o, FUNCTION(o, SET_INTRA_OP_THREADS, void *, int)(o->options, threads)) &&
           ort_take(o, FUNCTION(o, SET_OPTIMISATION_LEVEL, void *, int)(o->options, OPTIMISE_ALL)) &&
           (!profile_prefix ||
            ort_take(o, FUNCTION(o, ENABLE_PROFILING, void *, const char *)(o->options, profile_prefix))) &&
           ort_take(o, FUNCTION(o, CREATE_SESSION, const void *, const char *, const void *,
                                void **)(o->environment, model, o->options, &o->session)) &&
           ort_take(o, FUNCTION(o, CREATE_CPU_MEMORY_INFO, int, int, void **)(ARENA_ALLOCATOR, DEFAULT_MEMORY,
                                                                              &o->memory)) &&
           read_output_names(o);
}

bool ort_set_input(ort *o, size_t index, const prony_value *value)
{
    static char nothing[64]; /* of tensors without elements */
    const size_t bytes = prony_dtype_bytes(value->dtype, prony_shape_numel(&value->shape));
    ort_release(o, RELEASE_VALUE, o->inputs[index]);
    o->inputs[index] = NULL;
    return ort_take(o, FUNCTION(o, CREATE_TENSOR_WITH_DATA, const void *, void *, size_t, const int64_t *, size_t, int,
                                void **)(o->memory, bytes ? value->data : nothing, bytes, value->shape.dim,
                                         (size_t)value->shape.rank, (int)value->dtype, &o->inputs[index]));
}

void ort_feed_back(ort *o, size_t output, size_t input)
{
    if (o->inputs[input] != o->outputs[output]) ort_release(o, RELEASE_VALUE, o->inputs[input]);
    o->inputs[input] = o->outputs[output];
    o->outputs[output] = NULL;
}

void ort_write_into_input(ort *o, size_t output, size_t input)
{
    o->outputs[output] = o->inputs[input];
}

bool ort_bind(ort *o, const ort_input *inputs, size_t count)
{
    o->inputs = calloc(count + 1, sizeof *o->inputs);
    o->input_names = calloc(count + 1, sizeof *o->input_names);
    if (!o->inputs || !o->input_names) return snprintf(o->error, sizeof o->error, "out of memory"), false;
    o->input_count = count;
    for (size_t i = 0; i < count; i++) {
        o->input_names[i] = inputs[i].name;
        if (!ort_set_input(o, i, inputs[i].value)) return false;
    }
    return true;
}

bool ort_run(ort *o)
{
    return ort_take(
        o, FUNCTION(o, RUN, void *, const void *, const char *const *, const void *const *, size_t, const char *const *,
                    size_t, void **)(o->session, NULL, o->input_names, (const void *const *)o->inputs, o->input_count,
                                     (const char *const *)o->output_names, o->output_count, o->outputs));
}

bool ort_output(ort *o, size_t index, prony_value *out)
{
    void *value = o->outputs[index], *shape = NULL;
    int tensor = 0, type = 0;
    size_t rank = 0;
    *out = (prony_value){.kind = PRONY_TENSOR};
    if (!ort_take(o, FUNCTION(o, IS_TENSOR, const void *, int *)(value, &tensor))) return false;
    if (!tensor) return snprintf(o->error, sizeof o->error, "output %zu is not a tensor", index), false;
    bool known = ort_take(o, FUNCTION(o, TENSOR_TYPE_AND_SHAPE, const void *, void **)(value, &shape)) &&
                 ort_take(o, FUNCTION(o, TENSOR_ELEMENT_TYPE, const void *, int *)(shape, &type)) &&
                 ort_take(o, FUNCTION(o, TENSOR_DIMENSION_COUNT, const void *, size_t *)(shape, &rank));
    if (known && (rank > PRONY_MAX_RANK || type <= 0 || type >= PRONY_DTYPE_COUNT)) {
        snprintf(o->error, sizeof o->error, "output %zu has rank %zu and type %d", index, rank, type);
        known = false;
    }
    if (known && type == PRONY_STRING) {
        snprintf(o->error, sizeof o->error, "output %zu is text, which cannot be compared", index);
        known = false;
    }
    known = known &&
            ort_take(o, FUNCTION(o, TENSOR_DIMENSIONS, const void *, int64_t *, size_t)(shape, out->shape.dim, rank)) &&
            ort_take(o, FUNCTION(o, TENSOR_DATA, void *, void **)(value, &out->data));
    ort_release(o, RELEASE_TYPE_AND_SHAPE, shape);
    out->dtype = (prony_dtype)type;
    out->shape.rank = (int)rank;
    return known;
}

void ort_drop_outputs(ort *o)
{
    for (size_t k = 0; k < o->output_count && o->outputs; k++) {
        ort_release(o, RELEASE_VALUE, o->outputs[k]);
        o->outputs[k] = NULL;
    }
}

void ort_close(ort *o)
{
    if (o->api) {
        ort_drop_outputs(o);
        for (size_t i = 0; i < o->input_count && o->inputs; i++) ort_release(o, RELEASE_VALUE, o->inputs[i]);
        for (size_t k = 0; k < o->output_count && o->output_names; k++)
            if (o->output_names[k])
                (void)ort_take(o, FUNCTION(o, ALLOCATOR_FREE, void *, void *)(o->allocator, o->output_names[k]));
        ort_release(o, RELEASE_SESSION, o->session);
        ort_release(o, RELEASE_SESSION_OPTIONS, o->options);
        ort_release(o, RELEASE_MEMORY_INFO, o->memory);
        ort_release(o, RELEASE_ENV, o->environment);
    }
    free(o->inputs);
    free(o->input_names);
    free(o->outputs);
    free(o->output_names);
    *o = (ort){0};
}
