/* Finds the outputs of a program that depend on a random operator. */
#ifndef PRN_ENGINE_BIND_RANDOM_OUTPUTS_H
#define PRN_ENGINE_BIND_RANDOM_OUTPUTS_H

#include "engine/bind/program.h"

/* *range is set if *random is true; its bounds are infinite if they are not known. */
PRN_MUST_USE prony_status prn_program_output_random(const prn_program *program, size_t output, bool *random,
                                                    prony_random_range *range, prony_error *error);

#endif
