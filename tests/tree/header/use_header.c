/* Compiled as C and as C++ with hostile warnings: the public header stands alone, and its initialisers fit. */
#include "prony_judge.h"
#include "prony_operator.h"
#include "prony_quantize.h"
#include "prony_serve.h"

int use_header(void);

static const prony_operator operator_defaults = PRONY_OPERATOR_INIT;
static const prony_model_options model_defaults = PRONY_MODEL_OPTIONS_INIT;
static const prony_session_options session_defaults = PRONY_SESSION_OPTIONS_INIT;
static const prony_profile_options profile_defaults = PRONY_PROFILE_OPTIONS_INIT;
static const prony_write_options write_defaults = PRONY_WRITE_OPTIONS_INIT;
static const prony_submodel submodel_defaults = PRONY_SUBMODEL_INIT;
static const prony_monitor_options monitor_defaults = PRONY_MONITOR_OPTIONS_INIT;
static const prony_batcher_options batcher_defaults = PRONY_BATCHER_OPTIONS_INIT;
static const prony_timing_options timing_defaults = PRONY_TIMING_OPTIONS_INIT;
static const prony_study_options study_defaults = PRONY_STUDY_OPTIONS_INIT;
static const prony_evaluate_options evaluate_defaults = PRONY_EVALUATE_OPTIONS_INIT;
static const prony_quantize_options quantize_defaults = PRONY_QUANTIZE_OPTIONS_INIT;
static const prony_image_options image_defaults = PRONY_IMAGE_OPTIONS_INIT;

int use_header(void)
{
    size_t sizes = operator_defaults.struct_size + model_defaults.struct_size + session_defaults.struct_size +
                   profile_defaults.struct_size + write_defaults.struct_size + submodel_defaults.struct_size +
                   monitor_defaults.struct_size + batcher_defaults.struct_size + timing_defaults.struct_size +
                   study_defaults.struct_size + evaluate_defaults.struct_size + quantize_defaults.struct_size +
                   image_defaults.struct_size;
    return sizes == 0 ? 1 : 0;
}
