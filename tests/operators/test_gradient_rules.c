/* Every rule of engine/gradient/rules.inc against central differences of the forward graph, in float64: one table of
 * nodes (gradient_rows.inc). The differentiated function is the sum of the node's outputs times different weights per
 * element, so that no symmetry hides an error. */
#include "failure_trace.h"
#include "engine/gradient/rules.h"
#include "tests/support/model_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* inputs, separated by spaces: "2,3" float64 in (-2, 2), all different, differentiated; "2,3~0.5:2" in that range;
 * "c:2,3~1:2" the same, but a constant; "i:2=1,-1" int64 elements; "b:=1" bools; "?" omitted. outputs: names; those
 * that start with y are differentiated. */
typedef struct gradient_row {
    int line;
    const char *op;
    int64_t opset;
    const char *attributes, *inputs, *outputs;
} gradient_row;

static const gradient_row rows[] = {
#define ROW(op, opset, attributes, inputs, outputs) {__LINE__, op, opset, attributes, inputs, outputs},
#include "gradient_rows.inc"
};
enum { ROWS = sizeof rows / sizeof *rows, MOST = 4096 };

typedef struct one_input {
    char name[8], dims[64];
    double *data;
    size_t count;
} one_input;

typedef struct trial {
    const gradient_row *row;
    model_run run;
    one_input inputs[MR_MAX_INPUTS];
    size_t input_count, output_count;
    char names[256]; /* of the node's inputs */
} trial;

static size_t count_of(const char *dims)
{
    const prony_shape shape = mr_shape(dims);
    return (size_t)prony_shape_numel(&shape);
}

/* Spread evenly, no two alike. */
static double spread(size_t i, size_t input, double low, double high)
{
    double whole;
    return low + (high - low) * modf(0.131 + 0.6180339887498949 * (double)(i + 1) + 0.27 * (double)input, &whole);
}

static void add_elements(model_builder *m, const char *name, char kind, const char *dims, const char *values)
{
    int64_t wide[64];
    uint8_t narrow[64];
    const size_t count = count_of(dims);
    char *end = (char *)(uintptr_t)values;
    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        wide[i] = strtoll(end, &end, 10);
        narrow[i] = wide[i] != 0;
        if (*end == ',') end++;
    }
    if (kind == 'i')
        mb_initializer(m, name, PRONY_INT64, dims, wide);
    else
        mb_initializer(m, name, PRONY_BOOL, dims, narrow);
}

static void add_input(trial *t, model_builder *m, const char *text, size_t index)
{
    char name[8], dims[64] = "";
    double low = -2, high = 2;
    const bool constant = strncmp(text, "c:", 2) == 0, elements = text[0] == 'i' || text[0] == 'b';
    snprintf(name, sizeof name, "x%zu", index);
    const size_t used = strlen(t->names);
    snprintf(t->names + used, sizeof t->names - used, "%s%s", index ? " " : "", *text == '?' ? "?" : name);
    if (*text == '?') return;
    const char *body = constant || elements ? text + 2 : text, *range = strchr(body, '~'), *values = strchr(body, '=');
    const char *end = range ? range : values ? values : body + strlen(body);
    snprintf(dims, sizeof dims, "%.*s", (int)(end - body), body);
    if (elements) {
        add_elements(m, name, text[0], dims, values + 1);
        return;
    }
    if (strcmp(dims, ".") == 0) *dims = 0;
    if (range) assert_int_equal(sscanf(range, "~%lf:%lf", &low, &high), 2);
    one_input *in = &t->inputs[t->input_count];
    in->count = count_of(dims);
    assert_true(in->count <= MOST);
    in->data = calloc(in->count + 1, sizeof *in->data);
    assert_non_null(in->data);
    for (size_t i = 0; i < in->count; i++) in->data[i] = spread(i, index, low, high);
    if (constant) {
        mb_initializer(m, name, PRONY_FLOAT64, dims, in->data);
        free(in->data);
        return;
    }
    snprintf(in->name, sizeof in->name, "%s", name);
    snprintf(in->dims, sizeof in->dims, "%s", dims);
    t->input_count++;
}

/* own::Weigh(y): the sum of its elements times weights, in an opset with the necessary operators. */
static void add_weigh(model_builder *m)
{
    mb_function_begin(m, "own::Weigh", "y", "t", "", "", 17);
    mb_node(m, "Constant", "", "none", "value_int=0");
    mb_node(m, "Constant", "", "one", "value_int=1");
    mb_node(m, "Shape", "y", "s", "");
    mb_node(m, "Size", "y", "n", "");
    mb_node(m, "Range", "none n one", "i", "");
    mb_node(m, "Cast", "i", "f", "to=11");
    mb_node(m, "Cos", "f", "v", "");
    mb_node(m, "Reshape", "v s", "q", "");
    mb_node(m, "Mul", "y q", "w", "");
    mb_node(m, "ReduceSum", "w", "t", "keepdims=0");
    mb_function_end(m);
}

