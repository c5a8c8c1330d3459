/* The room for facts of a cost: a cost function that gives more than fit is refused, in Release builds too. */
#include "engine/bind/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static prony_status add_facts(const prony_context *context, prony_cost *cost)
{
    for (int64_t i = 0; i < *(const int *)context->user; i++) prn_cost_fact(cost, "fact", i);
    return PRONY_OK;
}

static void more_facts_than_fit_are_refused(void **state)
{
    (void)state;
    int count = PRONY_MAX_FACTS;
    prony_error error = {0};
    prony_cost cost;
    const prony_context context = {.error = &error};
    const prn_node_def node = {.binding = {.cost = add_facts, .cost_user = &count}};
    assert_int_equal(prn_node_cost(&node, &context, &cost), PRONY_OK);
    assert_int_equal(cost.fact_count, PRONY_MAX_FACTS);
    assert_int_equal(cost.facts[PRONY_MAX_FACTS - 1].value, PRONY_MAX_FACTS - 1);
    count++;
    assert_int_equal(prn_node_cost(&node, &context, &cost), PRONY_LIMIT);
    assert_int_equal(cost.fact_count, 0);
    assert_non_null(strstr(error.message, "13 facts of its cost; at most 12"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(more_facts_than_fit_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
