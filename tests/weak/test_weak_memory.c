/* The model checker itself (weak_memory.h) on programs whose outcomes under C11 are known: it finds all outcomes that
 * the standard allows, but for cycles of happens-before and reads-from, and none that the standard forbids. */
#include "weak_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

static atomic_int x, y;
static int data, seen[4];
static memory_order write_order, read_order;

static void clear(void)
{
    atomic_init(&x, 0);
    atomic_init(&y, 0);
    data = 0;
    for (int i = 0; i < 4; i++) seen[i] = 0;
    weak_label(&x, sizeof x, "x");
    weak_label(&y, sizeof y, "y");
}

static void note_two(void)
{
    weak_outcome((unsigned)(seen[0] + 4 * seen[1]));
}

static uint64_t outcomes_of(void (*a)(void), void (*b)(void), void (*c)(void), void (*d)(void), void (*finished)(void))
{
    const weak_program program = {clear, {a, b, c, d}, finished};
    const weak_result r = weak_explore(&program, NULL);
    if (r.fault) print_error("%s\n", r.message);
    assert_int_equal(r.fault, WEAK_CORRECT);
    return r.outcomes;
}

static weak_fault fault_of(void (*a)(void), void (*b)(void), void (*c)(void))
{
    const weak_program program = {clear, {a, b, c}, NULL};
    return weak_explore(&program, NULL).fault;
}

#define BIT(a, b) (UINT64_C(1) << ((a) + 4 * (b)))

/* ---- store buffering ---- */

static void store_x_load_y(void)
{
    atomic_store_explicit(&x, 1, write_order);
    seen[0] = atomic_load_explicit(&y, read_order);
}

static void store_y_load_x(void)
{
    atomic_store_explicit(&y, 1, write_order);
    seen[1] = atomic_load_explicit(&x, read_order);
}

static void stores_are_buffered(void **state)
{
    (void)state;
    write_order = memory_order_seq_cst, read_order = memory_order_seq_cst;
    assert_int_equal(outcomes_of(store_x_load_y, store_y_load_x, NULL, NULL, note_two),
                     BIT(0, 1) | BIT(1, 0) | BIT(1, 1));
    write_order = memory_order_release, read_order = memory_order_acquire;
    assert_int_equal(outcomes_of(store_x_load_y, store_y_load_x, NULL, NULL, note_two),
                     BIT(0, 0) | BIT(0, 1) | BIT(1, 0) | BIT(1, 1));
    write_order = memory_order_seq_cst, read_order = memory_order_acquire;
    assert_true(outcomes_of(store_x_load_y, store_y_load_x, NULL, NULL, note_two) & BIT(0, 0));
}

/* ---- message passing ---- */

static void send(void)
{
    data = 1;
    atomic_store_explicit(&x, 1, write_order);
}

static void receive(void)
{
    if (atomic_load_explicit(&x, read_order) == 1) weak_require(data == 1, "the message is there");
}

static void pass_on(void)
{
    atomic_fetch_add_explicit(&x, 1, memory_order_relaxed);
}

static void receive_two(void)
{
    if (atomic_load_explicit(&x, memory_order_acquire) == 2) weak_require(data == 1, "the message is there");
}

static void overwrite(void)
{
    atomic_store_explicit(&x, 2, memory_order_relaxed);
}

static void messages_need_release_and_acquire(void **state)
{
    (void)state;
    write_order = memory_order_release, read_order = memory_order_acquire;
    assert_int_equal(fault_of(send, receive, NULL), WEAK_CORRECT);
    assert_int_equal(fault_of(send, receive_two, overwrite), WEAK_RACE);
    read_order = memory_order_relaxed;
    assert_int_equal(fault_of(send, receive, NULL), WEAK_RACE);
    write_order = memory_order_relaxed, read_order = memory_order_acquire;
    assert_int_equal(fault_of(send, receive, NULL), WEAK_RACE);
}

static void send_and_pass_on(void)
{
    send();
    pass_on();
}

/* A release sequence goes through other threads' updates. x is 2 only behind both. */
static void updates_carry_a_release_on(void **state)
{
    (void)state;
    write_order = memory_order_release;
    assert_int_equal(fault_of(send_and_pass_on, receive_two, NULL), WEAK_CORRECT);
    write_order = memory_order_relaxed;
    assert_int_equal(fault_of(send_and_pass_on, receive_two, NULL), WEAK_RACE);
}

/* ---- coherence ---- */

static void store_one_then_two(void)
{
    atomic_store_explicit(&x, 1, memory_order_relaxed);
    atomic_store_explicit(&x, 2, memory_order_relaxed);
}

static void load_twice(void)
{
    seen[0] = atomic_load_explicit(&x, memory_order_relaxed);
    seen[1] = atomic_load_explicit(&x, memory_order_relaxed);
}

static void one_object_has_one_order(void **state)
{
    (void)state;
    assert_int_equal(outcomes_of(store_one_then_two, load_twice, NULL, NULL, note_two),
                     BIT(0, 0) | BIT(0, 1) | BIT(0, 2) | BIT(1, 1) | BIT(1, 2) | BIT(2, 2));
}

