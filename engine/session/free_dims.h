/* Sizes of free dimensions of a model's inputs: given by options or bound inputs, assumed, or left open for the user.
 * Sessions, prony_inspect and the list for users share this code. */
#ifndef PRN_ENGINE_SESSION_FREE_DIMS_H
#define PRN_ENGINE_SESSION_FREE_DIMS_H

#include "engine/session/io_info.h"

/* A free dimension that was not given, and its assumed size. Input and axis are the first ones with its name. */
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

/* The least extents that the values of a graph need (free_dims_least.c). */
typedef struct prn_least_extents prn_least_extents;
PRN_MUST_USE prony_status prn_least_extents_find(prn_least_extents **out, const prn_graph *graph, prony_error *error);
void prn_least_extents_free(prn_least_extents *least);
/* The least extent of an axis of the value `name`, from 1; *features: the features of a tree ensemble say so. */
int64_t prn_least_extent(const prn_least_extents *least, const char *name, int axis, bool *features);

/* Shapes of all inputs while they are resolved. */
typedef struct prn_input_shapes {
    prony_shape *shapes; /* one per input; those of bound inputs are given, the others are filled */
    const bool *bound;   /* NULL: none is */
    prn_dims dims;       /* first of the bound inputs, finally of all inputs */
    prn_assumed_list assumed;
    int64_t image[2];         /* height and width that the file's metadata gives, -1: none; 0: not read yet */
    prn_names read;           /* names that the graph reads, once an input has asked */
    prn_least_extents *least; /* once an axis has asked */
    size_t open;              /* dimensions that stay open */
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

/* ---- sizes implied by the model's own shapes (free_dims_trial.c) ---- */

/* Gives open dimensions the extents that reproduce the shapes that the file declares for other tensors, if exactly one
 * choice does. */
PRN_MUST_USE prony_status prn_free_dims_imply(prn_input_shapes *s, const prony_model *model, prony_error *error);
/* Gives all open dimensions usual extents for which the model's shapes fit. `shapes` has one shape per input and stays
 * unchanged if no tried size fits. */
PRN_MUST_USE prony_status prn_free_dims_example(prony_shape *shapes, const prony_model *model, prony_error *error);

/* Appends the sizes of free dimensions to a message about shapes. `shapes`: one per input. */
void prn_error_name_dims(prony_error *error, const prony_model *model, const prony_value *inputs,
                         const prn_assumed_list *assumed);
/* true: a failure of this status may follow from the input shapes. */
bool prn_is_shape_failure(prony_status status);

#endif
