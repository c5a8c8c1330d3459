#include "tests/support/accuracy_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

prony_report *accuracy_profile(model_run *r, const prony_accuracy_options *options)
{
    prony_profile_options p = PRONY_PROFILE_OPTIONS_INIT;
    prony_report *report = NULL;
    p.runs = 1;
    p.warmup_runs = 0;
    if (prony_session_profile(&report, r->session, &p, &r->error) != PRONY_OK) fail_msg("%s", r->error.message);
    if (prony_session_accuracy(report, r->session, options, &r->error) != PRONY_OK) fail_msg("%s", r->error.message);
    return report;
}

const prony_accuracy_row *accuracy_row(const prony_report *report, const char *name)
{
    size_t count, rows;
    const prony_layer_row *layers = prony_report_layers(report, &count);
    const prony_accuracy_row *errors = prony_report_accuracy_rows(report, PRONY_LEVEL_LAYER, &rows);
    assert_int_equal(count, rows);
    for (size_t i = 0; i < count; i++)
        if (strcmp(layers[i].name, name) == 0) return &errors[i];
    fail_msg("no layer '%s'", name);
    return NULL;
}

void accuracy_near(double found, double wanted)
{
    if (!(fabs(found - wanted) <= 1e-12 * fabs(wanted))) fail_msg("%.17g, wanted %.17g", found, wanted);
}

static model_builder *build_half(void)
{
    const uint16_t ones[2] = {HALF_1, HALF_1}, offset[2] = {HALF_2048, 0};
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT16, "2");
    mb_initializer(m, "ones", PRONY_FLOAT16, "2", ones);
    mb_initializer(m, "offset", PRONY_FLOAT16, "2", offset);
    mb_node(m, "Add", "x ones", "sum", "");
    mb_node_name(m, "add");
    mb_node(m, "Sub", "sum offset", "y", "");
    mb_node_name(m, "sub");
    mb_output(m, "y", PRONY_FLOAT16, "2");
    return m;
}

void accuracy_open_half(model_run *r)
{
    static const uint16_t x[2] = {HALF_2048, 0};
    mr_open(r, build_half());
    mr_set(r, "x", PRONY_FLOAT16, "2", x);
}
