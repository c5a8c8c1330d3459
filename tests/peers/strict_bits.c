/* Hashes of outputs at fp32-strict, for comparisons between builds: other compilers, other versions of oneDNN, or none.
 *
 *     strict_bits [--graphs N] [MODEL...]               prints NAME HASH, a line each
 *     strict_bits --expect FILE [--graphs N] [MODEL...] compares with what another build printed
 *
 * The models are those named, the first N random graphs (300), and every row of tests/operators/cases. Inputs are the
 * same in every build. Exit status: 0 done, 1 a model does not run, 2 wrong usage, 3 a line of FILE differs, 77 the
 * precision is not available: it needs fused multiply-add. */
#include "base/cpu/isa.h"
#include "base/hash/sha256.h"
#include "tests/support/graph_run.h"
#include "tests/support/op_case_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_DIGITS = 16, NAME_BYTES = 96 };

typedef struct hash_line {
    char name[NAME_BYTES], hash[HASH_DIGITS + 1];
} hash_line;

static hash_line *lines;
static size_t line_count, line_capacity;

static void add_line(const char *name, prn_sha256 *hash)
{
    char text[65];
    if (line_count == line_capacity) {
        line_capacity = line_capacity ? 2 * line_capacity : 1024;
        lines = realloc(lines, line_capacity * sizeof *lines);
        if (!lines) abort();
    }
    hash_line *line = &lines[line_count++];
    prn_sha256_text(hash, text);
    snprintf(line->name, sizeof line->name, "%s", name);
    snprintf(line->hash, sizeof line->hash, "%.*s", HASH_DIGITS, text);
}

static bool is_nan(const char *at, prony_dtype dtype)
{
    float number;
    double wide;
    uint16_t half;
    switch (dtype) {
    case PRONY_FLOAT32:
        memcpy(&number, at, sizeof number);
        return number != number;
    case PRONY_FLOAT64:
        memcpy(&wide, at, sizeof wide);
        return wide != wide;
    case PRONY_FLOAT16:
        memcpy(&half, at, sizeof half);
        return (half & 0x7fff) > 0x7c00;
    case PRONY_BFLOAT16:
        memcpy(&half, at, sizeof half);
        return (half & 0x7fff) > 0x7f80;
    default:
        return false;
    }
}

/* Every NaN counts as the same one: x86-64 makes a NaN with a sign, AArch64 one without. */
static void hash_elements(prn_sha256 *hash, const prony_value *value, int64_t count)
{
    const char *data = value->data;
    const bool floats = value->dtype == PRONY_FLOAT32 || value->dtype == PRONY_FLOAT64 ||
                        value->dtype == PRONY_FLOAT16 || value->dtype == PRONY_BFLOAT16;
    const size_t size = prony_dtype_bytes(value->dtype, 1);
    for (int64_t i = 0; floats && i < count; i++) {
        const char *at = data + (size_t)i * size;
        const bool nan = is_nan(at, value->dtype);
        prn_sha256_add(hash, nan ? "NaN" : at, nan ? 3 : size);
    }
    if (!floats) prn_sha256_add(hash, data, prony_dtype_bytes(value->dtype, count));
}

static void hash_value(prn_sha256 *hash, const prony_value *value)
{
    const int32_t head[] = {(int32_t)value->kind, (int32_t)value->dtype, value->shape.rank};
    prn_sha256_add(hash, head, sizeof head);
    prn_sha256_add(hash, value->shape.dim, (size_t)value->shape.rank * sizeof value->shape.dim[0]);
    for (size_t i = 0; value->kind != PRONY_TENSOR && i < value->count; i++) hash_value(hash, &value->items[i]);
    if (value->kind != PRONY_TENSOR || !value->data) return;
    const int64_t count = prony_shape_numel(&value->shape);
    if (value->dtype != PRONY_STRING) {
        hash_elements(hash, value, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const prony_string *text = (const prony_string *)value->data + i;
        prn_sha256_add(hash, text->data, text->size);
    }
}

/* ---- models: inputs from the library's generator ---- */

static prony_status hash_outputs(prony_session *session, const prony_model *model, prn_sha256 *hash, prony_error *error)
{
    prony_status status = prony_session_run(session, error);
    for (size_t i = 0; status == PRONY_OK && i < prony_model_output_count(model); i++) {
        const prony_value *value = NULL;
        status = prony_session_output(session, i, &value, error);
        if (status == PRONY_OK) hash_value(hash, value);
    }
    return status;
}

static bool add_model(const char *path)
{
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.precision = "fp32-strict";
    prn_sha256 hash;
    prn_sha256_init(&hash);
    prony_status status = prony_model_load(&model, path, NULL, &error);
    if (status == PRONY_OK) status = prony_session_create(&session, model, &options, &error);
    if (status == PRONY_OK) status = prony_session_generate_inputs(session, 0, &error);
    if (status == PRONY_OK) status = hash_outputs(session, model, &hash, &error);
    if (status != PRONY_OK) fprintf(stderr, "strict_bits: %s: %s\n", path, error.message);
    const char *slash = strrchr(path, '/');
    if (status == PRONY_OK) add_line(slash ? slash + 1 : path, &hash);
    prony_session_release(session);
    prony_model_release(model);
    return status == PRONY_OK;
}

/* ---- random graphs ---- */

static void add_graph(uint64_t seed)
{
    const graph_way way = {.name = "strict", .threads = 2, .runs = 1, .precision = PRONY_PRECISION_FP32_STRICT};
    random_graph *g = random_graph_make(seed, RG_ANY);
    graph_model model;
    graph_outputs outputs = {0};
    char name[NAME_BYTES];
    prn_sha256 hash;
    prn_sha256_init(&hash);
    if (graph_open(&model, g) == PRONY_OK) graph_run(&model, &way, &outputs);
    for (size_t i = 0; i < outputs.count; i++) hash_value(&hash, &outputs.values[i]);
    snprintf(name, sizeof name, "graph-%" PRIu64, seed);
    if (outputs.count) add_line(name, &hash);
    graph_outputs_free(&outputs);
    graph_close(&model);
    random_graph_free(g);
}

/* ---- rows of tests/operators/cases ---- */

static prony_status run_row(const op_case_node *row, prn_sha256 *hash)
{
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.precision = "fp32-strict";
    options.intra_op_threads = 1;
    options.max_loop_trips = 1000;
    options.memory_limit_bytes = (uint64_t)64 << 20;
    size_t size;
    uint8_t *bytes = op_case_model(row, OP_CASE_AS_WRITTEN, &size);
    prony_status status = prony_model_load_memory(&model, "case", bytes, size, NULL, &error);
    if (status == PRONY_OK) status = prony_session_create(&session, model, &options, &error);
    for (size_t i = 0; status == PRONY_OK && i < row->input_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "x%zu", i);
        const bool constant = row->inputs[i] && row->constant[i] && row->inputs[i]->dtype != PRONY_STRING;
        if (row->inputs[i] && !constant) status = prony_session_set_input(session, name, row->inputs[i], &error);
    }
    if (status == PRONY_OK) status = hash_outputs(session, model, hash, &error);
    prony_session_release(session);
    prony_model_release(model);
    free(bytes);
    return status;
}

