/* Compares declared inputs with given ones. A symbol of free dimensions has one value for all inputs of a run. */
#include "engine/session/io_info.h"

#include <stdio.h>
#include <string.h>

void prn_dims_free(prn_dims *dims)
{
    prn_free(dims->items);
    prn_names_free(&dims->index);
    *dims = (prn_dims){0};
}

void prn_dims_clear(prn_dims *dims)
{
    dims->count = 0;
    prn_names_free(&dims->index);
}

const prony_dim *prn_dims_find(const prn_dims *dims, const char *name)
{
    uint32_t i;
    return prn_names_get(&dims->index, name, &i) ? &dims->items[i] : NULL;
}

prony_status prn_dims_put(prn_dims *dims, const char *name, int64_t value, const char *file, const char *input,
                          prony_error *error)
{
    const prony_dim *old = prn_dims_find(dims, name);
    if (old && old->value != value)
        return prn_fail(error, PRONY_SHAPE_MISMATCH,
                        "%s: input '%s': free dimension '%s' would be %lld here, but is %lld", file, input, name,
                        (long long)value, (long long)old->value);
    if (old) return PRONY_OK;
    if (!PRN_GROW(dims->items, dims->capacity, dims->count + 1) ||
        !prn_names_put(&dims->index, name, (uint32_t)dims->count))
        return prn_no_memory(error);
    dims->items[dims->count++] = (prony_dim){name, value};
    return PRONY_OK;
}

static prony_status wrong_shape(const prony_value_info *port, const prony_value *value, const char *file,
                                prony_error *error)
{
    prony_value declared = {.kind = port->kind, .dtype = port->dtype, .shape = port->shape};
    char want[PRN_SHAPE_TEXT_BYTES], got[PRN_SHAPE_TEXT_BYTES];
    return prn_fail(error, PRONY_SHAPE_MISMATCH, "%s: input '%s' is %s, but %s was given", file, port->name,
                    prn_value_text(&declared, want), prn_value_text(value, got));
}

prony_status prn_port_accept(const prony_value_info *port, const prony_value *value, prn_dims *dims, const char *file,
                             prony_error *error)
{
    bool empty = value->kind != PRONY_TENSOR && value->count == 0; /* of no element type, perhaps */
    if (value->kind != port->kind || (port->dtype != PRONY_UNDEFINED && value->dtype != port->dtype && !empty))
        return wrong_shape(port, value, file, error);
    if (port->kind != PRONY_TENSOR) return PRONY_OK;
    if (!prn_shape_known(&value->shape) || (port->shape.rank >= 0 && value->shape.rank != port->shape.rank))
        return wrong_shape(port, value, file, error);
    for (int d = 0; d < port->shape.rank; d++) {
        if (port->shape.dim[d] >= 0 && port->shape.dim[d] != value->shape.dim[d])
            return wrong_shape(port, value, file, error);
        if (port->shape.dim[d] < 0 && port->dim_names[d] && *port->dim_names[d])
            PRN_TRY(prn_dims_put(dims, port->dim_names[d], value->shape.dim[d], file, port->name, error));
    }
    return PRONY_OK;
}

static prony_status batch_dim(int64_t *out, const prony_value_info *port, const prony_session_options *options,
                              const char *file, prony_error *error)
{
    int64_t fixed = port->shape.dim[0];
    if (fixed >= 0 && fixed != options->batch)
        return prn_fail(error, PRONY_SHAPE_MISMATCH,
                        "%s: input '%s' fixes its first dimension to %lld; batch %lld cannot be set", file, port->name,
                        (long long)fixed, (long long)options->batch);
    *out = options->batch;
    return PRONY_OK;
}

static const prony_named_shape *given_shape(const prony_value_info *port, const prony_session_options *options)
{
    for (size_t i = 0; i < options->shape_count; i++)
        if (strcmp(options->shapes[i].name, port->name) == 0) return &options->shapes[i];
    return NULL;
}

