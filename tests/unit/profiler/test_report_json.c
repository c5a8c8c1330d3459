/* The JSON report, read back with cJSON: its keys are those of docs/schemas/report.schema.json and
 * docs/reference/report.md, its numbers those of the report, its strings valid for every model name. */
#include "failure_trace.h"
#include "tests/support/sample_report.h"
#include "tests/support/text_sink.h"

#include "profiler/json/json_write.h"

#include <cjson/cJSON.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

static cJSON *write_and_parse(const prony_report *r, bool memory)
{
    sink s = {0};
    prony_error error = {0};
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.memory = memory;
    if (prn_report_write_json(r, &options, sink_write, &s, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(s.text[s.size - 1], '\n');
    cJSON *json = cJSON_ParseWithOpts(s.text, NULL, true);
    if (!json) fail_msg("no JSON: %.200s", cJSON_GetErrorPtr() ? cJSON_GetErrorPtr() : s.text);
    prn_free(s.text);
    return json;
}

static char *read_text(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/docs/%s", PRN_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s: cannot be read", path);
    static char text[262144];
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_true(size < sizeof text - 1);
    text[size] = '\0';
    return text;
}

static double number(const cJSON *json, const char *path)
{
    char part[64];
    const cJSON *at = json;
    while (*path) {
        size_t span = strcspn(path, ".");
        memcpy(part, path, span);
        part[span] = '\0';
        const cJSON *next =
            cJSON_IsArray(at) ? cJSON_GetArrayItem(at, atoi(part)) : cJSON_GetObjectItemCaseSensitive(at, part);
        if (!next) fail_msg("no key %s", part);
        at = next;
        path += span + (path[span] == '.');
    }
    assert_true(cJSON_IsNumber(at));
    return at->valuedouble;
}

/* ---- against the schema ---- */

static const cJSON *resolve(const cJSON *schema, const cJSON *root)
{
    const cJSON *one_of = cJSON_GetObjectItemCaseSensitive(schema, "oneOf");
    if (one_of) schema = cJSON_GetArrayItem(one_of, 0);
    const cJSON *reference = cJSON_GetObjectItemCaseSensitive(schema, "$ref");
    if (!reference) return schema;
    const char *name = strrchr(reference->valuestring, '/') + 1;
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(root, "$defs"), name);
    assert_non_null(found);
    return found;
}

/* Every key that was written is in the schema, every key that the schema requires was written, and every schema key met
 * is marked, so that what nothing writes can be told. */
static void check_keys(const cJSON *json, const cJSON *schema, const cJSON *root, const char *where)
{
    schema = resolve(schema, root);
    if (cJSON_IsArray(json)) {
        const cJSON *items = cJSON_GetObjectItemCaseSensitive(schema, "items"), *element;
        assert_non_null(items);
        cJSON_ArrayForEach(element, json) check_keys(element, items, root, where);
        return;
    }
    if (!cJSON_IsObject(json)) return;
    const cJSON *properties = cJSON_GetObjectItemCaseSensitive(schema, "properties"), *member;
    if (!properties) {
        assert_non_null(cJSON_GetObjectItemCaseSensitive(schema, "additionalProperties"));
        return;
    }
    cJSON_ArrayForEach(member, json)
    {
        cJSON *property = cJSON_GetObjectItemCaseSensitive(properties, member->string);
        if (!property) fail_msg("%s.%s is not in the schema", where, member->string);
        property->valueint = 1;
        check_keys(member, property, root, member->string);
    }
    cJSON_ArrayForEach(member, cJSON_GetObjectItemCaseSensitive(schema, "required"))
    {
        if (!cJSON_GetObjectItemCaseSensitive(json, member->valuestring))
            fail_msg("%s.%s is required and missing", where, member->valuestring);
    }
}

static void check_all_met(const cJSON *schema, const char *where)
{
    const cJSON *properties = cJSON_GetObjectItemCaseSensitive(schema, "properties"), *child;
    cJSON_ArrayForEach(child, properties)
    {
        if (child->valueint != 1) fail_msg("nothing wrote %s.%s", where, child->string);
    }
    cJSON_ArrayForEach(child, schema)
    {
        if (cJSON_IsObject(child)) check_all_met(child, child->string ? child->string : where);
    }
}

