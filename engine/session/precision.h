/* The names of precisions that a session may be asked for. */
#ifndef PRN_ENGINE_SESSION_PRECISION_H
#define PRN_ENGINE_SESSION_PRECISION_H

#include "engine/bind/engine_model.h"

/* Checks that a precision of that name exists (NULL: the default), and that processor and model support it. */
PRN_MUST_USE prony_status prn_precision_check(const prony_model *model, const char *name, prony_error *error);
/* The precision that operators see for a checked name; *text: the name itself, which lives as long as the program. */
prony_precision prn_precision_find(const char *name, const char **text);

#endif
