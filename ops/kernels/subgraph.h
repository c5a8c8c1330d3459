/* Shared by operators with subgraphs, sequences and optionals: types that may be open, and outputs made from values
 * that others own. */
#ifndef PRN_OPS_KERNELS_SUBGRAPH_H
#define PRN_OPS_KERNELS_SUBGRAPH_H

#include "ops/op.h"

/* Kind, element type and shape alone. */
prony_value prn_type_of(const prony_value *value);
/* Of nothing known: not even whether it is a tensor. */
bool prn_type_open(const prony_value *type);
bool prn_type_equal(const prony_value *a, const prony_value *b);
/* *type becomes what holds for a value that may be either; tensors of different elements are an error, said of
 * `what`. */
prony_status prn_type_join(const prony_context *context, prony_value *type, const prony_value *other, const char *what);
/* Sets type and shape of output k, if it is wanted. */
void prn_set_output_type(const prony_context *context, size_t k, const prony_value *type);

/* The single bool or integer in input i; `absent` where the input is omitted. Checks type and size; its data is
 * there. */
prony_status prn_scalar_bool(const prony_context *context, const prony_value *value, const char *what, bool *out);
prony_status prn_scalar_int(const prony_context *context, size_t input, int64_t absent, int64_t *out);

/* Output k (if wanted) gets what `from` has; `from` stays whose it is. */
prony_status prn_output_copy(const prony_context *context, size_t k, const prony_value *from);

/* Numbers of inputs and outputs of a subgraph. */
prony_status prn_subgraph_count(const prony_context *context, const struct prn_graph *graph, size_t *inputs,
                                size_t *outputs);

/* A body that is run again on what it made: values [first_in, first_in + count) of its inputs are values
 * [first_out, first_out + count) of its outputs, one trip later. */
typedef struct prn_trip_body {
    const struct prn_graph *graph;
    size_t input_count, output_count;
    size_t first_in, first_out, carried_count;
} prn_trip_body;

/* Types of all outputs, and in inputs[] of the carried values, that hold for every trip. inputs[] has those of the
 * first. */
prony_status prn_trip_infer(const prony_context *context, const prn_trip_body *body, prony_value *inputs,
                            prony_value *outputs);
/* Cost of one trip, marked as such. */
prony_status prn_trip_cost(const prony_context *context, const struct prn_graph *graph, prony_cost *cost);

/* The working arrays of a run, in context->scratch. */
typedef struct prn_trip_state {
    prony_value *carried, *next, *results;
    const prony_value **inputs; /* of the body; those of carried values point into `carried` */
    bool owned;                 /* carried values are the operator's own: after the first trip */
} prn_trip_state;
size_t prn_trip_scratch_bytes(const prn_trip_body *body);
void prn_trip_state_init(prn_trip_state *state, const prn_trip_body *body, void *scratch);
/* One trip: runs the body on state->inputs. Its outputs are in state->results until prn_trip_advance. */
prony_status prn_trip_run(const prony_context *context, const prn_trip_body *body, prn_trip_state *state);
/* The carried values become the operator's own, for the next trip. */
prony_status prn_trip_advance(const prony_context *context, const prn_trip_body *body, prn_trip_state *state);
/* Carried value k becomes output k. */
prony_status prn_trip_finish(const prony_context *context, prn_trip_state *state, size_t k);

/* `type`'s shape with `extent` put in as axis `axis`; unknown stays unknown. false: the rank grows too large. */
bool prn_shape_insert(prony_shape *shape, int64_t axis, int64_t extent);
void prn_shape_remove(prony_shape *shape, int64_t axis);
/* The shape of one slice of an output that no trip has made: as inferred, or else declared; unknown extents are 0. */
prony_status prn_trip_slice_type(const prony_context *context, const struct prn_graph *graph, size_t output,
                                 const prony_value *inferred, prony_value *slice);

#endif
