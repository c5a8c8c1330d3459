/* Times, modules and totals of a report: attribution adds up to the nanosecond, sums are conserved, names make a tree.
 */
#include "failure_trace.h"
#include "tests/support/sample_report.h"

static void test_times(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    assert_true(r.measured);
    assert_int_equal(r.latency.count, SAMPLE_RUNS);
    assert_true(r.time_share > 0.99 && r.time_share < 1);
    double operator_share = 0, layer_share = 0;
    for (size_t o = 0; o < r.operator_count; o++) {
        SCENARIO(o);
        const prony_operator_row *row = &r.operators[o];
        assert_int_equal(row->time.count, SAMPLE_RUNS);
        operator_share += row->share;
        int64_t mean = 0, max = 0;
        for (size_t k = 0; k < row->layer_count; k++) {
            mean += r.layers[row->layers[k]].time.mean_ns;
            max += r.layers[row->layers[k]].time.max_ns;
            assert_int_equal(r.layers[row->layers[k]].time_attributed, row->layer_count > 1);
        }
        assert_int_equal(mean, row->time.mean_ns);
        assert_int_equal(max, row->time.max_ns);
    }
    for (size_t l = 0; l < r.layer_count; l++) {
        SCENARIO(l);
        assert_int_equal(r.layers[l].measured, r.layers[l].operator_index != PRONY_NO_INDEX);
        layer_share += r.layers[l].share;
    }
    assert_true(operator_share > 0.999999 && operator_share < 1.000001);
    assert_true(layer_share > 0.999999 && layer_share < 1.000001);
    prn_bump_release(&r.pool);
}

/* Two layers of cost 1 and 3 share 100 ns; three layers without cost share evenly. */
static void test_attribution_by_hand(void **state)
{
    (void)state;
    prony_layer_row layers[5] = {{.name = "a", .cost = {.flops = 1}},
                                 {.name = "b", .cost = {.flops = 1, .int_ops = 2}}};
    const uint32_t first[] = {0, 1}, second[] = {2, 3, 4};
    prony_operator_row operators[] = {{.name = "ab", .layers = first, .layer_count = 2},
                                      {.name = "cde", .layers = second, .layer_count = 3}};
    prony_report r = {.layers = layers, .layer_count = 5, .operators = operators, .operator_count = 2};
    const int64_t durations[] = {100, 10, 200, 10, 300, 10}, latency[] = {120, 220, 320};
    assert_int_equal(prn_report_fill_times(&r, durations, latency, 3, NULL), PRONY_OK);
    assert_int_equal(operators[0].time.mean_ns, 200);
    assert_int_equal(operators[0].time.max_ns, 300);
    assert_int_equal(layers[0].time.mean_ns, 50);
    assert_int_equal(layers[1].time.mean_ns, 150);
    assert_int_equal(layers[1].time.min_ns, 75);
    assert_int_equal(layers[2].time.mean_ns + layers[3].time.mean_ns + layers[4].time.mean_ns, 10);
    assert_true(r.time_share > 630.0 / 660 - 1e-12 && r.time_share < 630.0 / 660 + 1e-12);
    assert_true(layers[1].share > 0.714285 && layers[1].share < 0.714286); /* 150 / 210 */
    const uint32_t wild[] = {7};
    operators[1] = (prony_operator_row){.name = "wild", .layers = wild, .layer_count = 1};
    assert_int_equal(prn_report_fill_times(&r, durations, latency, 3, NULL), PRONY_INTERNAL);
    prn_bump_release(&r.pool);
}

static void test_totals(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    assert_true(r.conserved);
    assert_int_equal(r.totals.cost.macs, 118013952 + 2 * 115605504 + 64000);
    assert_int_equal(r.totals.cost.parameters, 9408 + 128 + 2 * 36864 + 65000);
    assert_int_equal(r.totals.layers, SAMPLE_LAYERS);
    assert_int_equal(r.totals.folded_layers, 1);
    assert_int_equal(r.totals.operators, SAMPLE_OPERATORS);
    r.operators[3].cost.special++;
    assert_int_equal(prn_report_fill_totals(&r, NULL), PRONY_OK);
    assert_false(r.conserved);
    r.layers[0].cost.flops = UINT64_MAX;
    prony_error error = {0};
    assert_int_equal(prn_report_fill_totals(&r, &error), PRONY_LIMIT);
    assert_non_null(strstr(error.message, "overflow"));
    prn_bump_release(&r.pool);
}

/* A removed layer belongs to an operator like any other, and this operator counts it. */
static void test_removed_layers_are_conserved(void **state)
{
    (void)state;
    prony_layer_row layers[2] = {
        {.name = "a", .cost = {.flops = 3}, .operator_index = 0},
        {.name = "b", .cost = {.int_ops = 2}, .operator_index = PRONY_NO_INDEX, .removed = true}};
    prony_operator_row operators[1] = {{.name = "a", .cost = {.flops = 3}}};
    prony_report r = {.layers = layers, .layer_count = 2, .operators = operators, .operator_count = 1};
    assert_int_equal(prn_report_fill_totals(&r, NULL), PRONY_OK);
    assert_false(r.conserved);
    assert_int_equal(r.totals.cost.int_ops, 2);
    layers[1].operator_index = 0;
    operators[0].cost.int_ops = 2;
    assert_int_equal(prn_report_fill_totals(&r, NULL), PRONY_OK);
    assert_true(r.conserved);
}

