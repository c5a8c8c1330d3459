/* The names of precisions that a session may be asked for. */
#ifndef PRN_ENGINE_SESSION_PRECISION_H
#define PRN_ENGINE_SESSION_PRECISION_H

#include "engine/bind/engine_model.h"

/* Whether there is one of that name (NULL: the default), and this processor and model can do it. */
PRN_MUST_USE prony_status prn_precision_check(const prony_model *model, const char *name, prony_error *error);
/* What a name that passed comes to for operators; *text: the name itself, which lives as long as the program. */
prony_precision prn_precision_find(const char *name, const char **text);

#endif
