/* prony_model_load, prony_model_load_memory: the engine's model, which knows the rates that were measured of this machine. */
#include "engine/bind/engine_model.h"
#include "profiler/measure/machine_peaks.h"

static prony_status load(prony_model **out, const prn_model_source *from, const prony_model_options *options,
                         prony_error *error)
{
    PRN_TRY(prn_model_load(out, from, options, error));
    (*out)->find_rates = prn_machine_find_rates;
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
    const prn_model_source from = {.name = path,
                         .data_folder = options ? options->data_folder : NULL,
                         .copy = options && options->copy};
    return load(out, &from, options, error);
}

prony_status prony_model_load_memory(prony_model **out, const char *name, const void *data, size_t size,
                                     const prony_model_options *options, prony_error *error)
{
    PRN_TRY(check_arguments(out, data, options, "prony_model_load_memory", error));
    const prn_model_source from = {.name = name ? name : "memory", .data = data, .size = size};
    return load(out, &from, options, error);
}
