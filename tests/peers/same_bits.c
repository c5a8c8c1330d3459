/* Runs models at every number of intra-op and inter-op threads and compares all outputs with one thread's, to the bit.
 *
 *     same_bits [--threads N] [--workers N] [--runs N] MODEL...
 *
 * Every -x 1..threads times every -y 1..workers (4 and 4) runs `runs` times (20), on inputs from one seed; of free
 * dimensions that the model says nothing of, the library's example is taken. Prints a line a model. Exit status: 0 all
 * the same, 1 a model does not run, 2 wrong usage, 3 something differs. */
#include "prony.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct limits {
    int threads, workers, runs;
} limits;

typedef struct outputs {
    uint64_t *hash;
    size_t count;
} outputs;

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < size; i++) hash = (hash ^ p[i]) * UINT64_C(1099511628211); /* FNV-1a */
    return hash;
}

static uint64_t hash_value(const prony_value *value)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    hash = hash_bytes(hash, &value->shape.rank, sizeof value->shape.rank);
    hash = hash_bytes(hash, value->shape.dim, (size_t)value->shape.rank * sizeof value->shape.dim[0]);
    if (value->kind == PRONY_TENSOR && value->data && value->dtype != PRONY_STRING)
        hash = hash_bytes(hash, value->data, prony_dtype_bytes(value->dtype, prony_shape_numel(&value->shape)));
    for (size_t i = 0; value->kind != PRONY_TENSOR && value->items && i < value->count; i++)
        hash ^= hash_value(&value->items[i]) * (2 * i + 1);
    return hash;
}

/* The first run fills `expected`; later runs are compared with it. Returns the number of the first output that
 * differs, or -1. */
static prony_status compare(prony_session *session, outputs *expected, bool first, long *differs, prony_error *error)
{
    for (size_t i = 0; i < expected->count; i++) {
        const prony_value *value = NULL;
        prony_status status = prony_session_output(session, i, &value, error);
        if (status != PRONY_OK) return status;
        uint64_t hash = hash_value(value);
        if (first) expected->hash[i] = hash;
        if (hash != expected->hash[i] && *differs < 0) *differs = (long)i;
    }
    return PRONY_OK;
}

enum { MOST_DIMS = 32 };

/* Free dimensions for which the shapes fit. */
typedef struct extents {
    prony_free_dim *rows;
    prony_dim dims[MOST_DIMS];
    size_t count;
} extents;

static prony_status find_extents(extents *e, prony_model *model, prony_error *error)
{
    size_t count = 0;
    prony_status status = prony_model_free_dims(&e->rows, &count, model, NULL, error);
    for (size_t i = 0; status == PRONY_OK && i < count && e->count < MOST_DIMS; i++)
        if (e->rows[i].value < 0 && e->rows[i].example > 0)
            e->dims[e->count++] = (prony_dim){e->rows[i].name, e->rows[i].example};
    return status;
}

static prony_status run_one(prony_model *model, const extents *free, int threads, int workers, int runs,
                            outputs *expected, long *differs, prony_error *error)
{
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prony_session *session = NULL;
    options.intra_op_threads = threads;
    options.inter_op_threads = workers;
    options.dims = free->dims;
    options.dim_count = free->count;
    prony_status status = prony_session_create(&session, model, &options, error);
    if (status == PRONY_OK) status = prony_session_generate_inputs(session, 1, error);
    for (int run = 0; status == PRONY_OK && run < runs; run++) {
        status = prony_session_run(session, error);
        bool first = threads == 1 && workers == 1 && run == 0;
        if (status == PRONY_OK) status = compare(session, expected, first, differs, error);
    }
    prony_session_release(session);
    return status;
}

static int check_model(const char *path, const limits *most)
{
    prony_error error = {0};
    prony_model *model = NULL;
    outputs expected = {0};
    extents free_dims = {0};
    int runs = 0, result = 0;
    prony_status status = prony_model_load(&model, path, NULL, &error);
    if (status == PRONY_OK) {
        expected.count = prony_model_output_count(model);
        expected.hash = calloc(expected.count + 1, sizeof *expected.hash);
        if (!expected.hash) abort();
        status = find_extents(&free_dims, model, &error);
    }
    for (int x = 1; status == PRONY_OK && x <= most->threads; x++) {
        for (int y = 1; status == PRONY_OK && y <= most->workers; y++) {
            long differs = -1;
            status = run_one(model, &free_dims, x, y, most->runs, &expected, &differs, &error);
            runs += most->runs;
            if (differs < 0) continue;
            printf("%s: -x %d -y %d: output %ld differs from one thread's\n", path, x, y, differs);
            result = 3;
        }
    }
    if (status != PRONY_OK) {
        fprintf(stderr, "same_bits: %s\n", error.message);
        result = 1;
    } else if (result == 0) {
        printf("%s: %d runs, the same bits\n", path, runs);
    }
    fflush(stdout);
    free(expected.hash);
    prony_rows_release(free_dims.rows);
    prony_model_release(model);
    return result;
}

static int *option_of(const char *name, limits *most)
{
    if (strcmp(name, "--threads") == 0) return &most->threads;
    if (strcmp(name, "--workers") == 0) return &most->workers;
    if (strcmp(name, "--runs") == 0) return &most->runs;
    return NULL;
}

int main(int argc, char **argv)
{
    limits most = {4, 4, 20};
    int result = 0, models = 0;
    for (int i = 1; i < argc; i++) {
        int *option = option_of(argv[i], &most);
        if (option && (i + 1 == argc || (*option = atoi(argv[++i])) < 1)) models = -argc;
        if (option) continue;
        int one = check_model(argv[i], &most);
        if (one > result) result = one;
        models++;
    }
    if (models > 0) return result;
    fprintf(stderr, "usage: same_bits [--threads N] [--workers N] [--runs N] MODEL...\n");
    return 2;
}
