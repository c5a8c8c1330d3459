/* Compares the model's declared inputs with the caller's: names, types, fixed and free dimensions. */
#ifndef PRN_ENGINE_SESSION_IO_INFO_H
#define PRN_ENGINE_SESSION_IO_INFO_H

#include "engine/bind/names.h"
#include "engine/bind/engine_model.h"

/* Values of free dimensions known so far; symbols are borrowed. */
typedef struct prn_dims {
    prony_dim *items;
    size_t count, capacity;
    prn_names index; /* of `items`, by name */
} prn_dims;

void prn_dims_free(prn_dims *dims);
/* Removes all entries and keeps the capacity. */
void prn_dims_clear(prn_dims *dims);
/* NULL: unknown symbol. */
const prony_dim *prn_dims_find(const prn_dims *dims, const char *name);
/* Remembers a symbol's value; error if it has another one already. */
PRN_MUST_USE prony_status prn_dims_put(prn_dims *dims, const char *name, int64_t value, const char *file,
                                       const char *input, prony_error *error);

/* Refuses a value whose type, rank or fixed dimension differs from the declared one; the message names both. Puts the
 * values of free dimensions into `dims`. */
PRN_MUST_USE prony_status prn_port_accept(const prony_value_info *port, const prony_value *value, prn_dims *dims,
                                          const char *file, prony_error *error);

/* Puts the options' sizes of this input's free dimensions into `dims`. To be called for all inputs before the first
 * prn_port_fix, because a size given for one input holds for the others. */
PRN_MUST_USE prony_status prn_port_given(const prony_value_info *port, const prony_session_options *options,
                                         prn_dims *dims, const char *file, prony_error *error);
/* The declared shape of an input, completed by the options and `dims`. Open extents and an undeclared rank stay -1. */
PRN_MUST_USE prony_status prn_port_fix(prony_shape *out, const prony_value_info *port,
                                       const prony_session_options *options, prn_dims *dims, const char *file,
                                       prony_error *error);

#define PRN_FREE_DIM_NAME_BYTES 224
/* The name of a free dimension in options: its symbol, or "INPUT.AXIS" in `text`. */
const char *prn_free_dim_name(const prony_value_info *port, int axis, char text[PRN_FREE_DIM_NAME_BYTES]);

/* true: an option with this name means this free dimension, by its symbol or as "INPUT.AXIS". */
bool prn_free_dim_is(const prony_value_info *port, int axis, const char *name);

/* Refuses names in options->dims, options->max_dims and options->shapes that the model does not have. */
PRN_MUST_USE prony_status prn_ports_check_options(const prn_model_file *file, const prony_session_options *options,
                                                  prony_error *error);

/* Index of the input, or an error that lists the existing names. */
PRN_MUST_USE prony_status prn_ports_find(size_t *out, const prn_model_file *file, const char *name, prony_error *error);

#endif