static void store_x1_y2(void)
{
    atomic_store_explicit(&x, 1, write_order);
    atomic_store_explicit(&y, 2, write_order);
}

static void store_y1_x2(void)
{
    atomic_store_explicit(&y, 1, write_order);
    atomic_store_explicit(&x, 2, write_order);
}

static void note_both(void)
{
    weak_outcome((unsigned)(atomic_load(&x) + 4 * atomic_load(&y)));
}

/* The first stores are last in both orders, except with seq_cst. */
static void stores_cross(void **state)
{
    (void)state;
    write_order = memory_order_release;
    assert_int_equal(outcomes_of(store_x1_y2, store_y1_x2, NULL, NULL, note_both),
                     BIT(1, 1) | BIT(1, 2) | BIT(2, 1) | BIT(2, 2));
    write_order = memory_order_seq_cst;
    assert_int_equal(outcomes_of(store_x1_y2, store_y1_x2, NULL, NULL, note_both), BIT(1, 2) | BIT(2, 1) | BIT(2, 2));
}

/* ---- independent reads of independent writes ---- */

static void store_x(void)
{
    atomic_store_explicit(&x, 1, write_order);
}

static void store_y(void)
{
    atomic_store_explicit(&y, 1, write_order);
}

static void load_x_y(void)
{
    seen[0] = atomic_load_explicit(&x, read_order);
    seen[1] = atomic_load_explicit(&y, read_order);
}

static void load_y_x(void)
{
    seen[2] = atomic_load_explicit(&y, read_order);
    seen[3] = atomic_load_explicit(&x, read_order);
}

static void note_disagreement(void)
{
    weak_outcome(seen[0] == 1 && seen[1] == 0 && seen[2] == 1 && seen[3] == 0);
}

static void readers_may_disagree(void **state)
{
    (void)state;
    write_order = memory_order_release, read_order = memory_order_acquire;
    assert_int_equal(outcomes_of(store_x, store_y, load_x_y, load_y_x, note_disagreement), 3);
    write_order = memory_order_seq_cst, read_order = memory_order_seq_cst;
    assert_int_equal(outcomes_of(store_x, store_y, load_x_y, load_y_x, note_disagreement), 1);
}

/* A relaxed access may overtake a sequentially consistent store of its thread, as it may on AArch64 (STLR, STR). */
static void store_x_y_mixed(void)
{
    atomic_store_explicit(&x, 1, memory_order_seq_cst);
    atomic_store_explicit(&y, 1, memory_order_relaxed);
}

static void load_y_x_mixed(void)
{
    seen[0] = atomic_load_explicit(&y, memory_order_relaxed);
    seen[1] = atomic_load_explicit(&x, memory_order_seq_cst);
}

static void relaxed_stores_overtake(void **state)
{
    (void)state;
    assert_int_equal(outcomes_of(store_x_y_mixed, load_y_x_mixed, NULL, NULL, note_two),
                     BIT(0, 0) | BIT(0, 1) | BIT(1, 0) | BIT(1, 1));
}

/* ---- updates, locks and conditions ---- */

static void add_twice(void)
{
    atomic_fetch_add_explicit(&x, 1, memory_order_relaxed);
    int expected = atomic_load_explicit(&x, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&x, &expected, expected + 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

static void sum_is_four(void)
{
    weak_require(atomic_load(&x) == 4, "no update is lost");
}

static int lock, condition;

static void add_locked(void)
{
    weak_mutex_lock(&lock);
    data++;
    weak_mutex_unlock(&lock);
}

static void wait_for_data(void)
{
    weak_mutex_lock(&lock);
    while (data == 0) weak_cond_wait(&condition, &lock);
    weak_mutex_unlock(&lock);
}

static void set_and_wake(void)
{
    weak_mutex_lock(&lock);
    data = 1;
    weak_cond_broadcast(&condition);
    weak_mutex_unlock(&lock);
}

static void sum_is_two(void)
{
    weak_require(data == 2, "both added");
}

static void updates_and_locks_exclude(void **state)
{
    (void)state;
    const weak_program updates = {clear, {add_twice, add_twice}, sum_is_four};
    assert_int_equal(weak_explore(&updates, NULL).fault, WEAK_CORRECT);
    const weak_program locks = {clear, {add_locked, add_locked}, sum_is_two};
    assert_int_equal(weak_explore(&locks, NULL).fault, WEAK_CORRECT);
    assert_int_equal(fault_of(wait_for_data, set_and_wake, NULL), WEAK_CORRECT);
    assert_int_equal(fault_of(wait_for_data, add_locked, NULL), WEAK_WAITS_FOREVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_are_buffered),
        cmocka_unit_test(messages_need_release_and_acquire),
        cmocka_unit_test(updates_carry_a_release_on),
        cmocka_unit_test(one_object_has_one_order),
        cmocka_unit_test(stores_cross),
        cmocka_unit_test(readers_may_disagree),
        cmocka_unit_test(relaxed_stores_overtake),
        cmocka_unit_test(updates_and_locks_exclude),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