/* A row's name is its operator and a hash of its text, so that rows may come and go. Rows that do not run as a model
 * have no line. */
static void add_row(const op_case *row)
{
    op_case_node node;
    char message[512], key[65], name[NAME_BYTES];
    prn_sha256 hash;
    if (row->refused || !op_case_parse(&node, row, message, sizeof message)) return;
    prn_sha256_init(&hash);
    prn_sha256_add(&hash, row->attributes, strlen(row->attributes) + 1);
    prn_sha256_add(&hash, row->inputs, strlen(row->inputs) + 1);
    prn_sha256_text(&hash, key);
    snprintf(name, sizeof name, "%.40s-%d-%.8s", row->op, (int)row->opset, key);
    prn_sha256_init(&hash);
    if (run_row(&node, &hash) == PRONY_OK) add_line(name, &hash);
    op_case_node_release(&node);
}

static bool add_rows(void)
{
    static op_case_list cases;
    char message[512] = "";
    if (!op_cases_load(&cases, PRN_SOURCE_DIR "/tests/operators/cases", message, sizeof message)) {
        fprintf(stderr, "strict_bits: %s\n", message);
        return false;
    }
    for (size_t i = 0; i < cases.count; i++) add_row(&cases.items[i]);
    op_cases_release(&cases);
    return true;
}

/* ---- comparison ---- */

static const hash_line *find_line(const char *name)
{
    for (size_t i = 0; i < line_count; i++)
        if (strcmp(lines[i].name, name) == 0) return &lines[i];
    return NULL;
}

static int compare_with(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "strict_bits: cannot read %s\n", path);
        return 2;
    }
    char name[NAME_BYTES], hash[HASH_DIGITS + 1];
    size_t same = 0, differ = 0, missing = 0;
    while (fscanf(file, "%95s %16s", name, hash) == 2) {
        const hash_line *line = find_line(name);
        missing += !line;
        if (line && strcmp(line->hash, hash) == 0) same++;
        if (!line || strcmp(line->hash, hash) == 0) continue;
        printf("%s differs\n", name);
        differ++;
    }
    fclose(file);
    printf("%zu outputs are the same, %zu differ, %zu are missing here\n", same, differ, missing);
    return differ ? 3 : 0;
}

int main(int argc, char **argv)
{
    if (!prn_isa_has(PRN_HAS_FMA)) {
        fputs("strict_bits: left out: fp32-strict needs fused multiply-add\n", stderr);
        return 77;
    }
    const char *expect = NULL;
    uint64_t graphs = 300;
    bool good = true;
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "--expect") == 0) {
            expect = argv[i + 1];
        } else if (strcmp(argv[i], "--graphs") == 0) {
            graphs = strtoull(argv[i + 1], NULL, 10);
        } else {
            fprintf(stderr, "strict_bits: unknown option '%s'\n", argv[i]);
            return 2;
        }
    }
    for (; i < argc; i++) good &= add_model(argv[i]);
    for (uint64_t seed = 1; seed <= graphs; seed++) add_graph(seed);
    good &= add_rows();
    if (!good) return 1;
    if (expect) return compare_with(expect);
    for (size_t k = 0; k < line_count; k++) printf("%s %s\n", lines[k].name, lines[k].hash);
    return 0;
}
