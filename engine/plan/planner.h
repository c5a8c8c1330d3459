/* Makes the plan of a program. */
#ifndef PRN_ENGINE_PLAN_PLANNER_H
#define PRN_ENGINE_PLAN_PLANNER_H

#include "engine/plan/plan.h"

/* `outer` is NULL except for subgraphs, whose buffers lie inside a buffer of the outer plan. */
PRN_MUST_USE prony_status prn_plan_create(prn_plan **out, prn_program *program, prn_plan *outer,
                                          const prn_plan_options *options, prony_error *error);
void prn_plan_release(prn_plan *plan);

/* The plan's program has other extents now (engine/bind/dynamic_dims.h): steps, kernels and buffers that fit them stay, with
 * what kernels prepare made anew. *fits: false where that cannot be, as where a layout, what lies in what or the room
 * would differ; the plan is then good for nothing but to be released, as after a failure. Only of a plan made with
 * options.follows. */
PRN_MUST_USE prony_status prn_plan_respecialize(prn_plan *plan, bool *fits, prony_error *error);

/* ---- its parts ---- */

/* The step's cost: its layers', with the traffic across its own border. */
/* Layers that count something and whose node became no step go to a step (step_costs.c). Once the plan's steps are
 * final. */
PRN_MUST_USE prony_status prn_plan_adopt_layers(prn_plan *plan, prony_error *error);
PRN_MUST_USE prony_status prn_plan_step_cost(prn_plan *plan, prn_step *step, prony_error *error);
/* Asks the step's kernel to prepare; what it reads of constants is held. */
PRN_MUST_USE prony_status prn_plan_prepare_step(prn_step *step, prony_error *error);

/* Another value of the plan that is program value `source`; PRN_NO_VALUE: out of memory. */
uint32_t prn_plan_add_value(prn_plan *plan, uint32_t source);
/* The value's bytes are from now on those of `of`, as many as it has. */
void prn_plan_make_view(prn_plan *plan, uint32_t value, uint32_t of);
/* Whether another value may be this one's bytes: a constant's always, since they are nobody's buffer. */
bool prn_plan_may_share(const prn_plan *plan, uint32_t value);
/* A step whose contexts point at plan values; ids are copied. NULL: out of memory. */
prn_step *prn_plan_add_step(prn_plan *plan, prn_node_def *node, const uint32_t *inputs, uint32_t input_count,
                            const uint32_t *outputs, uint32_t output_count);
/* Makes it the next to run; Reorders and Copies may have come in between since it was made. */
PRN_MUST_USE prony_status prn_plan_append_step(prn_plan *plan, prn_step *step, prony_error *error);

/* How and where a value lies: what kernels ask for, and what tells forms of one value apart (engine/plan/assign_layouts.c). */
typedef struct prn_layout_key {
    prn_layout layout;
    uint8_t place; /* as prn_plan_value has it */
} prn_layout_key;

/* The form of `value` that lies so, made by a view, or by Reorder and Copy steps, if it is not there yet. */
PRN_MUST_USE prony_status prn_plan_value_in(prn_plan *plan, uint32_t value, prn_layout_key key, uint32_t *out,
                                            prony_error *error);
/* Inputs become the forms that the step's kernel asks for; outputs lie as it says. */
PRN_MUST_USE prony_status prn_plan_assign_layouts(prn_plan *plan, prn_step *step, prony_error *error);

/* The binding of prony::Copy, which has no row in the table: it is about plans' places (engine/plan/memory_spaces.c). */
prn_operator_binding prn_plan_copy_binding(void);

/* Holds the deferred constants whose bytes are read (engine/plan/constants.c): by the step's preparing and its runs,
 * apart from what its kernel packs; what that might have packed and has not; by whoever takes the outputs. */
PRN_MUST_USE prony_status prn_plan_hold_inputs(prn_plan *plan, prn_step *step, prony_error *error);
PRN_MUST_USE prony_status prn_plan_hold_unpacked(prn_plan *plan, const prn_step *step, prony_error *error);
PRN_MUST_USE prony_status prn_plan_hold_outputs(prn_plan *plan, prony_error *error);
/* Of the largest constant that the step's kernel packs: so much is there, in memory or as pages of the file, beside the
 * packed form while it does. */
uint64_t prn_plan_bytes_to_pack(const prn_plan *plan, const prn_step *step);

#endif