static const prn_module_row *module_of(const prony_report *r, const char *path)
{
    for (size_t i = 0; i < r->module_count; i++)
        if (strcmp(r->modules[i].path, path) == 0) return &r->modules[i];
    fail_msg("no module \"%s\"", path);
    return NULL;
}

static void test_modules(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    assert_string_equal(r.layers[4].module, "layer1/layer1.0/conv1");
    assert_string_equal(r.layers[7].module, "");
    assert_string_equal(r.layers[9].module, "");
    assert_string_equal(r.layers[10].module, "");
    assert_int_equal(r.module_count, 11);
    const prn_module_row *root = module_of(&r, ""), *block = module_of(&r, "layer1/layer1.0");
    assert_ptr_equal(root, r.modules);
    assert_int_equal(root->parent, PRONY_NO_INDEX);
    assert_int_equal(root->macs, r.totals.cost.macs);
    assert_int_equal(root->parameters, r.totals.cost.parameters);
    assert_true(root->share > 0.999999 && root->share < 1.000001);
    assert_int_equal(block->macs, 2 * 115605504);
    assert_int_equal(block->depth, 2);
    assert_string_equal(block->type, "layer");
    assert_string_equal(module_of(&r, "stem/bn1")->type, "bn");
    assert_int_equal(block->time_ns, r.layers[4].time.mean_ns + r.layers[5].time.mean_ns + r.layers[6].time.mean_ns);
    for (size_t i = 1; i < r.module_count; i++) assert_true(r.modules[i].parent < i);
    prn_bump_release(&r.pool);
}

static void test_odd_names(void **state)
{
    (void)state;
    static char deep[4001], wide[4001];
    for (int i = 0; i < 1000; i++) memcpy(deep + 2 * i, "/a", 2);
    memset(wide, 'w', 4000);
    wide[1] = '/';
    prony_layer_row layers[] = {
        {.name = ""},   {.name = "/"}, {.name = "//x//y//Conv"}, {.name = "a.b.c"}, {.name = "encoder.layer.3/0/Add/"},
        {.name = deep}, {.name = wide}};
    prony_report r = {.layers = layers, .layer_count = 7};
    assert_int_equal(prn_report_fill_modules(&r, NULL), PRONY_OK);
    assert_string_equal(layers[0].module, "");
    assert_string_equal(layers[1].module, "");
    assert_string_equal(layers[2].module, "x/y");
    assert_string_equal(layers[3].module, "");
    assert_string_equal(layers[4].module, "encoder.layer.3/0");
    assert_string_equal(module_of(&r, "encoder.layer.3")->type, "layer");
    assert_string_equal(module_of(&r, "encoder.layer.3/0")->type, "0");
    assert_true(strlen(layers[5].module) < 100);
    assert_string_equal(layers[6].module, "");
    assert_int_equal(r.modules[0].time_ns, -1);
    prn_bump_release(&r.pool);
}

static void test_many_modules(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static char names[COUNT][32];
    static prony_layer_row layers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "/block%d/conv/Conv", i);
        layers[i] = (prony_layer_row){.name = names[i], .cost = {.flops = 1}};
    }
    prony_report r = {.layers = layers, .layer_count = COUNT};
    assert_int_equal(prn_report_fill_modules(&r, NULL), PRONY_OK);
    assert_int_equal(r.module_count, 1 + 2 * COUNT);
    assert_int_equal(r.modules[0].flops, COUNT);
    assert_int_equal(module_of(&r, "block2999")->flops, 1);
    prn_bump_release(&r.pool);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        prony_layer_row layers[] = {{.name = "/a/Conv"}, {.name = "/b/c/Conv"}};
        const uint32_t both[] = {0, 1};
        prony_operator_row operators[] = {{.name = "ab", .layers = both, .layer_count = 2}};
        prony_report r = {.layers = layers, .layer_count = 2, .operators = operators, .operator_count = 1};
        const int64_t durations[] = {5}, latency[] = {6};
        prn_alloc_fail_at(n);
        prony_status status = prn_report_fill_times(&r, durations, latency, 1, NULL);
        if (status == PRONY_OK) status = prn_report_fill_modules(&r, NULL);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        prn_bump_release(&r.pool);
        if (!failed) {
            assert_true(n > 6);
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),        cmocka_unit_test(test_attribution_by_hand),
        cmocka_unit_test(test_totals),       cmocka_unit_test(test_removed_layers_are_conserved),
        cmocka_unit_test(test_modules),      cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_many_modules), cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
