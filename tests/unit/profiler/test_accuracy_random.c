/* Accuracy profiles of random models: on graphs without rounding and selection, an operator's own error is that of
 * its type, however the graph was rewritten, laid out and joined; every row has values or a reason.
 * test_accuracy_random [--seed N] [--count N] */
#include "failure_trace.h"
#include "tests/support/seed_options.h"
#include "tests/support/random_graph.h"

#include "base/shape.h"
#include "prony_report.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static seed_options options = {.first = 1, .count = 60};
static size_t compared, missing;

static prony_status set_inputs(prony_session *session, const prony_model *model, const random_graph *g,
                               prony_error *error)
{
    for (size_t i = 0; i < g->main.input_count; i++) {
        const rg_value *type = &g->values[g->main.inputs[i]];
        prony_value value = {.dtype = type->dtype, .shape = type->shape};
        for (int d = 0; d < value.shape.rank; d++)
            if (value.shape.dim[d] < 0) value.shape.dim[d] = 3;
        value.data = malloc(prn_value_bytes(&value) + 1);
        assert_non_null(value.data);
        random_graph_fill(g, i, -1, value.data);
        prony_status status = prony_session_set_input(session, prony_model_input(model, i)->name, &value, error);
        free(value.data);
        if (status != PRONY_OK) return status;
    }
    return PRONY_OK;
}

/* Of float32 on the whole; sums over a few hundred elements that cancel lose some digits of the range. */
static bool is_near(const prony_error_metrics *f, double limit)
{
    return f->nonfinite == 0 && (f->max_rel <= limit || f->max_abs <= limit * 1e-3);
}

static bool judge(const prony_report *report, bool smooth, char *text, size_t size)
{
    size_t count;
    const prony_accuracy_row *rows = prony_report_accuracy_rows(report, PRONY_LEVEL_OPERATOR, &count);
    const prony_operator_row *operators = prony_report_operators(report, NULL);
    for (size_t i = 0; i < count; i++) {
        const prony_accuracy_row *row = &rows[i];
        const bool known = row->own.known || row->accumulated.known;
        compared += row->own.known;
        missing += !row->own.known;
        const char *wrong = known == (row->not_compared != NULL) ? "has neither figures nor a reason, or both"
                            : smooth && row->own.known && !is_near(&row->own, 1e-3) ? "has an error of its own"
                            : smooth && row->accumulated.known && !is_near(&row->accumulated, 2e-2)
                                ? "has accumulated too much"
                                : NULL;
        if (!wrong) continue;
        snprintf(text, size, "operator %zu '%s' (%s, %s) %s: own %g, accumulated %g of the range %g; %s", i,
                 operators[i].name, operators[i].op, operators[i].kernel, wrong, row->own.max_rel,
                 row->accumulated.max_rel, row->own.range, row->note ? row->note : "");
        return false;
    }
    return true;
}

static bool check(const random_graph *g, const void *bytes, size_t size, bool rewrites, int workers, char *text,
                  size_t room)
{
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_report *report = NULL;
    prony_error error = {0};
    prony_session_options s = PRONY_SESSION_OPTIONS_INIT;
    prony_profile_options p = PRONY_PROFILE_OPTIONS_INIT;
    s.no_rewrites = !rewrites;
    s.inter_op_threads = workers;
    s.max_loop_trips = 10000;
    p.runs = 1;
    p.warmup_runs = 0;
    prony_status status = prony_model_load_memory(&model, "random.onnx", bytes, size, NULL, &error);
    if (status == PRONY_OK) status = prony_session_create(&session, model, &s, &error);
    if (status == PRONY_OK) status = set_inputs(session, model, g, &error);
    if (status == PRONY_OK) status = prony_session_profile(&report, session, &p, &error);
    bool ok = true;
    if (status == PRONY_OK) { /* models that cannot run are not tested here */
        status = prony_session_accuracy(report, session, NULL, &error);
        ok = status == PRONY_UNSUPPORTED || (status == PRONY_OK && judge(report, g->smooth, text, room));
        if (status != PRONY_OK && !ok) snprintf(text, room, "status %d: %.1000s", (int)status, error.message);
    }
    prony_report_release(report);
    prony_session_release(session);
    prony_model_release(model);
    return ok;
}

static void random_models_agree_with_their_reference(void **state)
{
    (void)state;
    size_t failed = 0;
    for (uint64_t seed = options.first; seed < options.first + options.count; seed++) {
        SCENARIO(seed);
        random_graph *g = random_graph_make(seed, seed % 3 ? RG_SMOOTH : RG_ANY);
        model_builder *m = random_graph_build(g);
        size_t size;
        const void *bytes = mb_finish(m, &size);
        for (int way = 0; way < 3; way++) {
            char text[1400] = "";
            if (check(g, bytes, size, way != 1, way == 2 ? 2 : 1, text, sizeof text)) continue;
            print_error("seed %" PRIu64 ", %s: %s\n", seed,
                        way == 1   ? "not rewritten"
                        : way == 2 ? "two workers"
                                   : "rewritten",
                        text);
            failed++;
            break;
        }
        mb_free(m);
        random_graph_free(g);
    }
    print_message("%zu operators compared, %zu without own figures\n", compared, missing);
    assert_int_equal(failed, 0);
    assert_true(compared > missing);
}

int main(int argc, char **argv)
{
    const int status = seed_options_read(&options, argc, argv, NULL, NULL);
    if (status >= 0) return status;
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_models_agree_with_their_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