static void check_documented(const cJSON *json, const char *text)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, json)
    {
        if (cJSON_IsObject(json) && strcmp(json->string ? json->string : "", "facts") != 0 &&
            strcmp(json->string ? json->string : "", "dims") != 0 &&
            strcmp(json->string ? json->string : "", "libraries") != 0) {
            char quoted[80], nested[80], list[80], map[80];
            snprintf(quoted, sizeof quoted, "`%s`", member->string);
            snprintf(nested, sizeof nested, ".%s`", member->string);
            snprintf(list, sizeof list, "`%s[", member->string);
            snprintf(map, sizeof map, "`%s{}`", member->string);
            if (!strstr(text, quoted) && !strstr(text, nested) && !strstr(text, list) && !strstr(text, map) &&
                strcmp(member->string, "schema") != 0 && strcmp(member->string, "coverage") != 0 &&
                strcmp(member->string, "overhead") != 0)
                fail_msg("docs/reference/report.md does not explain %s", member->string);
        }
        check_documented(member, text);
    }
}

/* A subgraph of layer 4, part of operator 2, in which a run was cancelled. */
static void add_subgraph(prony_report *r)
{
    static const uint32_t none[] = {PRONY_NO_INDEX, PRONY_NO_INDEX}, first[] = {0};
    prony_nested_row *layer = sample_alloc(r, 1, sizeof *layer), *row = sample_alloc(r, 1, sizeof *row);
    *row = (prony_nested_row){.parent = PRONY_NO_INDEX,
                              .owner = 2,
                              .depth = 1,
                              .subgraph = "body",
                              .path = "/layer1/layer1.0/conv1/Conv > body",
                              .name = "inside",
                              .op = "Add",
                              .module = "",
                              .kernel = "add_f32_native",
                              .backend = "native",
                              .operator_index = PRONY_NO_INDEX,
                              .layers = first,
                              .layer_count = 1,
                              .executed = true,
                              .executions = 12,
                              .cost = {.flops = 24},
                              .measured = true,
                              .time = r->operators[0].time,
                              .share = 0.25,
                              .traced = true,
                              .trace_start_ns = 1200,
                              .trace_ns = 300,
                              .cancelled = true};
    *layer = *row;
    layer->owner = 4;
    layer->operator_index = 0;
    layer->layers = NULL;
    layer->layer_count = 0;
    layer->traced = false;
    layer->inputs = r->layers[0].inputs;
    layer->input_count = 2;
    layer->outputs = r->layers[0].inputs;
    layer->output_count = 1;
    layer->sources = none;
    r->nested_layers = layer;
    r->nested_operators = row;
    r->nested_layer_count = r->nested_operator_count = 1;
    r->stopped_at = "/layer1/layer1.0/conv1/Conv > body > inside";
    r->modules[0].nested_layers = 1;
}

