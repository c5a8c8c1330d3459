/* The largest rate of arrivals at which the latency bound holds. What the sessions can do at most (offline) is the upper
 * end; between it and nothing the search halves the interval by short phases, judged by what they show; then a phase of full
 * length confirms the rate with 99 % confidence, or goes down (by 5 %, 10 %, 15 % …) and tries again. */
#include "bench/interrupt.h"
#include "bench/load.h"

#include <stdlib.h>

#define NARROW 0.02      /* the search ends when the interval is this part of its upper end */
#define STEP_DOWN 0.05
enum { MOST_STEPS = 24, MOST_CONFIRMATIONS = 8 };

typedef struct search {
    load_result *steps;
    size_t count;
    double seconds; /* of a short phase */
} search;

static int try_rate(load *l, search *s, double rate, double seconds, size_t least, load_result *out)
{
    load_plan plan = {.seconds = seconds,
                      .longest = seconds * 10,
                      .least = least,
                      .rate = rate,
                      .give_up = true,
                      .seed = l->o->seed + s->count};
    int code = load_issue(l, &plan, out);
    if (code != EXIT_DONE) return code;
    s->steps[s->count] = *out;
    s->steps[s->count++].latency_ns = NULL;
    return EXIT_DONE;
}

static int capacity(load *l, double seconds, double *out)
{
    load_result all;
    load_plan plan = {.seconds = seconds, .longest = seconds * 4, .least = 8};
    l->scenario = SCENARIO_OFFLINE;
    int code = load_issue(l, &plan, &all);
    l->scenario = SCENARIO_SERVER;
    if (code == EXIT_DONE && (all.failed == all.queries || !(all.seconds > 0)))
        code = fail(l->o, "no request was served: %s", l->failure);
    if (code == EXIT_DONE) *out = (double)all.queries / all.seconds;
    load_result_free(&all);
    return code;
}

/* The rate below which the bound seems to hold; 0: nowhere. */
static int narrow(load *l, search *s, double upper, double *out)
{
    double low = 0, high = upper;
    size_t fewest = load_fewest_queries(l->percentile);
    while (!interrupted() && high - low > NARROW * upper && s->count < MOST_STEPS - MOST_CONFIRMATIONS) {
        load_result r;
        double rate = low + (high - low) / 2;
        int code = try_rate(l, s, rate, s->seconds, fewest < 100 ? fewest : 100, &r);
        if (code != EXIT_DONE) return code;
        if (r.likely_met)
            low = rate;
        else
            high = rate;
        load_result_free(&r);
        if (high < upper * 1e-4) break;
    }
    *out = low;
    return EXIT_DONE;
}

int load_search(load *l, load_result *out, load_result **steps, size_t *step_count)
{
    double seconds = l->o->seconds > 0 ? l->o->seconds : 10, rate = 0, most = 0;
    search s = {calloc(MOST_STEPS, sizeof *s.steps), 0, seconds / 8 < 0.25 ? 0.25 : seconds / 8};
    *steps = s.steps;
    if (!s.steps) return fail(l->o, "out of memory");
    *out = (load_result){.scenario = l->scenario};
    int code = capacity(l, s.seconds, &most);
    if (code == EXIT_DONE) code = narrow(l, &s, most * 1.02, &rate);
    for (int i = 0; i < MOST_CONFIRMATIONS && code == EXIT_DONE && rate > 0; i++, rate *= 1 - STEP_DOWN * i) {
        load_result_free(out);
        code = try_rate(l, &s, rate, seconds, load_fewest_queries(l->percentile), out);
        bool enough = load_allowed_late(out->queries, l->percentile) >= 1;
        if (code != EXIT_DONE || interrupted() || out->met || (!enough && !out->cut_short && out->likely_met)) break;
    }
    *step_count = s.count;
    return code;
}
