/* prony_model_load, prony_model_load_memory: the engine's model, which knows the rates that were measured of this
 * machine. */
#include "api/genai_config.h"
#include "base/option_struct.h"
#include "engine/run/services.h"
#include "profiler/measure/machine_peaks.h"
#include "profiler/measure/tune_file.h"

static prony_status model_load(prony_model **out, prn_model_source *from, const prony_model_options *options,
                               prony_error *error)
{
    prony_model_options own = PRONY_MODEL_OPTIONS_INIT;
    PRN_TRY(prn_options_read(&own, sizeof own, options, "model options", error));
    if (!from->data) {
        from->data_folder = own.data_folder;
        from->copy = own.copy;
    }
    PRN_TRY(prn_model_load(out, from, &own, error));
    (*out)->services = &prn_engine_services;
    (*out)->find_rates = prn_machine_find_rates;
    (*out)->find_device_peaks = prn_device_find_peaks;
    (*out)->tune_files = &prn_tune_cache;
    return PRONY_OK;
}

prony_status prony_model_load(prony_model **out, const char *path, const prony_model_options *options,
                              prony_error *error)
{
    if (!out || !path) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_model_load: an argument is NULL");
    prn_model_source from = {.name = path};
    PRN_TRY(model_load(out, &from, options, error));
    (*out)->read_names = prn_genai_config_read;
    return PRONY_OK;
}

prony_status prony_model_load_memory(prony_model **out, const char *name, const void *data, size_t size,
                                     const prony_model_options *options, prony_error *error)
{
    if (!out || !data) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_model_load_memory: an argument is NULL");
    prn_model_source from = {.name = name ? name : "memory", .data = data, .size = size};
    return model_load(out, &from, options, error);
}
