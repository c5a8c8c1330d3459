/* The pieces of working space that tasks of a matrix product share, under C11's memory model (weak_memory.h), by
 * ops/kernels/gemm/gemm_native.c itself: a piece has one user at a time, who sees what the last one wrote. */
#include "weak_source.h"

#include "ops/kernels/gemm/gemm_bf16x3.h"

static bool use_piece(char *space);
#define prn_gemm_bf16x3_block(gemm, i0, i1, j0, j1, space) ((void)(gemm), use_piece(space))

#include "ops/kernels/gemm/gemm_native.c"

static gemm_job product;
static char space[2];
static unsigned without;

static bool use_piece(char *piece)
{
    if (piece)
        ++*piece;
    else
        without++;
    return true;
}

static void one_piece(void)
{
    product = (gemm_job){.piece_bytes = 1, .pieces = 1};
    product.gemm.space = space;
    memset(space, 0, sizeof space);
    weak_label(&product.taken, sizeof product.taken, "taken");
    weak_label(space, sizeof space, "space");
}

static void two_pieces(void)
{
    one_piece();
    product.pieces = 2;
}

static void run_task(void)
{
    (void)run_split(&product, &product.gemm, 0, 1, 0, 1);
}

static const weak_program one = {one_piece, {run_task, run_task}, NULL},
                          two = {two_pieces, {run_task, run_task, run_task}, NULL};

static void pieces_are_exclusive(void **state)
{
    (void)state;
    weak_assert_correct("two tasks, one piece", &one);
    weak_assert_correct("three tasks, two pieces", &two);
}

static void weaker_orders_are_faults(void **state)
{
    static const weak_needed rows[] = {
        {&one, {"taken", WEAK_COMPARE, __ATOMIC_RELAXED}, WEAK_RACE},
        {&one, {"taken", WEAK_AND, __ATOMIC_RELAXED}, WEAK_RACE},
        {&two, {"taken", WEAK_COMPARE, __ATOMIC_RELAXED}, WEAK_RACE},
        {&two, {"taken", WEAK_AND, __ATOMIC_RELAXED}, WEAK_RACE},
    };
    (void)state;
    weak_assert_needed(rows, sizeof rows / sizeof rows[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_exclusive),
        cmocka_unit_test(weaker_orders_are_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
