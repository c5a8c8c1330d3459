/* Compiled as C and as C++ with hostile warnings: the public header stands alone, and its initialisers fit. */
#include "prony_operator.h"
#include "prony_report.h"

int use_header(void);

static const prony_operator operator_defaults = PRONY_OPERATOR_INIT;
static const prony_model_options model_defaults = PRONY_MODEL_OPTIONS_INIT;
static const prony_session_options session_defaults = PRONY_SESSION_OPTIONS_INIT;
static const prony_profile_options profile_defaults = PRONY_PROFILE_OPTIONS_INIT;
static const prony_write_options write_defaults = PRONY_WRITE_OPTIONS_INIT;

int use_header(void)
{
    size_t sizes = operator_defaults.struct_size + model_defaults.struct_size + session_defaults.struct_size +
                   profile_defaults.struct_size + write_defaults.struct_size;
    return sizes == 0 ? 1 : 0;
}