static void add_loss(trial *t, model_builder *m)
{
    char outputs[128], sum[32], sums[256] = "";
    snprintf(outputs, sizeof outputs, "%s", t->row->outputs);
    for (char *name = strtok(outputs, " "); name; name = strtok(NULL, " ")) {
        if (*name != 'y') continue;
        snprintf(sum, sizeof sum, "%s_t", name);
        mb_node(m, "own::Weigh", name, sum, "");
        snprintf(sums + strlen(sums), sizeof sums - strlen(sums), "%s%s", *sums ? " " : "", sum);
    }
    mb_node(m, "Sum", sums, "loss", "");
    mb_output(m, "loss", PRONY_FLOAT64, "");
}

static void add_gradient(const trial *t, model_builder *m)
{
    char names[256] = "", made[256] = "", attributes[512] = "xs=[";
    for (size_t k = 0; k < t->input_count; k++) {
        const char *name = t->inputs[k].name;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", k ? " " : "", name);
        snprintf(made + strlen(made), sizeof made - strlen(made), "%sd%s", k ? " " : "", name);
        snprintf(attributes + strlen(attributes), sizeof attributes - strlen(attributes), "%s'%s'", k ? "," : "", name);
    }
    strcat(attributes, "] y='loss'");
    mb_node(m, "ai.onnx.preview.training::Gradient", names, made, attributes);
    mb_node_name(m, "g");
    for (size_t k = 0; k < t->input_count; k++) {
        char name[16];
        snprintf(name, sizeof name, "d%s", t->inputs[k].name);
        mb_output(m, name, PRONY_FLOAT64, t->inputs[k].dims);
    }
}

/* own::Hide(x): x, with a shape that only a run knows. */
static void add_hide(model_builder *m)
{
    mb_function_begin(m, "own::Hide", "x", "y", "", "", 17);
    mb_node(m, "Constant", "", "flat", "value_ints=[-1]");
    mb_node(m, "Constant", "", "none", "value_int=0");
    mb_node(m, "Reshape", "x flat", "f", "");
    mb_node(m, "Equal", "f f", "e", "");
    mb_node(m, "NonZero", "e", "n", "");
    mb_node(m, "Mul", "n none", "zeros", "");
    mb_node(m, "ReduceSum", "zeros", "zero", "keepdims=0");
    mb_node(m, "Shape", "x", "s", "");
    mb_node(m, "Add", "s zero", "hidden", "");
    mb_node(m, "Reshape", "x hidden", "y", "");
    mb_function_end(m);
}

/* The names of the node's inputs, those that are differentiated behind own::Hide. */
static void hide(const trial *t, model_builder *m, char *names, size_t size)
{
    char text[256], hidden[16];
    size_t used = 0;
    snprintf(text, sizeof text, "%s", t->names);
    for (char *name = strtok(text, " "); name; name = strtok(NULL, " ")) {
        bool found = false;
        for (size_t k = 0; k < t->input_count; k++) found |= strcmp(t->inputs[k].name, name) == 0;
        snprintf(hidden, sizeof hidden, "%s%s", name, found ? "h" : "");
        if (found) mb_node(m, "own::Hide", name, hidden, "");
        used += (size_t)snprintf(names + used, size - used, "%s%s", used ? " " : "", hidden);
    }
}

static void open_row(trial *t, const gradient_row *row, bool hidden)
{
    char text[512], names[512];
    *t = (trial){.row = row};
    model_builder *m = mb_begin(row->opset);
    mb_opset(m, "ai.onnx.preview.training", 1);
    mb_opset(m, "own", 1);
    snprintf(text, sizeof text, "%s", row->inputs);
    size_t index = 0;
    for (char *one = strtok(text, " "); one; one = strtok(NULL, " ")) add_input(t, m, one, index++);
    for (size_t k = 0; k < t->input_count; k++) mb_input(m, t->inputs[k].name, PRONY_FLOAT64, t->inputs[k].dims);
    snprintf(names, sizeof names, "%s", t->names);
    if (hidden) hide(t, m, names, sizeof names);
    mb_node(m, row->op, names, row->outputs, row->attributes);
    mb_node_name(m, "node");
    add_loss(t, m);
    add_gradient(t, m);
    add_weigh(m);
    add_hide(m);
    if (mr_try_open(&t->run, m) != PRONY_OK) fail_msg("row %d, %s: %s", row->line, row->op, t->run.error.message);
    for (size_t k = 0; k < t->input_count; k++)
        mr_set(&t->run, t->inputs[k].name, PRONY_FLOAT64, t->inputs[k].dims, t->inputs[k].data);
}

static void run_row(trial *t)
{
    if (prony_session_run(t->run.session, &t->run.error) != PRONY_OK)
        fail_msg("row %d, %s: %s", t->row->line, t->row->op, t->run.error.message);
}

