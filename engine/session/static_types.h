/* Types and shapes of every value of a model, without running it. */
#ifndef PRN_ENGINE_SESSION_STATIC_TYPES_H
#define PRN_ENGINE_SESSION_STATIC_TYPES_H

#include "engine/bind/program.h"

/* Binds the main graph statically at the options' input shapes (NULL: defaults). Released by prn_program_release. */
PRN_MUST_USE prony_status prn_static_types(prn_program **out, prony_model *model, const prony_session_options *options,
                                           prony_error *error);

#endif
