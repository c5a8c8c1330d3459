/* prony_model_*: a loaded file, its registry and the data its plans share. */
#include "base/clock.h"
#include "engine/engine_model.h"

static prony_status adopt(prony_model **out, prn_model_file *file, const prony_model_options *options, int64_t start_ns,
                          prony_error *error)
{
    prony_model *model = prn_calloc(1, sizeof *model);
    prony_status status = model ? prn_shared_create(&model->shared, error) : prn_no_memory(error);
    if (status != PRONY_OK) {
        prn_free(model);
        prn_model_close(file);
        return status;
    }
    atomic_init(&model->references, 1);
    model->file = file;
    if (options && options->struct_size >= sizeof *options) model->registry = options->registry;
    prn_registry_retain(model->registry);
    model->load_ns = prn_now_ns() - start_ns;
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
    int64_t start = prn_now_ns();
    prn_model_file *file = NULL;
    PRN_TRY(check_arguments(out, path, options, "prony_model_load", error));
    PRN_TRY(prn_model_open_with(&file, path, options ? options->data_folder : NULL, error));
    return adopt(out, file, options, start, error);
}

prony_status prony_model_load_memory(prony_model **out, const char *name, const void *data, size_t size,
                                     const prony_model_options *options, prony_error *error)
{
    int64_t start = prn_now_ns();
    prn_model_file *file = NULL;
    PRN_TRY(check_arguments(out, data, options, "prony_model_load_memory", error));
    PRN_TRY(prn_model_parse(&file, name ? name : "memory", data, size, error));
    return adopt(out, file, options, start, error);
}

void prony_model_release(prony_model *model)
{
    if (!model || atomic_fetch_sub(&model->references, 1) != 1) return;
    prn_shared_release(model->shared);
    prony_registry_release(model->registry);
    prn_model_close(model->file);
    prn_free(model->owned);
    prn_free(model);
}

size_t prony_model_input_count(const prony_model *model)
{
    return model->file->graph.input_count;
}

size_t prony_model_output_count(const prony_model *model)
{
    return model->file->graph.output_count;
}

const prony_port *prony_model_input(const prony_model *model, size_t index)
{
    return index < model->file->graph.input_count ? &model->file->graph.inputs[index] : NULL;
}

const prony_port *prony_model_output(const prony_model *model, size_t index)
{
    return index < model->file->graph.output_count ? &model->file->graph.outputs[index] : NULL;
}
