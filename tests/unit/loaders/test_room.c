/* Lists with a small initial capacity grow: fields of a line of labels, outputs of a user's operator. */
#include "failure_trace.h"
#include "loaders/label_file.h"
#include "prony_operator.h"
#include "tests/support/model_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { FIELDS = 100 };

/* The label stands in the last of a hundred columns. */
static void many_fields(void **unused)
{
    (void)unused;
    char path[] = "test_room_XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    FILE *to = fdopen(file, "w");
    assert_non_null(to);
    for (int line = 0; line < 3; line++)
        for (int f = 0; f < FIELDS; f++) {
            if (line == 0)
                fprintf(to, f == FIELDS - 1 ? "label\n" : f == 50 ? "file," : "f%d,", f);
            else
                fprintf(to, f == FIELDS - 1 ? "\"class, %d\"\n" : "value %d,", line * 1000 + f);
        }
    fclose(to);
    prn_bump pool = {0};
    prn_label_list list;
    prony_error error = {0};
    const prony_status status = prn_label_list_read(&list, &pool, path, &error);
    unlink(path);
    if (status != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.rows[0].label, "class, 1099");
    assert_string_equal(list.rows[1].label, "class, 2099");
    assert_string_equal(list.rows[1].file, "value 2050");
    prn_bump_release(&pool);
}

static prony_status infer_many(const prony_context *context)
{
    for (size_t k = 0; k < context->output_count; k++)
        *context->outputs[k] = (prony_value){.dtype = context->inputs[0]->dtype, .shape = context->inputs[0]->shape};
    return PRONY_OK;
}

/* Output `user` gets another address than the plan gave it. */
static prony_status move_one(const prony_context *context)
{
    static float elsewhere[4];
    for (size_t k = 0; k < context->output_count; k++)
        memcpy(context->outputs[k]->data, context->inputs[0]->data, 4 * sizeof(float));
    const int moved = *(const int *)context->user;
    if (moved >= 0) context->outputs[moved]->data = elsewhere;
    return PRONY_OK;
}

static prony_status no_cost(const prony_context *context, prony_cost *cost)
{
    (void)context;
    (void)cost;
    return PRONY_OK;
}

static void many_outputs(void **unused)
{
    (void)unused;
    const float x[4] = {1, 2, 3, 4};
    static const int moved[] = {-1, 0, 7, 8, 11};
    for (size_t i = 0; i < sizeof moved / sizeof *moved; i++) {
        SCENARIO(i);
        prony_error error = {0};
        int one = moved[i];
        model_run run = {0};
        prony_operator many = PRONY_OPERATOR_INIT;
        many.domain = "test";
        many.name = "Many";
        many.infer = infer_many;
        many.cost = no_cost;
        many.run = move_one;
        many.user = &one;
        assert_int_equal(prony_registry_create(&run.registry, &error), PRONY_OK);
        assert_int_equal(prony_registry_add(run.registry, &many, &error), PRONY_OK);
        prony_registry *registry = run.registry;
        model_builder *m = mb_begin(17);
        mb_opset(m, "test", 1);
        mb_input(m, "x", PRONY_FLOAT32, "4");
        mb_node(m, "test::Many", "x", "a b c d e f g h i j k l", "");
        mb_output(m, "a", PRONY_FLOAT32, NULL);
        mb_output(m, "i", PRONY_FLOAT32, NULL);
        mb_output(m, "l", PRONY_FLOAT32, NULL);
        mr_open(&run, m);
        mr_set(&run, "x", PRONY_FLOAT32, "4", x);
        if (one < 0)
            mr_expect(mr_run(&run, 2), PRONY_FLOAT32, "4", x);
        else
            mr_refused(&run, PRONY_INVALID_ARGUMENT, "changed the type, shape or address of output");
        mr_close(&run);
        prony_registry_release(registry);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_fields), cmocka_unit_test(many_outputs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
