/* Which outputs of a program depend on what a random operator draws. */
#ifndef PRN_ENGINE_BIND_RANDOM_OUTPUTS_H
#define PRN_ENGINE_BIND_RANDOM_OUTPUTS_H

#include "engine/bind/program.h"

/* *range is set where *random is true: infinite bounds where nothing is known. */
PRN_MUST_USE prony_status prn_program_output_random(const prn_program *program, size_t output, bool *random,
                                                    prony_random_range *range, prony_error *error);

#endif
