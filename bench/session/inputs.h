/* Inputs of -i, and the list of open input shapes that the user has to set. */
#ifndef PRN_BENCH_SESSION_INPUTS_H
#define PRN_BENCH_SESSION_INPUTS_H

#include "bench/command.h"

/* Binds the inputs that -i names. */
int bind_given_inputs(const options *o, const prony_model *model, prony_session *session);
/* The same, and generates the others. */
int bind_inputs(const options *o, const prony_model *model, prony_session *session);
/* Makes an input's tensor from an image file, by --preprocess and the input's known shape. */
prony_status load_image(const options *o, const prony_session *session, const char *name, const char *file,
                        prony_value **out, prony_error *error);
/* As report_error; PRONY_NEEDS_DIMENSION becomes a list of every free dimension with the option that sets it. */
int report_session_error(const options *o, prony_model *model, const prony_error *error);

#endif
