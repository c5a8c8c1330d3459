/* Shared by the subcommands that compare and check: a target is a report, or a model that is measured first. */
#ifndef PRN_BENCH_SESSION_JUDGE_H
#define PRN_BENCH_SESSION_JUDGE_H

#include "bench/command.h"

/* true: the file starts like JSON, unlike any model. */
bool is_report_file(const char *path);

/* Zero-initialise. */
typedef struct target {
    prony_model *model; /* NULL: a report was read */
    prony_session *session;
    prony_report *report; /* NULL: not measured yet */
} target;
/* Reads argument `index` if it is a report; otherwise loads it and makes a session with its inputs bound. */
int target_open(const options *o, size_t index, target *out);
/* EXIT_USAGE after a message if options say how to run, but all `count` arguments are reports. */
int refuse_run_options(const options *o, size_t count);
/* Measures the targets without a report, interleaved. */
int targets_measure(const options *o, target *const *targets, size_t count);
/* Writes a line per target with assumed dimensions; called before other output. */
void say_assumed(const options *o, const target *const *targets, size_t count);
void target_close(target *t);

/* Checks --threshold, if given, and lists missed ones on stderr. The table goes to `table` (may be NULL), JSON to
 * `json` (may be NULL). `code`: the exit status if all are met. */
int check_thresholds(const options *o, const prony_report *report, const char *name, FILE *table, FILE *json, int code);
/* As above, after a report that the command wrote to stdout; then keeps the run where --history says. */
int check_after_report(const options *o, const prony_report *report, int code);

/* A prony_write_fn; `user` is a FILE. */
int write_to_stream(void *user, const char *data, size_t size);

#endif
