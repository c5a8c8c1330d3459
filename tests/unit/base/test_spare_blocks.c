/* Blocks that wait for the next allocation of a thread: which ones, who pays for them, and their release. */
#include "base/memory/alloc.h"
#include "base/memory/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void released_blocks_are_taken_again(void **unused)
{
    (void)unused;
    prn_spare_blocks spare = {0};
    assert_null(prn_spare_blocks_enter(&spare));
    unsigned char *block = prn_alloc(100), *aligned = prn_alloc_aligned(64, 1000);
    assert_true(block && aligned);
    prn_free(block);
    prn_free_aligned(aligned);
    const uint64_t calls = prn_heap_calls();
    unsigned char *zeros = prn_calloc(10, 9), *again = prn_alloc_aligned(64, 900);
    assert_ptr_equal(zeros, block);
    assert_ptr_equal(again, aligned);
    for (size_t i = 0; i < 90; i++) assert_int_equal(zeros[i], 0);
    memset(again, 1, 900);
    assert_ptr_equal(prn_realloc(zeros, 100, 1), zeros); /* it has room */
    assert_int_equal(prn_heap_calls(), calls);
    prn_free(zeros);
    prn_free_aligned(again);
    assert_int_equal(prn_heap_calls(), calls);
    assert_ptr_equal(prn_spare_blocks_enter(NULL), &spare);
    unsigned char *other = prn_alloc(100); /* outside of it, the heap answers */
    assert_int_equal(prn_heap_calls(), calls + 1);
    prn_free(other);
    prn_spare_blocks_release(&spare);
    assert_int_equal(spare.bytes, 0);
}

/* A smaller request takes a larger block, a larger request does not take a smaller one. */
static void blocks_fit(void **unused)
{
    (void)unused;
    prn_spare_blocks spare = {0};
    (void)prn_spare_blocks_enter(&spare);
    for (size_t bytes = 0; bytes < 5000; bytes += 37) {
        unsigned char *block = prn_alloc(bytes);
        memset(block, 7, bytes);
        prn_free(block);
        unsigned char *larger = prn_alloc(2 * bytes + 100);
        memset(larger, 8, 2 * bytes + 100);
        prn_free(larger);
    }
    unsigned char *large = prn_alloc((size_t)3 << 20); /* larger blocks do not wait */
    const size_t held = spare.bytes;
    prn_free(large);
    assert_int_equal(spare.bytes, held);
    (void)prn_spare_blocks_enter(NULL);
    prn_spare_blocks_release(&spare);
}

/* A block without room for the list of those that wait goes back to the heap. */
static void blocks_of_no_bytes_do_not_wait(void **unused)
{
    (void)unused;
    prn_spare_blocks spare = {0};
    (void)prn_spare_blocks_enter(&spare);
    void *block = prn_alloc_aligned(64, 0), *other = prn_alloc_aligned(64, 0);
    assert_true(block && other);
    prn_free_aligned(block);
    prn_free_aligned(other);
    assert_int_equal(spare.bytes, 0);
    assert_int_equal(spare.filled[0] | spare.filled[1], 0);
    void *plain = prn_alloc(0);
    prn_free(plain);
    assert_ptr_equal(prn_alloc(0), plain);
    prn_free(plain);
    (void)prn_spare_blocks_enter(NULL);
    prn_spare_blocks_release(&spare);
}

/* A block waits for its own budget, which pays until its release. */
static void budgets_pay_for_waiting_blocks(void **unused)
{
    (void)unused;
    prn_spare_blocks spare = {0};
    prn_budget *one = prn_budget_create(NULL, 0), *two = prn_budget_create(NULL, 0);
    (void)prn_spare_blocks_enter(&spare);
    prn_budget *former = prn_budget_enter(one);
    void *block = prn_alloc(200);
    prn_free(block);
    assert_true(prn_budget_held(one) >= 200);
    (void)prn_budget_enter(two);
    void *foreign = prn_alloc(200);
    assert_ptr_not_equal(foreign, block);
    assert_true(prn_budget_held(two) >= 200);
    (void)prn_budget_enter(former);
    (void)prn_spare_blocks_enter(NULL);
    prn_free(foreign);
    prn_spare_blocks_release(&spare);
    assert_int_equal(prn_budget_held(one), 0);
    assert_int_equal(prn_budget_held(two), 0);
    prn_budget_release(one);
    prn_budget_release(two);
}

/* A requested failure happens whether or not a block waits. */
static void failures_reach_waiting_blocks(void **unused)
{
    (void)unused;
    prn_spare_blocks spare = {0};
    (void)prn_spare_blocks_enter(&spare);
    prn_free(prn_alloc(50));
    prn_alloc_fail_at(1);
    assert_null(prn_alloc(50));
    assert_true(prn_alloc_failed());
    prn_alloc_fail_at(0);
    (void)prn_spare_blocks_enter(NULL);
    prn_spare_blocks_release(&spare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(released_blocks_are_taken_again), cmocka_unit_test(blocks_fit),
        cmocka_unit_test(blocks_of_no_bytes_do_not_wait),  cmocka_unit_test(budgets_pay_for_waiting_blocks),
        cmocka_unit_test(failures_reach_waiting_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
