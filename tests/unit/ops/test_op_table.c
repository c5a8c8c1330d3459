/* Fixed sizes that the operator table must fit into: beyond them the engine would leave rows or kernels out. */
#include "failure_trace.h"
#include "engine/plan/tune.h"
#include "ops/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void the_index_by_name_has_room_for_every_row(void **state)
{
    (void)state;
    assert_true(prn_op_count() > 0);
    assert_true(2 * prn_op_count() <= PRN_OP_SLOTS);
}

static void every_row_is_found_by_its_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < prn_op_count(); i++) {
        SCENARIO(i);
        const prn_op *op = prn_op_at(i);
        assert_ptr_equal(prn_op_find(prn_op_domain(op), op->name, op->since_opset), op);
    }
    assert_null(prn_op_find("", "NoSuchOperator", 20));
    assert_null(prn_op_find("no.such.domain", "Conv", 20));
}

static void the_tuner_has_room_for_every_kernel_of_a_row(void **state)
{
    (void)state;
    size_t most = 0;
    for (size_t i = 0; i < prn_op_count(); i++) {
        size_t count = 0;
        while (prn_op_at(i)->kernels[count].name) count++;
        if (count > most) most = count;
    }
    assert_true(most > 1);
    assert_true(most <= PRN_TUNE_MOST_KERNELS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_index_by_name_has_room_for_every_row),
        cmocka_unit_test(every_row_is_found_by_its_name),
        cmocka_unit_test(the_tuner_has_room_for_every_kernel_of_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
