/* The slots of fetched rows that tasks of an int8 product share, under C11's memory model (weak_memory.h), by
 * ops/kernels/int8/int8_gemm.c itself: a slot has one user at a time, who sees what the last one wrote. */
#include "weak_source.h"

#include "ops/kernels/int8/int8_gemm.c"

enum { TASKS = 2, DEPTH = PRN_QINT8_DEPTH };

/* A panel, its columns' sums, and for levels that split panels an empty list and the panel's steps. */
static _Alignas(64) int8_t panel[(DEPTH + 4) * PRN_QINT8_COLUMNS + 2 * 4 + 1];
static _Alignas(64) uint8_t slots[2 * BLOCK * 2 * DEPTH];
static prn_qint8_gemm product;
static job shared_job;

/* Every row is 1, and every weight is. */
static void fetch_ones(const void *argument, int64_t group, int64_t row, int64_t rows, uint8_t *to, int64_t to_row)
{
    (void)argument, (void)group, (void)row;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < DEPTH; k++) to[r * to_row + k] = 1;
}

static void check_sums(const void *argument, int64_t row, int64_t rows, int64_t column, int64_t columns,
                       const int32_t *sums)
{
    (void)argument, (void)row, (void)rows, (void)column, (void)columns;
    weak_require(sums[0] == DEPTH, "the product of the fetched row");
}

static void two_slots(void)
{
    memset(panel, 1, DEPTH * PRN_QINT8_COLUMNS);
    panel[sizeof panel - 1] = 1;
    memset(slots, 0, sizeof slots);
    product = (prn_qint8_gemm){
        .rows = 1, .columns = 1, .depth = DEPTH, .groups = 1, .fetch = fetch_ones, .store = check_sums};
    product.packed.panels = panel;
    shared_job = int8_gemm_job_of(&product);
    shared_job.shared = false; /* a task fetches its own rows */
    shared_job.space = slots;
    shared_job.free_slots = 3;
    weak_label(&shared_job.free_slots, sizeof shared_job.free_slots, "free_slots");
    weak_label(slots, sizeof slots, "slots");
}

static void run_tasks(void)
{
    for (int t = 0; t < TASKS; t++) int8_gemm_product_task(&shared_job, 0);
}

static const weak_program tasks = {two_slots, {run_tasks, run_tasks}, NULL};

static void slots_are_exclusive(void **state)
{
    (void)state;
    weak_assert_correct("two tasks of two threads, two slots", &tasks);
}

static void weaker_orders_are_faults(void **state)
{
    static const weak_needed rows[] = {
        {&tasks, {"free_slots", WEAK_OR, __ATOMIC_RELAXED}, WEAK_RACE},
    };
    (void)state;
    weak_assert_needed(rows, sizeof rows / sizeof rows[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_exclusive),
        cmocka_unit_test(weaker_orders_are_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