/* true: `name` is "INPUT.AXIS" of this dimension. */
static bool names_axis(const char *name, const prony_value_info *port, int axis)
{
    char text[16];
    size_t length = strlen(port->name);
    snprintf(text, sizeof text, ".%d", axis);
    return strncmp(name, port->name, length) == 0 && strcmp(name + length, text) == 0;
}

bool prn_free_dim_is(const prony_value_info *port, int axis, const char *name)
{
    const char *symbol = port->dim_names[axis];
    return port->shape.dim[axis] < 0 &&
           ((symbol && *symbol && strcmp(symbol, name) == 0) || names_axis(name, port, axis));
}

const char *prn_free_dim_name(const prony_value_info *port, int axis, char text[PRN_FREE_DIM_NAME_BYTES])
{
    const char *symbol = port->dim_names[axis];
    if (symbol && *symbol) return symbol;
    snprintf(text, PRN_FREE_DIM_NAME_BYTES, "%.200s.%d", port->name, axis);
    return text;
}

prony_status prn_port_given(const prony_value_info *port, const prony_session_options *options, prn_dims *dims,
                            const char *file, prony_error *error)
{
    const prony_named_shape *shape = given_shape(port, options);
    if (port->kind != PRONY_TENSOR) return PRONY_OK;
    if (shape) {
        prony_value given = {.kind = port->kind, .dtype = port->dtype, .shape = shape->shape};
        return prn_port_accept(port, &given, dims, file, error);
    }
    for (int d = 0; d < port->shape.rank; d++) {
        const char *symbol = port->dim_names[d];
        if (port->shape.dim[d] >= 0 || !symbol || !*symbol) continue;
        if (d == 0 && options->batch > 0) PRN_TRY(prn_dims_put(dims, symbol, options->batch, file, port->name, error));
        for (size_t i = 0; i < options->dim_count; i++)
            if (strcmp(options->dims[i].name, symbol) == 0 || names_axis(options->dims[i].name, port, d))
                PRN_TRY(prn_dims_put(dims, symbol, options->dims[i].value, file, port->name, error));
    }
    return PRONY_OK;
}

/* The known size of a free dimension, or -1. */
static int64_t known_extent(const prony_value_info *port, int axis, const prony_session_options *options,
                            const prn_dims *dims)
{
    const char *symbol = port->dim_names[axis];
    const prony_dim *known = symbol && *symbol ? prn_dims_find(dims, symbol) : NULL;
    if (known) return known->value;
    for (size_t i = 0; i < options->dim_count; i++)
        if (names_axis(options->dims[i].name, port, axis)) return options->dims[i].value;
    for (size_t i = 0; i < options->dim_count; i++)
        if (strcmp(options->dims[i].name, "*") == 0) return options->dims[i].value;
    return -1;
}

prony_status prn_port_fix(prony_shape *out, const prony_value_info *port, const prony_session_options *options,
                          prn_dims *dims, const char *file, prony_error *error)
{
    const prony_named_shape *shape = given_shape(port, options);
    *out = port->shape;
    if (port->kind != PRONY_TENSOR) return PRONY_OK;
    if (shape) {
        prony_value given = {.kind = port->kind, .dtype = port->dtype, .shape = shape->shape};
        *out = given.shape;
        return prn_port_accept(port, &given, dims, file, error);
    }
    for (int d = 0; d < out->rank; d++) {
        const char *symbol = port->dim_names[d];
        if (d == 0 && options->batch > 0) PRN_TRY(batch_dim(&out->dim[0], port, options, file, error));
        if (out->dim[d] < 0) out->dim[d] = known_extent(port, d, options, dims);
        if (port->shape.dim[d] < 0 && out->dim[d] >= 0 && symbol && *symbol)
            PRN_TRY(prn_dims_put(dims, symbol, out->dim[d], file, port->name, error));
    }
    return PRONY_OK;
}

