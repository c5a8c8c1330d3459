/* A stage: a run of nodes of a model's rewritten program, which one process of several executes. The stage is a model
 * of its own whose graph has other inputs and outputs, so that sessions need not know of it: the whole graph is bound
 * and rewritten, and then narrowed to the stage's nodes. Rewrites therefore see the whole model, and no cut changes
 * bits. */
#ifndef PRN_ENGINE_BIND_STAGE_H
#define PRN_ENGINE_BIND_STAGE_H

#include "engine/bind/program.h"

typedef struct prn_stage {
    prony_model *whole;  /* a reference */
    prn_model_file file; /* the model's, with the ports of the stage; its maps belong to `whole` */
    prony_value *inputs; /* types and shapes of the model's inputs that the stage is for */
    size_t input_count;
    uint32_t first, end; /* nodes of the rewritten program */
    prn_bump pool;       /* of the ports */
} prn_stage;

/* Values of a program that a run of its nodes reads from outside, and those that others read. Arrays in `pool`. */
typedef struct prn_stage_border {
    uint32_t *inputs,
        *outputs; /* ascending inputs; outputs: those of the graph in their order, then others, ascending */
    size_t input_count, output_count;
    uint32_t *graph_outputs; /* [output_count] position among the graph's outputs, or PRN_NO_VALUE */
} prn_stage_border;

/* By value, the live node that makes it plus 1; 0: none does, or it is constant. The caller frees it; NULL: out of
 * memory. */
uint32_t *prn_program_makers(const prn_program *program);

/* Calls `see` for each value, not constant, that a live node reads; captured values of subgraphs too. */
void prn_node_reads(const prn_program *program, const prn_node_def *node, void (*see)(void *user, uint32_t value),
                    void *user);

/* The stage of the first node has the graph outputs that no node makes. */
PRN_MUST_USE prony_status prn_stage_border_find(prn_stage_border *out, const prn_program *program, uint32_t first,
                                                uint32_t end, prn_bump *pool, prony_error *error);

/* Leaves only the nodes of the stage alive; inputs and outputs of the program become those of the stage. Layers stay:
 * reports of all stages have the same rows. PRONY_INTERNAL: the program is not the one that the stage was made for. */
PRN_MUST_USE prony_status prn_program_narrow(prn_program *program, const prn_stage *stage, prony_error *error);

/* A model of nodes [first, end) of `whole`, bound at `inputs` (without data); `program` is that of the whole model.
 * The names of its ports are copied. */
PRN_MUST_USE prony_status prn_stage_create(prony_model **out, prony_model *whole, const prony_value *inputs,
                                           size_t input_count, const prn_program *program, uint32_t first, uint32_t end,
                                           prony_error *error);
void prn_stage_release(prn_stage *stage);

#endif