/* Two ranks of a sharded run. */
static void add_ranks(prony_report *r)
{
    static const uint32_t first[] = {0, 1}, second[] = {2};
    prony_rank_row *ranks = sample_alloc(r, 2, sizeof *ranks);
    ranks[0] = (prony_rank_row){.node = "n01",
                                .layers = first,
                                .layer_count = 2,
                                .weight_bytes = 4096,
                                .arena_bytes = 8192,
                                .peak_rss_bytes = 1 << 20,
                                .time_ns = 900,
                                .waiting_ns = 100,
                                .sent_bytes = 256,
                                .sent_bytes_per_second = 1e9,
                                .predicted_ns = 950};
    ranks[1] = ranks[0];
    ranks[1].rank = ranks[1].stage = 1;
    ranks[1].node = "n02";
    ranks[1].layers = second;
    ranks[1].layer_count = 1;
    ranks[1].sent_bytes = 0;
    ranks[1].received_bytes = 256;
    ranks[1].clock_offset_ns = -40;
    ranks[1].clock_error_ns = 5;
    r->ranks = ranks;
    r->rank_count = 2;
    r->has_pipeline = true;
    r->pipeline = (prony_pipeline){.stages = 2,
                                   .micro_batches = 4,
                                   .bubble_share = 0.2,
                                   .predicted_step_ns = 1000,
                                   .measured_step_ns = 1100,
                                   .basis = "analytic cost",
                                   .link_latency_ns = 2000,
                                   .link_bytes_per_second = 1e9,
                                   .fill_share = 0.125,
                                   .uneven_share = 0.05,
                                   .message_share = 0.025};
    const prony_link_row links[] = {{1, 0, 8, 1500}, {1, 0, 1 << 20, 90000}}, stray = {1, 2, 8, 1500};
    assert_int_equal(prony_report_set_links(r, links, 2, NULL), PRONY_OK);
    assert_int_equal(prony_report_set_links(r, &stray, 1, NULL), PRONY_INVALID_ARGUMENT);
    const prony_transfer_row rows[] = {{0, 1, "send", "hidden", 4, 256, 300}, {1, 0, "receive", "hidden", 4, 256, 20}};
    const prony_pipeline_event events[] = {{0, 0, 0, "compute", NULL, 0, 100}, {0, 1, 0, "send", "hidden", 100, 120}};
    assert_int_equal(prony_report_set_transfers(r, rows, 2, events, 2, NULL), PRONY_OK);
    const prony_transfer_row beyond = {2, 0, "send", "hidden", 1, 1, 1};
    assert_int_equal(prony_report_set_transfers(r, &beyond, 1, NULL, 0, NULL), PRONY_INVALID_ARGUMENT);
}

static void add_device(prony_report *r)
{
    static const prony_device_operator_row operators[] = {
        {1, "multiply, binary", 2, 1500, 70, {64, 8, 2}, {8, 8, 1}, 100, 1700, 2e9, 3e9, "memory", 12.5}};
    static const prony_device_host_row hosts[] = {
        {0, "memory", 4096, -1, -1}, {2, "copies", 0, 5000, 300}, {3, "no kernel", 0, -1, -1}};
    static const prony_device_copy_row copies[] = {{0, "x", true, "graph input", 4096, 300, 10, 310}};
    r->has_device = true;
    r->device = (prony_device_report){.info = {.id = "opencl:0",
                                               .kind = "gpu",
                                               .name = "a device",
                                               .vendor = "somebody",
                                               .platform = "a platform",
                                               .driver = "1.2",
                                               .version = "OpenCL 3.0",
                                               .compute_units = 12,
                                               .clock_mhz = 1500,
                                               .memory_bytes = UINT64_C(8) << 30,
                                               .largest_buffer_bytes = UINT64_C(2) << 30,
                                               .local_memory_bytes = 48 << 10,
                                               .largest_work_group = 1024,
                                               .fp16 = true,
                                               .pci_bus_id = "0000:3b:00.0"},
                                      .runs = 3,
                                      .operators_on_device = 1,
                                      .operators_on_host = 1,
                                      .busy_ns = 1500,
                                      .copy_ns = 300,
                                      .wait_ns = 70,
                                      .busy_share = 0.5,
                                      .copy_share = 0.1,
                                      .wait_share = 0.025,
                                      .idle_share = 0.375,
                                      .to_device_bytes = 4096,
                                      .from_device_bytes = 40,
                                      .values_bytes = 8192,
                                      .values_lower_bound_bytes = 4096,
                                      .constants_bytes = 100,
                                      .peak_bytes = 9000,
                                      .programs = 2,
                                      .kernels = 3,
                                      .operators = operators,
                                      .operator_count = 1,
                                      .copies = copies,
                                      .copy_count = 1,
                                      .has_peaks = true,
                                      .peaks = {0, 4e12, 2e11, 1e10, 9e9, 4000},
                                      .has_sensors = true,
                                      .sensors = {7, 150.5, 250, 1700, 1600, 1755, 2619, 61, 0.5, UINT64_C(3) << 30},
                                      .programs_loaded = 1,
                                      .is_split = true,
                                      .split = {2, 1, 123456, 7890},
                                      .host_operators = hosts,
                                      .host_operator_count = 3};
}

