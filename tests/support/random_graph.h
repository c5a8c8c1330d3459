/* Models made from a number: model N of random_graph_make is the same everywhere, until the maker changes. For tests
 * that run one model in two ways and compare, such as with and without reuse of memory.
 *
 *     random_graph *g = random_graph_make(seed, 0);
 *     model_builder *m = random_graph_build(g);     // mb_finish(m, &size), mb_free(m)
 *     random_graph_fill(g, i, data);                // data of graph input i
 *     random_graph_print(g, stdout);
 *     random_graph_free(g);
 *
 * A graph is kept as plain lists, so that a failing one can be made smaller: random_graph_reduce drops outputs, nodes
 * and operands for as long as the caller's predicate still finds the failure.
 */
#ifndef PRN_TESTS_SUPPORT_RANDOM_GRAPH_H
#define PRN_TESTS_SUPPORT_RANDOM_GRAPH_H

#include "base/memory/alloc.h"
#include "tests/support/model_builder.h"

#include <stdio.h>

enum { RG_MOST_RESULTS = 4, RG_MOST_BODIES = 2 };

typedef struct rg_graph rg_graph;

/* Dims known at run time only are -1. Contents of inputs and constants are `ints` or `reals` if given, else random in
 * low..high, which may be equal. */
typedef struct rg_value {
    prony_dtype dtype;
    prony_shape shape;
    bool constant, input;
    const int64_t *ints;
    const double *reals;
    double low, high;
    double most; /* rough bound of its elements, if they are numbers */
} rg_value;

typedef struct rg_node {
    const char *op, *attributes;
    const int *in; /* values; -1: omitted */
    size_t in_count;
    int out[RG_MOST_RESULTS];
    size_t out_count;
    rg_graph *body[RG_MOST_BODIES];
    const char *body_name[RG_MOST_BODIES];
} rg_node;

/* The model's graph, or a body, which may use values of the graphs around it. */
struct rg_graph {
    rg_node *nodes;
    size_t node_count, node_capacity;
    int *inputs, *outputs;
    size_t input_count, output_count;
};

typedef struct random_graph {
    prn_bump pool; /* owns everything below, and results of reducing */
    uint64_t seed;
    rg_value *values;
    size_t value_count, value_capacity;
    rg_graph main;
    /* Small differences of inputs or sums make small differences of outputs: nothing is rounded, compared or sorted. */
    bool smooth, batched;
    int64_t opset; /* 0: 17 */
} random_graph;

typedef enum rg_kind {
    RG_ANY = 0,
    RG_SMOOTH = 1,  /* see `smooth` */
    RG_BATCHED = 2, /* the first dim of every input is the same and free, and no operator mixes along it */
} rg_kind;

random_graph *random_graph_make(uint64_t seed, unsigned kinds);
void random_graph_free(random_graph *g);

model_builder *random_graph_build(const random_graph *g);
/* The elements of graph input `index`; if `batch` is not negative, it replaces the first dim. */
void random_graph_fill(const random_graph *g, size_t index, int64_t batch, void *data);
void random_graph_print(const random_graph *g, FILE *to);
size_t random_graph_nodes(const random_graph *g);

/* Element `i` of a constant or graph input. */
double random_graph_element(const random_graph *g, int id, int64_t i);

/* Makes `g` as small as possible while `fails` is true for it. */
void random_graph_reduce(random_graph *g, bool (*fails)(const random_graph *g, void *argument), void *argument);

/* ---- for the maker and the reducer ---- */

int rg_add_value(random_graph *g, rg_value value);
/* Operands are copied; results are those of `node`. */
rg_node *rg_add_node(random_graph *g, rg_graph *to, const char *op, const int *in, size_t in_count,
                     const char *attributes);
int *rg_copy_ids(random_graph *g, const int *ids, size_t count);
bool rg_known(const rg_value *value);

#endif
