/* A library with as much of ONNX Runtime's C interface as `prony versus` calls, for tests without it: its one model is
 * y = 2 max(x, 0) on float32, whatever file it is given. FAKE_ORT says what goes wrong: "old" has no interface,
 * "refuse" takes no model, "wrong" computes something else, "shape" gives another shape, "silent" writes a profile
 * without runs.
 *
 * In mode "decoder" the model takes int64 ids and FAKE_ORT_CACHES caches, which it returns unchanged; the id after n is
 * n + 1 modulo 16. The second process with FAKE_ORT_STOP interrupts its parent. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

typedef struct fake_status {
    char message[200];
} fake_status;

enum { INT64 = 7, VOCABULARY = 16 };

typedef struct fake_value {
    const void *borrowed;
    float *owned;
    int64_t dims[8];
    size_t rank, count;
} fake_value;

typedef struct fake_session {
    char profile[4096]; /* file name; "": none */
    int threads;
    int64_t runs;
} fake_session;

static int is_mode(const char *mode)
{
    const char *said = getenv("FAKE_ORT");
    return said && strcmp(said, mode) == 0;
}

static void *fail_with(const char *message)
{
    fake_status *status = calloc(1, sizeof *status);
    if (status) snprintf(status->message, sizeof status->message, "%s", message);
    return status;
}

static const char *get_error_message(const void *status)
{
    return ((const fake_status *)status)->message;
}

static void *create_env(int level, const char *id, void **out)
{
    (void)level;
    (void)id;
    *out = calloc(1, 1);
    return NULL;
}

static void *create_session_options(void **out)
{
    *out = calloc(1, sizeof(fake_session));
    return NULL;
}

static void *set_threads(void *options, int threads)
{
    ((fake_session *)options)->threads = threads;
    return NULL;
}

static void *set_level(void *options, int level)
{
    (void)options;
    (void)level;
    return NULL;
}

static void *enable_profiling(void *options, const char *prefix)
{
    fake_session *o = options;
    snprintf(o->profile, sizeof o->profile, "%s_0.json", prefix);
    return NULL;
}

/* Interrupts the parent if the file FAKE_ORT_STOP exists, else makes it. */
static void stop_parent(void)
{
    const char *path = getenv("FAKE_ORT_STOP");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (file) {
        kill(getppid(), SIGINT);
        sleep(60);
    } else if (path) {
        file = fopen(path, "w");
    }
    if (file) fclose(file);
}

static void *create_session(const void *env, const char *path, const void *options, void **out)
{
    (void)env;
    FILE *file = fopen(path, "rb");
    if (!file) return fail_with("the fake finds no such model");
    fclose(file);
    if (is_mode("refuse")) return fail_with("the fake knows no operator Relu");
    stop_parent();
    fake_session *session = malloc(sizeof *session);
    if (!session) return fail_with("the fake has no memory");
    *session = *(const fake_session *)options;
    *out = session;
    return NULL;
}

static size_t cache_count(void)
{
    const char *count = is_mode("decoder") ? getenv("FAKE_ORT_CACHES") : NULL;
    return count ? (size_t)strtoul(count, NULL, 10) : 0;
}

static void *count_values(const void *session, size_t *out)
{
    (void)session;
    *out = 1 + cache_count();
    return NULL;
}

static void *output_name(const void *session, size_t index, void *allocator, char **out)
{
    (void)session;
    (void)index;
    (void)allocator;
    *out = malloc(2);
    if (*out) memcpy(*out, "y", 2);
    return NULL;
}

static void *default_allocator(void **out)
{
    static int allocator;
    *out = &allocator;
    return NULL;
}

static void *allocator_free(void *allocator, void *block)
{
    (void)allocator;
    free(block);
    return NULL;
}

static void *create_memory_info(int allocator, int type, void **out)
{
    (void)allocator;
    (void)type;
    *out = calloc(1, 1);
    return NULL;
}

static void *create_tensor(const void *memory, void *data, size_t bytes, const int64_t *dims, size_t rank, int type,
                           void **out)
{
    (void)memory;
    if ((type != 1 && !(type == INT64 && is_mode("decoder"))) || rank > 8) return fail_with("the fake wants float32");
    fake_value *value = calloc(1, sizeof *value);
    if (!value) return fail_with("the fake has no memory");
    value->borrowed = data;
    value->rank = rank;
    value->count = bytes / (type == INT64 ? sizeof(int64_t) : sizeof(float));
    memcpy(value->dims, dims, rank * sizeof *dims);
    *out = value;
    return NULL;
}

static fake_value *copy_value(const fake_value *from, size_t count)
{
    fake_value *to = malloc(sizeof *to);
    if (!to) return NULL;
    *to = *from;
    to->borrowed = NULL;
    to->owned = calloc(count + 1, sizeof *to->owned);
    return to;
}

static void *run_decoder(const void *const *inputs, void **outputs)
{
    const fake_value *ids = inputs[0];
    fake_value *logits = copy_value(ids, ids->count * VOCABULARY);
    if (!logits || !logits->owned) return fail_with("the fake has no memory");
    logits->dims[logits->rank++] = VOCABULARY;
    for (size_t k = 0; k < ids->count; k++)
        logits->owned[k * VOCABULARY + (size_t)(((const int64_t *)ids->borrowed)[k] + 1) % VOCABULARY] = 1;
    outputs[0] = logits;
    for (size_t k = 1; k <= cache_count(); k++)
        if (!(outputs[k] = copy_value(inputs[k], 0))) return fail_with("the fake has no memory");
    return NULL;
}