static void add_generation(prony_report *r)
{
    static const int64_t positions[] = {900, 910, 920};
    const prony_time_stats times = {.count = 9,
                                    .mean_ns = 910,
                                    .median_ns = 910,
                                    .min_ns = 890,
                                    .max_ns = 990,
                                    .p50_ns = 910,
                                    .p90_ns = 980,
                                    .p95_ns = 985,
                                    .p99_ns = 990,
                                    .median_ci95_ns = {900, 920}};
    r->has_generation = true;
    r->generation = (prony_generation){.batch = 2,
                                       .prompt_tokens = 8,
                                       .new_tokens = 4,
                                       .warmup_repetitions = 1,
                                       .repetitions = 3,
                                       .cache = "growing",
                                       .convention = "past_0 -> present_0",
                                       .prefill_tokens_per_second = 1e5,
                                       .prefill_ci95 = {9e4, 1.1e5},
                                       .decode_tokens_per_second = 2e3,
                                       .decode_ci95 = {1.9e3, 2.1e3},
                                       .ttft = times,
                                       .step = times,
                                       .step_growth_ns = 10,
                                       .position_ns = positions,
                                       .position_count = 3,
                                       .cache_tensors = 2,
                                       .cache_bytes = 4096,
                                       .cache_live_bytes = 2048,
                                       .weight_bytes = 100000,
                                       .bandwidth_share = 0.5,
                                       .prefill_flops = 1000,
                                       .decode_flops = 1100,
                                       .computed_tokens = 1,
                                       .cache_type = "int8",
                                       .cache_error_tokens = 3,
                                       .cache_error_max = 0.5,
                                       .cache_error_rms = 0.25,
                                       .cache_error_equal_ids = 0.5};
}

static void test_schema_and_documentation(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    const prn_worker_row workers[] = {{17000000, 2000000}, {15000000, 4000000}};
    r.config.inter_op_reason = "2 workers: the critical path is 40 % of the work";
    r.cpu.workers = workers;
    r.cpu.worker_count = 2;
    r.system.git_commit = "0123abcd";
    strcpy(r.system.machine.governor, "performance");
    r.config.affinity = "0-1,9";
    r.config.device = "opencl:0 a device";
    r.config.affinity_used = "0,1";
    r.config.affinity_failure = "processor 9 does not exist here or may not be used; the others are";
    r.traced_run_ns = 2900000;
    r.config.background_threads = 2;
    r.roof.busy = true;
    add_subgraph(&r);
    add_ranks(&r);
    add_generation(&r);
    add_device(&r);
    sample_add_accuracy(&r);
    sample_add_tuning(&r);
    prony_value sequence = {.kind = PRONY_SEQUENCE, .dtype = PRONY_INT64, .shape = {.rank = -1}};
    const prony_value *outputs[] = {&sequence};
    r.layers[0].outputs = outputs;
    prony_value_info port = {"state", PRONY_OPTIONAL, PRONY_FLOAT32, {1, {4}}, {"states"}};
    r.model.outputs = &port;
    static const char *const uncounted[] = {"MaxPool"};
    r.totals.counted = r.layers[0].counted = true;
    r.uncounted = uncounted;
    r.uncounted_count = 1;
    const prony_value_info tokens[] = {{"ids", PRONY_TENSOR, PRONY_INT64, {2, {1, 128}}, {NULL}}, port};
    cJSON *images = write_and_parse(&r, false);
    assert_non_null(cJSON_GetObjectItem(cJSON_GetObjectItem(images, "throughput"), "images_per_second"));
    r.model.inputs = tokens;
    r.model.input_count = 2;
    cJSON *json = write_and_parse(&r, true), *schema = cJSON_Parse(read_text("schemas/report.schema.json"));
    assert_non_null(schema);
    check_keys(images, schema, schema, "report");
    check_keys(json, schema, schema, "report");
    check_all_met(schema, "report");
    check_documented(json, read_text("reference/report.md"));
    cJSON_Delete(json);
    cJSON_Delete(images);
    cJSON_Delete(schema);
    prn_bump_release(&r.pool);
}