/* true: a free dimension has this name; if not, `names` lists the existing ones. */
static bool has_free_dim(const prn_model_file *file, const char *name, char *names, size_t size)
{
    size_t used = 0;
    snprintf(names, size, "none");
    if (strcmp(name, "*") == 0) return true;
    for (size_t i = 0; i < file->graph.input_count; i++) {
        const prony_value_info *port = &file->graph.inputs[i];
        for (int d = 0; d < port->shape.rank; d++) {
            char text[PRN_FREE_DIM_NAME_BYTES], quoted[PRN_FREE_DIM_NAME_BYTES + 8];
            if (port->shape.dim[d] >= 0) continue;
            const char *known = prn_free_dim_name(port, d, text);
            if (strcmp(known, name) == 0 || names_axis(name, port, d)) return true;
            snprintf(quoted, sizeof quoted, "'%.150s'", known);
            if (used < size && !(used && strstr(names, quoted)))
                used += (size_t)snprintf(names + used, size - used, "%s%s", used ? ", " : "", quoted);
        }
    }
    return false;
}

static prony_status check_dims(const prn_model_file *file, const prony_dim *dims, size_t count, prony_error *error)
{
    char names[512];
    for (size_t i = 0; i < count; i++) {
        if (!dims[i].name)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "session options: dimension %zu has no name", i);
        if (!has_free_dim(file, dims[i].name, names, sizeof names))
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: no input has a free dimension '%s'; the model has %s",
                            file->name, dims[i].name, names);
        if (dims[i].value < 0)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "dimension '%s' cannot be %lld", dims[i].name,
                            (long long)dims[i].value);
    }
    return PRONY_OK;
}

/* Checks names and sizes in the options before any input is bound, so that errors name the option. */
prony_status prn_ports_check_options(const prn_model_file *file, const prony_session_options *options,
                                     prony_error *error)
{
    if ((options->dim_count > 0 && !options->dims) || (options->shape_count > 0 && !options->shapes) ||
        (options->max_dim_count > 0 && !options->max_dims))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "session options: a count without its list");
    PRN_TRY(check_dims(file, options->dims, options->dim_count, error));
    PRN_TRY(check_dims(file, options->max_dims, options->max_dim_count, error));
    for (size_t i = 0; i < options->max_dim_count; i++)
        if (options->max_dims[i].value < 1 || strcmp(options->max_dims[i].name, "*") == 0)
            return prn_fail(error, PRONY_INVALID_ARGUMENT,
                            "the maximum of dimension '%s' cannot be %lld: wanted a name and a number of at least 1",
                            options->max_dims[i].name, (long long)options->max_dims[i].value);
    for (size_t i = 0; i < options->shape_count; i++) {
        size_t index;
        const prony_named_shape *shape = &options->shapes[i];
        if (!shape->name) return prn_fail(error, PRONY_INVALID_ARGUMENT, "session options: shape %zu has no name", i);
        PRN_TRY(prn_ports_find(&index, file, shape->name, error));
        if (index >= file->graph.input_count)
            return prn_fail(error, PRONY_INVALID_ARGUMENT,
                            "%s: input '%s' has a default, so its shape cannot be set; set its value", file->name,
                            shape->name);
        if (!prn_shape_valid(&shape->shape) || !prn_shape_known(&shape->shape))
            return prn_fail(error, PRONY_INVALID_ARGUMENT,
                            "the shape of '%s' is invalid: rank %d, or a negative extent", shape->name,
                            (int)shape->shape.rank);
    }
    if (options->batch < 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "batch cannot be %lld", (long long)options->batch);
    return PRONY_OK;
}

prony_status prn_ports_find(size_t *out, const prn_model_file *file, const char *name, prony_error *error)
{
    char names[512] = "";
    size_t used = 0;
    const size_t count = file->graph.input_count + file->graph.optional_count;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(file->graph.inputs[i].name, name) != 0) continue;
        *out = i;
        return PRONY_OK;
    }
    for (size_t i = 0; i < count && used < sizeof names; i++)
        used +=
            (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", i ? ", " : "", file->graph.inputs[i].name);
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: unknown input '%s'; the model has %s", file->name, name,
                    *names ? names : "none");
}
