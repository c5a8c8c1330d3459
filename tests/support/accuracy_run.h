/* A run with its accuracy profile, and the profile's rows. A failure ends the test. */
#ifndef PRN_TESTS_SUPPORT_ACCURACY_RUN_H
#define PRN_TESTS_SUPPORT_ACCURACY_RUN_H

#include "tests/support/model_run.h"
#include "prony_report.h"

prony_report *accuracy_profile(model_run *r, const prony_accuracy_options *options);
/* The row of the layer with this name. */
const prony_accuracy_row *accuracy_row(const prony_report *report, const char *name);
void accuracy_near(double found, double wanted);

/* As float16. */
enum { HALF_1 = 0x3c00, HALF_300 = 0x5cb0, HALF_2048 = 0x6800 };

/* float16: x[2] plus 1, less 2048; 2048 + 1 cannot be represented and becomes 2048. Layers "add" and "sub". The inputs
 * are set. */
void accuracy_open_half(model_run *r);

#endif