static void *run(void *opaque, const void *options, const char *const *names, const void *const *inputs, size_t count,
                 const char *const *output_names, size_t output_count, void **outputs)
{
    fake_session *session = opaque;
    (void)options;
    if (is_mode("decoder")) return run_decoder(inputs, outputs);
    if (count != 1 || output_count != 1 || (strcmp(names[0], "x") != 0 && strcmp(names[0], "x=1") != 0) ||
        strcmp(output_names[0], "y") != 0)
        return fail_with("the fake wants x and gives y");
    const fake_value *x = inputs[0];
    const float *from = x->borrowed;
    fake_value *y = copy_value(x, x->count);
    if (!y) return fail_with("the fake has no memory");
    for (size_t i = 0; y->owned && i < x->count; i++)
        y->owned[i] = (from[i] > 0 ? 2 * from[i] : 0) + (is_mode("wrong") ? 1.0f : 0.0f);
    if (is_mode("shape")) y->dims[y->rank++] = 1;
    outputs[0] = y;
    session->runs++;
    return NULL;
}

static void *is_tensor(const void *value, int *out)
{
    (void)value;
    *out = 1;
    return NULL;
}

static void *tensor_data(void *value, void **out)
{
    *out = ((fake_value *)value)->owned;
    return NULL;
}

static void *tensor_shape(const void *value, void **out)
{
    fake_value *copy = malloc(sizeof *copy);
    if (!copy) return fail_with("the fake has no memory");
    *copy = *(const fake_value *)value;
    *out = copy;
    return NULL;
}

static void *element_type(const void *shape, int *out)
{
    (void)shape;
    *out = 1;
    return NULL;
}

static void *dimension_count(const void *shape, size_t *out)
{
    *out = ((const fake_value *)shape)->rank;
    return NULL;
}

static void *dimensions(const void *shape, int64_t *out, size_t count)
{
    memcpy(out, ((const fake_value *)shape)->dims, count * sizeof *out);
    return NULL;
}

static void release(void *object)
{
    free(object);
}

static void release_value(void *value)
{
    free(((fake_value *)value)->owned);
    free(value);
}

/* Of each run 7 us in the Relu, fused and in another layout, 5 us in the Mul, run in two parts, and 2 us in a node of
 * its own. */
static void release_session(void *opaque)
{
    fake_session *session = opaque;
    FILE *file = *session->profile ? fopen(session->profile, "w") : NULL;
    if (file) {
        fprintf(file, "[\n{\"cat\":\"Session\",\"name\":\"session_initialization\",\"dur\":100,\"ts\":1,\"args\":{}}");
        for (int64_t r = 0; r < session->runs && !is_mode("silent"); r++) {
            fprintf(file, ",\n{\"cat\":\"Node\",\"name\":\"/body/act/Relu_output_0_nchwc_kernel_time\",\"dur\":7,"
                          "\"args\":{\"op_name\":\"Relu\",\"node_index\":\"0\"}}");
            for (int part = 0; part < 2; part++)
                fprintf(file,
                        ",\n{\"cat\":\"Node\",\"name\":\"/body/Mul/MulFusion/_kernel_time\",\"dur\":%d,"
                        "\"args\":{\"op_name\":\"FusedMul\",\"node_index\":\"1\"}}",
                        2 + part);
            fprintf(file, ",\n{\"cat\":\"Node\",\"name\":\"ReorderOutput_token_1_kernel_time\",\"dur\":2,"
                          "\"args\":{\"op_name\":\"ReorderOutput\",\"node_index\":\"2\"}}"
                          ",\n{\"cat\":\"Node\",\"name\":\"/body/Mul_fence_before\",\"dur\":90,\"args\":{}}"
                          ",\n{\"cat\":\"Session\",\"name\":\"model_run\",\"dur\":14,\"args\":{}}");
        }
        fprintf(file, "\n]\n");
        fclose(file);
    }
    free(session);
}

/* Positions in the published table. */
static const void *const *get_api(uint32_t version)
{
    static void (*table[128])(void);
    if (version != 12 || is_mode("old")) return NULL;
#define SET(position, function) table[position] = (void (*)(void))(function)
    SET(2, get_error_message);
    SET(3, create_env);
    SET(7, create_session);
    SET(9, run);
    SET(10, create_session_options);
    SET(14, enable_profiling);
    SET(23, set_level);
    SET(24, set_threads);
    SET(30, count_values);
    SET(31, count_values);
    SET(37, output_name);
    SET(49, create_tensor);
    SET(50, is_tensor);
    SET(51, tensor_data);
    SET(60, element_type);
    SET(61, dimension_count);
    SET(62, dimensions);
    SET(65, tensor_shape);
    SET(69, create_memory_info);
    SET(76, allocator_free);
    SET(78, default_allocator);
    for (int k = 92; k <= 100; k++) SET(k, release);
    SET(95, release_session);
    SET(96, release_value);
    return (const void *const *)table;
}

static const char *get_version(void)
{
    return "9.9.fake";
}

typedef struct fake_base {
    const void *const *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
} fake_base;

EXPORT const fake_base *OrtGetApiBase(void);

EXPORT const fake_base *OrtGetApiBase(void)
{
    static const fake_base base = {get_api, get_version};
    return &base;
}
