/* Runs a random graph through the engine in a chosen way, and compares outputs. Nothing here ends a test: refusals and
 * differences are results. */
#ifndef PRN_TESTS_SUPPORT_GRAPH_RUN_H
#define PRN_TESTS_SUPPORT_GRAPH_RUN_H

#include "engine/bind/engine_model.h"
#include "tests/support/random_graph.h"

typedef struct graph_model {
    prony_model model;
    model_builder *builder;
    prony_value *inputs; /* with data */
    size_t input_count;
    prony_error error;
} graph_model;

/* PRONY_OK, or the failure of loading. Close it in either case. */
prony_status graph_open(graph_model *m, const random_graph *g);
void graph_close(graph_model *m);

typedef struct graph_way {
    const char *name;
    bool no_rewrites, no_reuse, fill_dead;
    int threads, runs;
    int workers;           /* 0 and 1: one */
    bool no_work_stealing; /* of several */
    prony_precision precision;
    uint64_t replay; /* several: in the order of this seed, see plan_replay.h; 0: by threads */
    uint64_t *fired; /* counts of prn_program_rewrite_counted; NULL: not wanted */
} graph_way;

typedef struct graph_outputs {
    prony_status status;
    prony_value *values; /* copies */
    size_t count;
    char message[PRONY_ERROR_MESSAGE_BYTES];
} graph_outputs;

/* Binds, plans and runs; with more than one run every one must give the same bytes (PRONY_INTERNAL otherwise), and no
 * dynamic value may be left. */
void graph_run(graph_model *m, const graph_way *way, graph_outputs *out);
void graph_outputs_free(graph_outputs *outputs);

/* Element `i`, as a number. */
double graph_element(const prony_value *value, size_t i);
/* Type, shape and bytes. `text` names the difference. */
bool graph_same(const graph_outputs *a, const graph_outputs *b, char *text, size_t size);
/* Type and shape, and elements within `bound` times the largest of the output (at least 1). */
bool graph_near(const graph_outputs *a, const graph_outputs *b, double bound, char *text, size_t size);

#endif
