/* Makes the plan of a program. */
#ifndef PRN_ENGINE_PLAN_PLANNER_H
#define PRN_ENGINE_PLAN_PLANNER_H

#include "engine/plan/plan.h"

/* `outer` is NULL except for subgraphs, whose buffers lie inside a buffer of the outer plan. Operators of options->split
 * stay on the host; prn_plan_create_split (engine/plan/device_split.h) finds them. */
PRN_MUST_USE prony_status prn_plan_create(prn_plan **out, prn_program *program, prn_plan *outer,
                                          const prn_plan_options *options, prony_error *error);
void prn_plan_release(prn_plan *plan);
/* Adapts the plan after its program took other extents (engine/bind/dynamic_dims.h): steps, kernels and buffers stay,
 * and kernels prepare again. *fits is false if a layout, an alias or the buffer sizes would have to change; the plan
 * can then only be released, as after a failure. Only for plans made with options.follows. */
PRN_MUST_USE prony_status prn_plan_respecialize(prn_plan *plan, bool *fits, prony_error *error);

/* ---- its parts ---- */

/* Gives layers with a cost whose node became no step to a step (step_costs.c). Called once the plan's steps are
 * final. */
PRN_MUST_USE prony_status prn_plan_adopt_layers(prn_plan *plan, prony_error *error);
/* The step's cost: the sum of its layers, with the traffic across its own border. */
PRN_MUST_USE prony_status prn_plan_step_cost(prn_plan *plan, prn_step *step, prony_error *error);
/* Calls `prepare` of the step's kernel. The constants that it reads are pinned. */
PRN_MUST_USE prony_status prn_plan_prepare_step(prn_step *step, prony_error *error);

/* Adds a plan value for program value `source`; PRN_NO_VALUE: out of memory. */
uint32_t prn_plan_add_value(prn_plan *plan, uint32_t source);
/* Makes the value share the first bytes of `of`. */
void prn_plan_make_view(prn_plan *plan, uint32_t value, uint32_t of);
/* true: another value may share this one's bytes. A constant's always, because they are not in a buffer. */
bool prn_plan_may_share(const prn_plan *plan, uint32_t value);
/* A step whose contexts point at plan values; ids are copied. NULL: out of memory. */
prn_step *prn_plan_add_step(prn_plan *plan, prn_node_def *node, const uint32_t *inputs, uint32_t input_count,
                            const uint32_t *outputs, uint32_t output_count);
/* Appends the step to the order; Reorders and Copies may have been appended since it was made. */
PRN_MUST_USE prony_status prn_plan_append_step(prn_plan *plan, prn_step *step, prony_error *error);

/* Layout and memory space of a value. Kernels ask for them, and they identify the forms of one value
 * (engine/plan/assign_layouts.c). */
typedef struct prn_layout_key {
    prn_layout layout;
    uint8_t memory_space; /* as prn_plan_value has it */
} prn_layout_key;

/* The form of `value` in this layout and memory space. If it does not exist, a view or Reorder and Copy steps make
 * it. */
PRN_MUST_USE prony_status prn_plan_value_in(prn_plan *plan, uint32_t value, prn_layout_key key, uint32_t *out,
                                            prony_error *error);
/* Replaces inputs by the forms that the step's kernel asks for, and gives outputs the kernel's layouts. */
PRN_MUST_USE prony_status prn_plan_assign_layouts(prn_plan *plan, prn_step *step, prony_error *error);

/* Bytes of the device beyond which no plan is made: the user's limit; where plans may be split, at most the memory that
 * the device has. UINT64_MAX: no limit. */
uint64_t prn_plan_device_limit(const prn_plan_options *options);
/* NULL: the host's memory. */
const prn_memory_space *prn_plan_space_of(const prn_plan *plan, uint32_t value);
/* true: a constant that a device reads is copied there once, when the plan is made (engine/plan/memory_spaces.c). */
bool prn_plan_stays_on_device(const prn_plan *plan, uint32_t value);

/* The binding of prony::Copy (engine/plan/memory_spaces.c). Copy has no row in the operator table, because it works on
 * plans' memory spaces. */
prn_operator_binding prn_plan_copy_binding(void);

/* These three pin deferred constants whose bytes are read (engine/plan/constants.c): by the step's prepare and runs,
 * except those that its kernel packs; those that the kernel might have packed but did not; those that are outputs. */
PRN_MUST_USE prony_status prn_plan_hold_inputs(prn_plan *plan, prn_step *step, prony_error *error);
PRN_MUST_USE prony_status prn_plan_hold_unpacked(prn_plan *plan, const prn_step *step, prony_error *error);
PRN_MUST_USE prony_status prn_plan_hold_outputs(prn_plan *plan, prony_error *error);
/* Bytes of the largest constant that the step's kernel packs. They exist beside the packed form during packing, in
 * memory or as pages of the file. */
uint64_t prn_plan_bytes_to_pack(const prn_plan *plan, const prn_step *step);

#endif
