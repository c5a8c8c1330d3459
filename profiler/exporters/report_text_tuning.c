/* Results of --tune, and the operators whose kernel it changed. */
#include "profiler/text/number_text.h"
#include "profiler/exporters/report_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int64_t trial_ns(const prony_tuned_operator *choice, const char *kernel)
{
    for (size_t k = 0; k < choice->trial_count; k++)
        if (strcmp(choice->trials[k].kernel, kernel) == 0)
            return choice->trials[k].time_ns + choice->trials[k].reorder_ns;
    return 0;
}

/* The time of a run of the whole model. */
static void say_whole(prn_text *text, const prony_tuning *t)
{
    char line[300];
    prn_number_text tuned, standard;
    if (t->default_run_ns >= 0 && t->tuned_run_ns >= 0) {
        snprintf(line, sizeof line, "a run took %s with the fastest kernels, %s with the default ones%s",
                 prn_number_time(tuned, t->tuned_run_ns, 3, " "), prn_number_time(standard, t->default_run_ns, 3, " "),
                 t->reverted ? ": the default kernels stay" : "");
        prn_text_wrap(text, t->reverted ? PRN_STYLE_WARN : PRN_STYLE_DIM, 2, line);
    } else if (t->reverted) {
        prn_text_wrap(text, PRN_STYLE_WARN, 2, "the default kernels stay");
    }
}

/* Writes the result of tuning, and a line per operator that took another kernel. */
void prn_text_tuning(prn_text *text, const prony_report *r)
{
    const prony_tuning *t = &r->tuning;
    char line[600];
    prn_number_text before, after;
    if (!r->has_tuning) return;
    snprintf(line, sizeof line, "%" PRIu64 " of %" PRIu64 " operators with several kernels take another one",
             t->changed, t->operators);
    prn_text_heading(text, "Tuned", line);
    snprintf(line, sizeof line, "%" PRIu64 " problems measured in %s, %" PRIu64 " read from the file%s%.400s",
             t->measured, prn_number_time(before, t->measuring_ns, 3, " "), t->cached, *t->file ? " " : "", t->file);
    prn_text_wrap(text, PRN_STYLE_DIM, 2, line);
    say_whole(text, t);
    if (*t->note) prn_text_wrap(text, PRN_STYLE_WARN, 2, t->note);
    if (t->untried) {
        snprintf(line, sizeof line, "%" PRIu64 " operators keep the default kernel: the time for measuring ran out",
                 t->untried);
        prn_text_wrap(text, PRN_STYLE_WARN, 2, line);
    }
    for (size_t i = 0; i < t->choice_count; i++) {
        const prony_tuned_operator *c = &t->choices[i];
        if (strcmp(c->kernel, c->default_kernel) == 0 || c->index >= r->operator_count) continue;
        snprintf(line, sizeof line, "%.200s: %.60s, not %.60s: %s, not %s", r->operators[c->index].name, c->kernel,
                 c->default_kernel, prn_number_time(after, trial_ns(c, c->kernel), 3, " "),
                 prn_number_time(before, trial_ns(c, c->default_kernel), 3, " "));
        prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
    }
}
