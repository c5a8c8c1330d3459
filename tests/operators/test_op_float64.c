/* Every row of tests/operators/cases as a model with an accuracy profile: the float64 reference of an operator agrees
 * with the operator within its type's precision, or is reported as missing. `test_op_float64 WORD`: operators whose
 * name contains WORD. */
#include "failure_trace.h"
#include "tests/support/op_case_model.h"

#include "base/shape.h"
#include "prony_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static op_case_list cases;
static const char *only = "";
static size_t compared, rounded, without, refused;

/* the model borrows `bytes` until its release */
static prony_status accuracy_of(const op_case_node *node, uint8_t **bytes, prony_model **model, prony_session **session,
                                prony_report **report, prony_error *error)
{
    size_t size;
    prony_session_options s = PRONY_SESSION_OPTIONS_INIT;
    prony_profile_options p = PRONY_PROFILE_OPTIONS_INIT;
    p.runs = 1;
    p.warmup_runs = 0;
    s.max_loop_trips = 1000;
    *bytes = op_case_model(node, OP_CASE_AS_WRITTEN, &size);
    prony_status status = prony_model_load_memory(model, "case", *bytes, size, NULL, error);
    if (status == PRONY_OK) status = prony_session_create(session, *model, &s, error);
    for (size_t i = 0; status == PRONY_OK && i < node->input_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%zu", i);
        if (node->inputs[i] && !node->constant[i])
            status = prony_session_set_input(*session, name, node->inputs[i], error);
    }
    if (status == PRONY_OK) status = prony_session_profile(report, *session, &p, error);
    if (status != PRONY_OK)
        return PRONY_UNSUPPORTED; /* a row that cannot be a model: a Prony operator, text as constant */
    return prony_session_accuracy(*report, *session, NULL, error);
}

/* Of the coarsest float among its values. */
static double limit_of(const prony_report *report)
{
    size_t count;
    double limit = 2e-5;
    const prony_layer_row *layers = prony_report_layers(report, &count);
    for (size_t l = 0; l < count; l++) {
        for (size_t i = 0; i < layers[l].input_count + layers[l].output_count; i++) {
            const prony_value *v =
                i < layers[l].input_count ? layers[l].inputs[i] : layers[l].outputs[i - layers[l].input_count];
            if (!v) continue;
            const double own = v->dtype == PRONY_BFLOAT16 ? 4e-2 : v->dtype == PRONY_FLOAT16 ? 5e-3 : 0;
            limit = own > limit ? own : limit;
        }
    }
    return limit;
}

/* Rounding to codes may differ by one, rounding to a type with fewer numbers beyond its largest number. If the whole
 * output is small, its range does not bound the error. */
static bool is_admitted(const prony_error_metrics *f, const char *op, double limit)
{
    if (strstr(op, "QuantizeLinear")) return f->max_abs <= 1 || f->ulp <= 1;
    if (strcmp(op, "Cast") == 0) return f->max_rel <= 5e-3;
    return f->nonfinite == 0 && (f->max_rel <= limit || f->max_abs <= limit / 100);
}

static bool agrees(const prony_report *report, char *message, size_t bytes)
{
    size_t count;
    const prony_accuracy_row *rows = prony_report_accuracy_rows(report, PRONY_LEVEL_OPERATOR, &count);
    const prony_operator_row *operators = prony_report_operators(report, NULL);
    const double limit = limit_of(report);
    for (size_t i = 0; i < count; i++) {
        const prony_error_metrics *f = &rows[i].own;
        compared += f->known;
        rounded += f->known && rows[i].note;
        without += !f->known;
        if (!f->known || is_admitted(f, operators[i].op, limit)) continue;
        snprintf(message, bytes, "%s: own error %g of the range %g, %llu not finite%s%s", operators[i].op, f->max_rel,
                 f->range, (unsigned long long)f->nonfinite, rows[i].note ? "; " : "",
                 rows[i].note ? rows[i].note : "");
        return false;
    }
    return true;
}

static bool check(const op_case *row, char *message, size_t bytes)
{
    op_case_node node;
    uint8_t *model_bytes = NULL;
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_report *report = NULL;
    prony_error error = {0};
    bool ok = op_case_parse(&node, row, message, bytes);
    if (!ok) return false;
    const prony_status status = accuracy_of(&node, &model_bytes, &model, &session, &report, &error);
    if (status == PRONY_OK)
        ok = agrees(report, message, bytes);
    else
        refused++;
    if (status != PRONY_OK && status != PRONY_UNSUPPORTED) {
        snprintf(message, bytes, "status %d: %s", (int)status, error.message);
        ok = false;
    }
    prony_report_release(report);
    prony_session_release(session);
    prony_model_release(model);
    free(model_bytes);
    op_case_node_release(&node);
    return ok;
}

static void references_agree_with_operators(void **state)
{
    (void)state;
    size_t failed = 0;
    for (size_t i = 0; i < cases.count; i++) {
        SCENARIO(i);
        char message[2048] = "";
        if (cases.items[i].refused || !strstr(cases.items[i].op, only)) continue;
        if (check(&cases.items[i], message, sizeof message)) continue;
        failed++;
        print_error("%s:%d: %s %s | %s: %s\n", cases.items[i].file, cases.items[i].line, cases.items[i].op,
                    cases.items[i].attributes, cases.items[i].inputs, message);
    }
    print_message("%zu operators compared, %zu of them by their own type; %zu without figures, %zu models refused\n",
                  compared, rounded, without, refused);
    assert_int_equal(failed, 0);
    assert_true(compared > 0);
}

int main(int argc, char **argv)
{
    char message[512] = "";
    if (argc > 1) only = argv[1];
    if (!op_cases_load(&cases, PRN_SOURCE_DIR "/tests/operators/cases", message, sizeof message)) {
        print_error("%s\n", message);
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(references_agree_with_operators)};
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    op_cases_release(&cases);
    return failures;
}
