/* The minimum cut against every cut of small random graphs: its cost, and the side of nodes in a tie. */
#include "engine/memory/min_cut.h"
#include "failure_trace.h"
#include "profiler/statistics/statistics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { NODES = 8, EDGES = 20 };

typedef struct edge {
    uint32_t from, to;
    int64_t capacity;
} edge;

static int64_t cost_of(const edge *edges, size_t count, unsigned source_side)
{
    int64_t cost = 0;
    for (size_t e = 0; e < count; e++)
        if (source_side >> edges[e].from & 1 && !(source_side >> edges[e].to & 1)) cost += edges[e].capacity;
    return cost;
}

static unsigned ones(unsigned bits)
{
    unsigned count = 0;
    for (; bits; bits &= bits - 1) count++;
    return count;
}

static void every_cut_of_small_graphs(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (int trial = 0; trial < 400; trial++) {
        edge edges[EDGES];
        bool side[NODES];
        prn_min_cut *cut = prn_min_cut_create(NODES, EDGES);
        assert_non_null(cut);
        SCENARIO(trial);
        for (size_t e = 0; e < EDGES; e++) {
            edges[e] = (edge){(uint32_t)(prn_random_below(&seed, NODES)), (uint32_t)(prn_random_below(&seed, NODES)),
                              (int64_t)(prn_random_below(&seed, 5))};
            prn_min_cut_edge(cut, edges[e].from, edges[e].to, edges[e].capacity);
        }
        assert_true(prn_min_cut_solve(cut, side));
        prn_min_cut_release(cut);
        unsigned got = 0;
        for (unsigned n = 0; n < NODES; n++) got |= (unsigned)side[n] << n;
        assert_int_equal(got & 3, 1); /* the source is on its side, the sink is not */
        for (unsigned other = 1; other < 1u << NODES; other += 4) {
            assert_true(cost_of(edges, EDGES, got) <= cost_of(edges, EDGES, other));
            if (cost_of(edges, EDGES, got) == cost_of(edges, EDGES, other)) assert_true(ones(got) >= ones(other));
        }
    }
}

/* A path of many nodes, of which the least edge is cut. */
static void a_long_path(void **state)
{
    (void)state;
    enum { LENGTH = 3000, LEAST = 1234 };
    static bool side[PRN_CUT_FIRST + LENGTH];
    prn_min_cut *cut = prn_min_cut_create(PRN_CUT_FIRST + LENGTH, LENGTH + 1);
    prn_min_cut_edge(cut, PRN_CUT_SOURCE, PRN_CUT_FIRST, PRN_CUT_NEVER);
    for (uint32_t n = 1; n < LENGTH; n++)
        prn_min_cut_edge(cut, PRN_CUT_FIRST + n - 1, PRN_CUT_FIRST + n, n == LEAST ? 3 : 100);
    prn_min_cut_edge(cut, PRN_CUT_FIRST + LENGTH - 1, PRN_CUT_SINK, PRN_CUT_NEVER);
    assert_true(prn_min_cut_solve(cut, side));
    for (uint32_t n = 0; n < LENGTH; n++) assert_int_equal(side[PRN_CUT_FIRST + n], n < LEAST);
    prn_min_cut_release(cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_cut_of_small_graphs), cmocka_unit_test(a_long_path)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