static double sum_over(const cJSON *rows, const char *key)
{
    double sum = 0;
    const cJSON *row;
    cJSON_ArrayForEach(row, rows) sum += number(row, key);
    return sum;
}

static void test_sums(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    cJSON *json = write_and_parse(&r, false);
    static const char *const keys[] = {"macs", "madds", "flops", "special", "int_ops", "parameters"};
    const cJSON *totals = cJSON_GetObjectItem(json, "totals");
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        SCENARIO_NAMED(k, keys[k]);
        double total = number(totals, keys[k]);
        assert_true(total == sum_over(cJSON_GetObjectItem(json, "layers"), keys[k]));
        assert_true(total == sum_over(cJSON_GetObjectItem(json, "operators"), keys[k]));
    }
    assert_true(number(json, "totals.flops") == 704198632);
    assert_true(number(json, "modules.0.flops") == 704198632);
    const cJSON *samples = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "latency_ns"), "samples");
    assert_int_equal(cJSON_GetArraySize(samples), SAMPLE_RUNS);
    for (int i = 0; i < SAMPLE_RUNS; i++)
        assert_true(cJSON_GetArrayItem(samples, i)->valuedouble == (double)r.samples_ns[i]);
    assert_true(fabs(number(json, "throughput.samples_per_second") - 1e9 / (double)r.latency.mean_ns) < 1e-9);
    assert_true(number(json, "coverage.time_share") == r.time_share);
    const cJSON *memory = cJSON_GetObjectItem(json, "memory");
    assert_null(cJSON_GetObjectItem(memory, "timeline"));
    assert_null(cJSON_GetObjectItem(memory, "events"));
    cJSON_Delete(json);
    prn_bump_release(&r.pool);
}

static void test_absent_and_null(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    cJSON *json = write_and_parse(&r, true);
    const cJSON *view = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "layers"), 9);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(view, "time_ns")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(view, "operator")));
    assert_true(cJSON_IsNull(cJSON_GetArrayItem(cJSON_GetObjectItem(view, "inputs"), 1)));
    const cJSON *outside = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "operators"), 5);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(outside, "offset_bytes")));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "memory"), "events")), 2);
    cJSON_Delete(json);
    r.time_share = -1; /* latency alone */
    for (size_t l = 0; l < r.layer_count; l++) r.layers[l].measured = false;
    json = write_and_parse(&r, true);
    assert_non_null(cJSON_GetObjectItem(json, "latency_ns"));
    assert_null(cJSON_GetObjectItem(json, "coverage"));
    assert_null(cJSON_GetObjectItem(json, "overhead"));
    assert_null(cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "layers"), 9), "time_ns"));
    assert_null(cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "modules"), 0), "time_ns"));
    cJSON_Delete(json);
    prn_bump_release(&r.pool);
    sample_report(&r, false);
    r.config.batch = -1;
    json = write_and_parse(&r, true);
    static const char *const measured[] = {"phases_ns", "latency_ns", "throughput", "memory",     "cpu",
                                           "io",        "coverage",   "overhead",   "evaluation", "output_sha256"};
    for (size_t k = 0; k < sizeof measured / sizeof measured[0]; k++)
        assert_null(cJSON_GetObjectItem(json, measured[k]));
    const cJSON *layer = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "layers"), 0);
    assert_null(cJSON_GetObjectItem(layer, "time_ns"));
    assert_null(cJSON_GetObjectItem(layer, "share"));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "config"), "batch")));
    assert_null(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "config"), "seed"));
    assert_null(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "model"), "sha256"));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "unsupported_operators")), 1);
    cJSON_Delete(json);
    prn_bump_release(&r.pool);
}

