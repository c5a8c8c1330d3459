/* The search for the largest rate of arrivals at which the latency bound holds, on the clock. The offline throughput is
 * its upper limit; rate_search.c chooses the rates. */
#include "bench/process/interrupt.h"
#include "bench/load/load.h"

#include <stdlib.h>

#define SHORT_PART 8 /* a short phase is 1 / SHORT_PART of a whole one */
/* Seconds of the shortest phase, and how far above the offline throughput a rate is tried; chosen without
 * measurement. */
#define SHORTEST 0.25
#define BEYOND_CAPACITY 1.02

typedef struct searcher {
    load *l;
    load_searched *searched;
    load_result *out;
    size_t capacity;
    double seconds;
    bool kept; /* `out` met the bound */
} searcher;

static int load_search_remember(searcher *s, const load_result *r)
{
    load_searched *all = s->searched;
    if (all->count == s->capacity) {
        size_t capacity = s->capacity ? s->capacity * 2 : 32;
        load_result *steps = realloc(all->steps, capacity * sizeof *steps);
        if (!steps) return fail(s->l->o, "out of memory");
        all->steps = steps;
        s->capacity = capacity;
    }
    all->steps[all->count] = *r;
    all->steps[all->count++].latency_ns = NULL;
    return EXIT_DONE;
}

static double short_seconds(double seconds)
{
    return seconds / SHORT_PART < SHORTEST ? SHORTEST : seconds / SHORT_PART;
}

/* Measures one rate for the search, in a whole phase or in a short one that may give up. A phase lasts at most ten
 * times as long as planned, and a short one asks for 100 queries at most; both chosen without measurement. Each phase
 * has a seed of its own. s->out owns the result to report, s->searched the list of all. */
static int phase(void *user, double rate, bool whole, rate_count *out)
{
    searcher *s = user;
    load *l = s->l;
    load_result r;
    size_t fewest = load_fewest_queries(l->percentile);
    double seconds = whole ? s->seconds : short_seconds(s->seconds);
    load_plan plan = {.seconds = seconds,
                      .longest = seconds * 10,
                      .least = !whole && fewest > 100 ? 100 : fewest,
                      .rate = rate,
                      .give_up = !whole,
                      .seed = l->o->model.seed + s->searched->count};
    int code = load_issue(l, &plan, &r);
    if (code != EXIT_DONE) return code;
    code = load_search_remember(s, &r);
    *out = (rate_count){r.queries, r.over_bound};
    /* The result is the largest rate of a whole phase that met the bound; until then, the last one that missed it. */
    bool kept = whole && load_verdict(*out, l->percentile) == RATE_KEPT;
    if (code == EXIT_DONE && (kept ? !s->kept || rate > s->out->rate : !s->kept)) {
        load_result_free(s->out);
        *s->out = r;
        s->kept = kept;
    } else {
        load_result_free(&r);
    }
    if (code == EXIT_DONE && interrupted()) return EXIT_FAILED;
    return code;
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

int load_search(load *l, load_result *out, load_searched *searched)
{
    double seconds = l->o->measuring.seconds > 0 ? l->o->measuring.seconds : 10, most = 0;
    *out = (load_result){.scenario = l->scenario};
    *searched = (load_searched){0};
    int code = capacity(l, short_seconds(seconds), &most);
    if (code != EXIT_DONE) return code;
    searcher s = {.l = l, .searched = searched, .out = out, .seconds = seconds};
    rate_search search = {.top = most * BEYOND_CAPACITY,
                          .percentile = l->percentile,
                          .precision = RATE_PRECISION,
                          .phase = phase,
                          .user = &s};
    code = rate_search_run(&search, &searched->found);
    return interrupted() && searched->count ? EXIT_DONE : code;
}
