/* Lists that once had a fixed capacity and dropped further entries: kernels of an operator, watched outputs of a
 * user's operator, columns of a list of labels, reasons. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "engine/plan/tune.h"
#include "loaders/label_file.h"
#include "model_builder.h"
#include "ops/op.h"
#include "prony_operator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void every_operator_and_kernel_is_listed(void **state)
{
    (void)state;
    assert_int_equal(prony_operator_count(), prn_op_count() + 1); /* the Gradient, which becomes other operators */
    for (size_t i = 0; i < prn_op_count(); i++) {
        SCENARIO(i);
        const prn_op *op = prn_op_at(i);
        const prony_operator_info *row = prony_operator_at(i);
        size_t count = 0;
        assert_string_equal(row->name, op->name);
        for (; op->kernels[count].name; count++) {
            assert_true(count < row->kernel_count);
            assert_string_equal(row->kernels[count], op->kernels[count].name);
        }
        assert_int_equal(row->kernel_count, count);
        assert_true(count <= PRN_TUNE_MOST_KERNELS); /* all of which tuning can try */
    }
    assert_null(prony_operator_at(prn_op_count() + 1));
}

enum { OUTPUTS = 12 };

static prony_status same_shapes(const prony_context *context)
{
    for (size_t k = 0; k < context->output_count; k++) {
        context->outputs[k]->dtype = PRONY_FLOAT32;
        context->outputs[k]->shape = context->inputs[0]->shape;
    }
    return PRONY_OK;
}

static prony_status no_cost(const prony_context *context, prony_cost *cost)
{
    (void)context, (void)cost;
    return PRONY_OK;
}

/* Zeros, and the type of output *user changed. */
static prony_status spoil(const prony_context *context)
{
    const int *spoilt = context->user;
    for (size_t k = 0; k < context->output_count; k++) memset(context->outputs[k]->data, 0, 4 * sizeof(float));
    if (*spoilt >= 0) context->outputs[*spoilt]->dtype = PRONY_INT32;
    return PRONY_OK;
}

static void outputs_of_a_users_operator_are_all_looked_after(void **state)
{
    (void)state;
    char names[OUTPUTS * 8] = "", one[8];
    model_builder *m = mb_begin(17);
    mb_opset(m, "user", 1);
    mb_input(m, "x", PRONY_FLOAT32, "4");
    for (int k = 0; k < OUTPUTS; k++) {
        snprintf(one, sizeof one, "%sy%d", k ? " " : "", k);
        strcat(names, one);
    }
    mb_node(m, "user::Many", "x", names, "");
    for (int k = 0; k < OUTPUTS; k++) {
        snprintf(one, sizeof one, "y%d", k);
        mb_output(m, one, PRONY_FLOAT32, "4");
    }
    size_t size;
    const void *bytes = mb_finish(m, &size);
    for (int spoilt = -1; spoilt < OUTPUTS; spoilt++) {
        SCENARIO(spoilt);
        prony_error error = {0};
        prony_registry *registry = NULL;
        prony_model *model = NULL;
        prony_session *session = NULL;
        char wanted[80];
        assert_int_equal(prony_registry_create(&registry, &error), PRONY_OK);
        prony_operator many = PRONY_OPERATOR_INIT;
        many.domain = "user";
        many.name = "Many";
        many.infer = same_shapes;
        many.cost = no_cost;
        many.run = spoil;
        many.user = &spoilt;
        assert_int_equal(prony_registry_add(registry, &many, &error), PRONY_OK);
        prony_model_options options = PRONY_MODEL_OPTIONS_INIT;
        options.registry = registry;
        if (prony_model_load_memory(&model, "built", bytes, size, &options, &error) != PRONY_OK)
            fail_msg("%s", error.message);
        if (prony_session_create(&session, model, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
        assert_int_equal(prony_session_generate_inputs(session, 0, &error), PRONY_OK);
        const prony_status status = prony_session_run(session, &error);
        snprintf(wanted, sizeof wanted, "address of output %d", spoilt);
        if (spoilt < 0 && status != PRONY_OK) fail_msg("%s", error.message);
        if (spoilt >= 0) assert_int_equal(status, PRONY_INVALID_ARGUMENT);
        if (spoilt >= 0 && !strstr(error.message, wanted)) fail_msg("%s", error.message);
        prony_session_release(session);
        prony_model_release(model);
        prony_registry_release(registry);
    }
    mb_free(m);
}

static void columns_of_labels_are_found_wherever_they_are(void **state)
{
    (void)state;
    char path[] = "/tmp/prony_labels_XXXXXX.csv";
    const int fd = mkstemps(path, 4);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    for (int line = 0; line < 2; line++) {
        for (int column = 0; column < 60; column++)
            fprintf(file, "%s,",
                    line           ? (column == 50   ? "cat"
                                      : column == 40 ? "a.png"
                                                     : "0")
                    : column == 50 ? "label"
                    : column == 40 ? "file"
                                   : "other");
        fputs("end\n", file);
    }
    assert_int_equal(fclose(file), 0);
    prony_error error = {0};
    prn_bump pool = {0};
    prn_label_list list;
    if (prn_label_list_read(&list, &pool, path, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.rows[0].label, "cat");
    assert_string_equal(list.rows[0].file, "a.png");
    prn_bump_release(&pool);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_operator_and_kernel_is_listed),
                                       cmocka_unit_test(outputs_of_a_users_operator_are_all_looked_after),
                                       cmocka_unit_test(columns_of_labels_are_found_wherever_they_are)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
