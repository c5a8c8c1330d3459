/* Free dimensions of a model's inputs: what options and bound inputs say of them, what may be assumed, and who has to
 * be asked. One place decides it for sessions, for prony_inspect and for the list that users see. */
#ifndef PRN_ENGINE_SESSION_FREE_DIMS_H
#define PRN_ENGINE_SESSION_FREE_DIMS_H

#include "engine/session/io_info.h"

/* A free dimension that nobody fixed and what it became. Input and axis are those where its name stands first. */
typedef struct prn_assumed {
    size_t input;
    int axis;
    int64_t value;
    const char *reason; /* static; "" for a plain 1 */
} prn_assumed;

typedef struct prn_assumed_list {
    prn_assumed *items;
    size_t count, capacity;
} prn_assumed_list;

/* Shapes of all inputs while they are settled. */
typedef struct prn_input_shapes {
    prony_shape *shapes; /* one per input; those of bound inputs are given, the others are filled */
    const bool *bound;   /* NULL: none is */
    prn_dims dims;       /* of the bound inputs at first, in the end of all */
    prn_assumed_list assumed;
    int64_t image[2]; /* height and width that the file's metadata gives, -1: none; 0: not read yet */
    prn_names read;   /* names that the graph reads, once an input has asked */
    size_t open;      /* dimensions that nothing tells */
} prn_input_shapes;

PRN_MUST_USE prony_status prn_input_shapes_init(prn_input_shapes *s, const prony_model *model, prony_error *error);
void prn_input_shapes_free(prn_input_shapes *s);

/* Fills the shapes of inputs that are not bound. With PRONY_FREE_ASK some may stay open (extent -1). An input that
 * declares no rank keeps rank -1. */
PRN_MUST_USE prony_status prn_input_shapes_resolve(prn_input_shapes *s, const prony_model *model,
                                                   const prony_session_options *options, prony_error *error);
/* PRONY_NEEDS_DIMENSION, naming what is open, unless nothing is. */
PRN_MUST_USE prony_status prn_input_shapes_closed(const prn_input_shapes *s, const prony_model *model,
                                                  prony_error *error);

/* ---- what the model's own shapes tell (free_dims_trial.c) ---- */

/* Gives open dimensions the extents for which the shapes that the file declares of other tensors come out, if there is
 * one such choice alone. */
PRN_MUST_USE prony_status prn_free_dims_imply(prn_input_shapes *s, const prony_model *model, prony_error *error);
/* Gives all open dimensions usual extents for which the model's shapes fit; `shapes` has one shape per input and stays
 * as it is where none of those tried fits. */
PRN_MUST_USE prony_status prn_free_dims_example(prony_shape *shapes, const prony_model *model, prony_error *error);

/* Behind a message about shapes: what the free dimensions were. `shapes`: one per input. */
void prn_error_name_dims(prony_error *error, const prony_model *model, const prony_value *inputs,
                         const prn_assumed_list *assumed);
/* Whether a failure of this status may follow from the input shapes. */
bool prn_is_shape_failure(prony_status status);

#endif
