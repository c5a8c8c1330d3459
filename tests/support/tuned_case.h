/* Sessions with kernels chosen by measurement. The test sets the times and makes rows name other kernels than the
 * default ones, so results do not depend on real times. One test at a time; its own folder is the cache.
 *
 *     tc_measure();                        // rows are in the file; from here on they name other kernels
 *     tc_clock_says(1000, 2000);           // a run of the default plan, of the other one
 *     report = tc_profile(out);
 */
#ifndef PRN_TESTS_SUPPORT_TUNED_CASE_H
#define PRN_TESTS_SUPPORT_TUNED_CASE_H

#include "engine/session/session.h"
#include "tests/support/model_run.h"

enum { TC_CHANNELS = 32, TC_EXTENT = 12, TC_ELEMENTS = TC_CHANNELS * TC_EXTENT * TC_EXTENT };
extern float tc_x[TC_ELEMENTS], tc_w[TC_CHANNELS * TC_CHANNELS * 9];

typedef struct tc_clock_state {
    int64_t now, default_ns, tuned_ns;
    int calls, cancel_at; /* at this call the session is cancelled; 0: never */
    prony_session *session;
} tc_clock_state;
extern tc_clock_state tc_clock;
void tc_clock_says(int64_t default_ns, int64_t tuned_ns);

typedef enum tc_row_names { TC_AS_KEPT, TC_OTHERS, TC_STANDARD } tc_row_names;
extern tc_row_names tc_rows; /* the kernels that rows read from the file name */
extern bool tc_forgets;      /* verdicts in the file are ignored */
extern bool tc_saves;        /* the file is written */

extern model_run tc_run;

int tc_set_up(void **state);
int tc_tear_down(void **state);
/* true: a convolution has more than one kernel here. Scalar loops alone leave no choice, and oneDNN is used from AVX2
 * on. */
bool tc_has_choice(void);
/* Two equal convolutions with a Tanh between them. */
model_builder *tc_build(void);
/* Opens tc_run, with its options and registry, to be tuned. */
void tc_open(model_builder *m);
void tc_close(void);
/* The report of two runs of tc_build, which the caller releases; the output in *out. */
prony_report *tc_profile(float *out);
/* Measures and keeps rows; from the next session on they name other kernels than the default ones. Another kernel
 * changes layouts and so later problems, which are then measured. */
void tc_measure(void);

#endif
