/* A quantized model, by the file that is written of its plan. */
#include "api/model_quantize.h"

#include "quantize/quantize_write.h"

prony_status prn_quantized_load(prony_model **out, const prn_quant_plan *plan, const prony_quantize_options *options,
                                prony_error *error)
{
    uint8_t *data = NULL;
    size_t size = 0;
    const prony_model *from = plan->model;
    prony_model_options m = PRONY_MODEL_OPTIONS_INIT;
    m.registry = from->registry;
    PRN_TRY(prn_quant_write(&data, &size, plan, options->calibration, options->power_of_two, error));
    prony_status status = prony_model_load_memory(out, from->file->name, data, size, &m, error);
    if (status == PRONY_OK)
        (*out)->owned = data, (*out)->read_names = from->read_names;
    else
        prn_free(data);
    return status;
}
