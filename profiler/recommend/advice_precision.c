/* Advice on precision: compares variants in other precisions by latency, memory and error of the outputs; without
 * variants, a bound from the traffic of float32 weights. */
#include "profiler/text/number_text.h"
#include "profiler/recommend/advice.h"
#include "profiler/report/work.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SAME_BYTES 0.01 /* of the memory: smaller differences count as equal; chosen without measurement */

/* A measured precision. */
typedef struct trial {
    const prony_report *report;
    prony_compare_metric latency, memory; /* compared with the advised report */
    bool has_memory;
    bool has_loss;
    double loss; /* largest error of an output, as a share of its range */
    uint64_t nonfinite;
    const char *against;        /* the reference of the outputs */
    const struct trial *beaten; /* the trial that beats it; itself: the report's own precision does */
} trial;

static void read_loss(trial *t)
{
    const prony_report *r = t->report;
    for (size_t k = 0; r->has_accuracy && k < r->accuracy.output_count; k++) {
        const prony_accuracy_output *o = &r->accuracy.outputs[k];
        if (!o->against || !o->error.known) continue;
        t->has_loss = true;
        t->against = o->against;
        t->loss = fmax(t->loss, o->error.max_rel);
        t->nonfinite += o->error.nonfinite;
    }
}

static bool faster(const trial *t)
{
    return t->latency.verdict == PRONY_VERDICT_BETTER;
}

static bool smaller(const trial *t)
{
    return t->has_memory && t->memory.verdict == PRONY_VERDICT_BETTER;
}

static double bytes_of(const trial *t)
{
    return t->has_memory ? t->memory.second.value : INFINITY;
}

static double loss_of(const trial *t)
{
    return t->nonfinite ? INFINITY : t->has_loss ? t->loss : NAN;
}

/* true: u is not worse than t in any metric, and better in one. An unknown loss beats nothing. */
static bool beats(const trial *u, const trial *t)
{
    const bool no_slower = u->latency.ratio_ci95[0] <= t->latency.ratio_ci95[1];
    const bool surely_faster = u->latency.ratio_ci95[1] < t->latency.ratio_ci95[0];
    const bool no_larger = bytes_of(u) <= bytes_of(t) * (1 + SAME_BYTES),
               less = bytes_of(u) < bytes_of(t) * (1 - SAME_BYTES);
    return no_slower && no_larger && loss_of(u) <= loss_of(t) && (surely_faster || less || loss_of(u) < loss_of(t));
}

static void find_beaten(trial *trials, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!faster(&trials[i]) && !smaller(&trials[i])) trials[i].beaten = &trials[i];
        for (size_t k = 0; k < count && !trials[i].beaten; k++)
            if (k != i && beats(&trials[k], &trials[i])) trials[i].beaten = &trials[k];
    }
}

static void advice_precision_describe(const trial *t, char *text, size_t size)
{
    char ratio[80];
    prn_number_text loss;
    prn_ratio_text(ratio, sizeof ratio, &t->latency);
    size_t used = (size_t)snprintf(text, size, "median %s instead of %s (%s)", t->latency.second.text,
                                   t->latency.first.text, ratio);
    if (t->has_memory)
        used += (size_t)snprintf(text + used, size - used, ", session memory %s instead of %s", t->memory.second.text,
                                 t->memory.first.text);
    if (t->nonfinite)
        used += (size_t)snprintf(text + used, size - used,
                                 "; its outputs are infinite or NaN where those %s are finite", t->against);
    else if (t->has_loss && t->loss > 0)
        used +=
            (size_t)snprintf(text + used, size - used, "; its outputs differ by up to %s of their range from those %s",
                             prn_number_exact(loss, prn_round_digits(t->loss, 2)), t->against);
    else
        used += (size_t)snprintf(text + used, size - used,
                                 t->has_loss ? "; its outputs are identical" : "; its error was not measured");
}

static void advise_trial(prn_adviser *a, const trial *t)
{
    char text[500];
    const char *name = t->report->config.precision;
    advice_precision_describe(t, text, sizeof text);
    if (t->beaten) {
        prn_advise_nothing(a, "precision", "%s: %s; %s%s", name, text,
                           t->beaten == t ? "not significantly faster or smaller than " : "in no respect better than ",
                           t->beaten == t ? a->report->config.precision : t->beaten->report->config.precision);
        return;
    }
    const bool by_time = faster(t);
    prony_advice *row = prn_advise(a, "precision", by_time ? "latency" : "session_memory", true,
                                   1 - (by_time ? t->latency.ratio : t->memory.ratio), "use %s (-p %s)", name, name);
    prn_advise_because(a, row, "%s", text);
    prn_advise_gain(row, "", by_time ? " less latency" : " less session memory");
}

/* Names the trials that no other beats in latency, memory and error. */
static void name_pareto_set(prn_adviser *a, const trial *trials, size_t count)
{
    char text[300];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", a->report->config.precision), members = 1;
    for (size_t i = 0; i < count; i++) {
        if (trials[i].beaten || used >= sizeof text - 40) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, ", %.20s", trials[i].report->config.precision);
        members++;
    }
    prn_advise_nothing(a, "precision", "the Pareto set (latency, memory, error) of %zu precisions: %s%s", count + 1,
                       text, members == 1 ? " alone" : "");
}

static prony_status read_trials(prn_adviser *a, trial *trials, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < a->variant_count; i++) {
        trial *t = &trials[*count];
        bool known;
        *t = (trial){.report = a->variants[i]};
        if (prn_what_changed(a->report, t->report) != PRN_CHANGED_PRECISION) continue;
        PRN_TRY(prn_compare_key(a, t->report, "latency", &t->latency, &known));
        if (!known) continue;
        PRN_TRY(prn_compare_key(a, t->report, "session_memory", &t->memory, &t->has_memory));
        read_loss(t);
        ++*count;
    }
    return PRONY_OK;
}

prony_status prn_advise_precision(prn_adviser *a)
{
    size_t count = 0;
    trial *trials = prn_calloc(a->variant_count + 1, sizeof *trials);
    if (!trials) return prn_no_memory(a->error);
    prony_status status = read_trials(a, trials, &count);
    if (status == PRONY_OK && count) {
        find_beaten(trials, count);
        for (size_t i = 0; i < count; i++) advise_trial(a, &trials[i]);
        name_pareto_set(a, trials, count);
    }
    prn_free(trials);
    return status == PRONY_OK && !count ? prn_advise_precision_computed(a) : status;
}
