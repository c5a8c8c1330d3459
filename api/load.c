/* prony_model_*: a loaded file, its registry and the data its plans share. */
#include "base/clock.h"
#include "engine/bind/engine_model.h"
#include "profiler/measure/machine_peaks.h"

#include <string.h>

/* What a model is read from: a file, or bytes of the caller's. */
typedef struct source {
    const char *name;
    const void *data; /* NULL: the file `name` */
    size_t size;
    const char *data_folder; /* of external data; NULL: the file's own */
    bool copy;               /* the file is read, not mapped */
} source;

static prony_status read_source(prony_model *model, const source *from, prony_error *error)
{
    PRN_TRY(prn_shared_create(&model->shared, error));
    if (!from->data)
        PRN_TRY(prn_model_open(&model->file, from->name, from->data_folder, from->copy, error));
    else
        PRN_TRY(prn_model_parse(&model->file, from->name, from->data, from->size, error));
    return prn_model_index(model, error);
}

static void release_parts(prony_model *model)
{
    prn_shared_release(model->shared);
    prn_free(model->functions);
    if (model->file) prn_model_close(model->file);
}

/* Everything that is made from here on is booked to the model's budget. */
static prony_status load(prony_model **out, const source *from, const prony_model_options *options, prony_error *error)
{
    int64_t start = prn_now_ns();
    prn_budget *budget = prn_budget_create(NULL, options ? options->memory_limit_bytes : 0);
    if (!budget) return prn_no_memory(error);
    prn_budget *former = prn_budget_enter(budget);
    prony_model *model = prn_calloc(1, sizeof *model);
    prony_status status = model ? read_source(model, from, error) : prn_no_memory(error);
    if (status == PRONY_LIMIT && error && !strstr(error->message, from->name)) prn_error_prefix(error, "%s", from->name);
    prn_budget_enter(former);
    if (status != PRONY_OK) {
        if (model) release_parts(model);
        prn_free(model);
        prn_budget_release(budget);
        return status;
    }
    atomic_init(&model->references, 1);
    model->budget = budget;
    model->find_rates = prn_machine_find_rates;
    if (options) model->registry = options->registry;
    prn_registry_retain(model->registry);
    model->load_ns = prn_now_ns() - start;
    *out = model;
    return PRONY_OK;
}

static prony_status check_arguments(const void *out, const void *source, const prony_model_options *options,
                                    const char *function, prony_error *error)
{
    if (!out || !source) return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: an argument is NULL", function);
    if (options && options->struct_size < sizeof *options)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: options.struct_size is not set", function);
    return PRONY_OK;
}

prony_status prony_model_load(prony_model **out, const char *path, const prony_model_options *options,
                              prony_error *error)
{
    PRN_TRY(check_arguments(out, path, options, "prony_model_load", error));
    const source from = {.name = path,
                         .data_folder = options ? options->data_folder : NULL,
                         .copy = options && options->copy};
    return load(out, &from, options, error);
}

prony_status prony_model_load_memory(prony_model **out, const char *name, const void *data, size_t size,
                                     const prony_model_options *options, prony_error *error)
{
    PRN_TRY(check_arguments(out, data, options, "prony_model_load_memory", error));
    const source from = {.name = name ? name : "memory", .data = data, .size = size};
    return load(out, &from, options, error);
}

void prony_model_release(prony_model *model)
{
    if (!model || atomic_fetch_sub(&model->references, 1) != 1) return;
    release_parts(model);
    prony_registry_release(model->registry);
    prn_free(model->owned);
    prn_budget_release(model->budget);
    prn_free(model);
}

size_t prony_model_input_count(const prony_model *model)
{
    return model ? model->file->graph.input_count : 0;
}

size_t prony_model_output_count(const prony_model *model)
{
    return model ? model->file->graph.output_count : 0;
}

const prony_port *prony_model_input(const prony_model *model, size_t index)
{
    return model && index < model->file->graph.input_count ? &model->file->graph.inputs[index] : NULL;
}

const prony_port *prony_model_output(const prony_model *model, size_t index)
{
    return model && index < model->file->graph.output_count ? &model->file->graph.outputs[index] : NULL;
}