static double loss_at(trial *t, const one_input *in, size_t i, double value)
{
    const double kept = in->data[i];
    in->data[i] = value;
    mr_set(&t->run, in->name, PRONY_FLOAT64, in->dims, in->data);
    run_row(t);
    in->data[i] = kept;
    return *(const double *)mr_output(&t->run, 0)->data;
}

static size_t compare_input(trial *t, size_t k)
{
    one_input *in = &t->inputs[k];
    size_t wrong = 0;
    run_row(t);
    const prony_value *made = mr_output(&t->run, 1 + k);
    const prony_shape wanted = mr_shape(in->dims);
    assert_int_equal(made->dtype, PRONY_FLOAT64);
    assert_int_equal(made->shape.rank, wanted.rank);
    assert_memory_equal(made->shape.dim, wanted.dim, (size_t)wanted.rank * sizeof *wanted.dim);
    double *gradient = calloc(in->count + 1, sizeof *gradient);
    assert_non_null(gradient);
    if (in->count) memcpy(gradient, made->data, in->count * sizeof *gradient);
    for (size_t i = 0; i < in->count; i++) {
        const double step_size = 1e-6, x = in->data[i];
        const double slope = (loss_at(t, in, i, x + step_size) - loss_at(t, in, i, x - step_size)) / (2 * step_size);
        if (fabs(slope - gradient[i]) <= 2e-6 * (1 + fabs(slope))) continue;
        if (wrong++ < 3)
            print_error("row %d, %s %s: d%s[%zu] is %.9g, differences say %.9g\n", t->row->line, t->row->op,
                        t->row->attributes, in->name, i, gradient[i], slope);
    }
    mr_set(&t->run, in->name, PRONY_FLOAT64, in->dims, in->data);
    free(gradient);
    return wrong;
}

static void close_row(trial *t)
{
    mr_close(&t->run);
    for (size_t k = 0; k < t->input_count; k++) free(t->inputs[k].data);
}

static void test_rules_agree_with_differences(void **state)
{
    size_t wrong = 0;
    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        trial t;
        open_row(&t, &rows[r], false);
        for (size_t k = 0; k < t.input_count; k++) wrong += compare_input(&t, k);
        close_row(&t);
    }
    assert_int_equal(wrong, 0);
}

/* A rule refuses if it needs known shapes; otherwise it is as accurate as with known shapes. */
static void test_rules_where_only_a_run_knows_shapes(void **state)
{
    size_t wrong = 0, right = 0;
    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        trial t;
        open_row(&t, &rows[r], true);
        const prony_status status = prony_session_run(t.run.session, &t.run.error);
        if (status == PRONY_OK) {
            right++;
            for (size_t k = 0; k < t.input_count; k++) wrong += compare_input(&t, k);
        } else if (status != PRONY_UNSUPPORTED || !strstr(t.run.error.message, "which is known only at run time")) {
            wrong++;
            print_error("row %d, %s: %s\n", rows[r].line, rows[r].op, t.run.error.message);
        }
        close_row(&t);
    }
    print_message("%zu of %zu rows\n", right, (size_t)ROWS);
    assert_int_equal(wrong, 0);
    assert_true(right > ROWS / 2);
}

/* The first row of each operator, through load, bind, plan and run, with every allocation that can fail. */
static void test_rules_survive_failing_allocations(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        SCENARIO(r);
        if (r > 0 && strcmp(rows[r].op, rows[r - 1].op) == 0) continue;
        trial t;
        open_row(&t, &rows[r], false);
        mr_survives_faults(&t.run);
        close_row(&t);
    }
}

static void test_every_rule_has_a_row(void **state)
{
    size_t missing = 0;
    (void)state;
    for (size_t k = 0; k < prn_gradient_rule_count(); k++) {
        const prn_gradient_rule *rule = prn_gradient_rule_at(k);
        bool found = !rule->rule;
        for (size_t r = 0; r < ROWS; r++) found |= strcmp(rows[r].op, rule->op) == 0;
        if (found) continue;
        missing++;
        print_error("%s has a rule, but no row\n", rule->op);
    }
    assert_int_equal(missing, 0);
}

/* docs/reference/gradients.md lists them by hand. */
static void test_the_page_names_every_rule(void **state)
{
    static char page[1 << 15];
    char name[64];
    size_t missing = 0;
    (void)state;
    FILE *file = fopen(PRN_SOURCE_DIR "/docs/reference/gradients.md", "rb");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = 0;
    fclose(file);
    for (size_t k = 0; k < prn_gradient_rule_count(); k++) {
        snprintf(name, sizeof name, "`%s`", prn_gradient_rule_at(k)->op);
        if (strstr(page, name)) continue;
        missing++;
        print_error("docs/reference/gradients.md says nothing of %s\n", name);
    }
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_agree_with_differences),
        cmocka_unit_test(test_rules_where_only_a_run_knows_shapes),
        cmocka_unit_test(test_rules_survive_failing_allocations),
        cmocka_unit_test(test_every_rule_has_a_row),
        cmocka_unit_test(test_the_page_names_every_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