static void test_strings(void **state)
{
    (void)state;
    static const struct {
        const char *name, *read_back;
    } rows[] = {
        {"plain", "plain"},
        {"q\"b\\s/\b\f\n\r\t\x01\x7f", "q\"b\\s/\b\f\n\r\t\x01\x7f"},
        {"gr\xc3\xbc\xc3\x9f \xe6\xa8\xa1 \xf0\x9f\x94\xa5", "gr\xc3\xbc\xc3\x9f \xe6\xa8\xa1 \xf0\x9f\x94\xa5"},
        {"\xff|\xc3|\xc0\x80|\xe2\x82|\xed\xa0\x80|\xf5\x80\x80\x80",
         "\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd|"
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|"
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"cut \xe2", "cut \xef\xbf\xbd"}};
    prony_report r;
    sample_report(&r, false);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SCENARIO_NAMED(i, rows[i].name);
        r.model.name = rows[i].name;
        cJSON *json = write_and_parse(&r, false);
        assert_string_equal(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "model"), "name")->valuestring,
                            rows[i].read_back);
        cJSON_Delete(json);
    }
    prn_bump_release(&r.pool);
}

static prony_status write_number(sink *s, bool integer, double real, uint64_t whole, prony_error *error)
{
    static prn_json j;
    s->size = 0;
    prn_json_begin(&j, sink_write, s, error);
    if (integer)
        prn_json_uint(&j, NULL, whole);
    else
        prn_json_double(&j, NULL, real);
    return prn_json_end(&j);
}

/* tests/CMakeLists.txt compiles the list; ctest gives its path. */
static bool use_comma(void)
{
    bool there = setlocale(LC_NUMERIC, "comma") != NULL;
    assert_true(there || !getenv("LOCPATH"));
    return there;
}

static void test_numbers(void **state)
{
    (void)state;
    sink s = {0};
    prony_error error = {0};
    static const double reals[] = {0.1, 1.0 / 3, 1e300, 5e-324, 123456789.123456789, -2.5, 0, 1 - 1e-16, 46.5};
    bool comma = use_comma();
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        SCENARIO(i);
        assert_int_equal(write_number(&s, false, reals[i], 0, &error), PRONY_OK);
        assert_null(strchr(s.text, ','));
        setlocale(LC_NUMERIC, "C");
        assert_true(strtod(s.text, NULL) == reals[i]);
        assert_true(use_comma() == comma);
    }
    setlocale(LC_NUMERIC, "C");
    if (!comma) print_message("no locale with a decimal comma\n");
    assert_int_equal(write_number(&s, false, 0.1, 0, &error), PRONY_OK);
    assert_string_equal(s.text, "0.1\n");
    assert_int_equal(write_number(&s, false, NAN, 0, &error), PRONY_OK);
    assert_string_equal(s.text, "null\n");
    assert_int_equal(write_number(&s, true, 0, (uint64_t)1 << 53, &error), PRONY_OK);
    assert_string_equal(s.text, "9007199254740992\n");
    assert_int_equal(write_number(&s, true, 0, ((uint64_t)1 << 53) + 1, &error), PRONY_OUT_OF_RANGE);
    prn_free(s.text);
}

static void test_refusals(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    sink s = {0};
    prony_error error = {0};
    r.layers[3].cost.macs = UINT64_MAX;
    assert_int_equal(prn_report_write_json(&r, NULL, sink_write, &s, &error), PRONY_OUT_OF_RANGE);
    assert_non_null(strstr(error.message, "macs is 18446744073709551615"));
    r.layers[3].cost.macs = 0;
    for (int n = 1; n < 3; n++) {
        SCENARIO(n);
        s = (sink){.text = s.text, .capacity = s.capacity, .refuse_after = n};
        assert_int_equal(prn_report_write_json(&r, NULL, sink_write, &s, &error), PRONY_IO_ERROR);
    }
    s.refuse_after = 0;
    for (uint64_t n = 1; n <= 3; n++) { /* writer, two arrays of the module tree; the sink allocates as well */
        sink own = {0};
        own.text = malloc(1 << 20);
        own.capacity = own.text ? 1 << 20 : 0;
        prn_alloc_fail_at(n);
        assert_int_equal(prn_report_write_json(&r, NULL, sink_write, &own, &error), PRONY_OUT_OF_MEMORY);
        assert_true(prn_alloc_failed());
        prn_alloc_fail_at(0);
        free(own.text);
    }
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schema_and_documentation),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_absent_and_null),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
