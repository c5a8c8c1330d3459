/* prony bench --scenario: chooses load and sessions, and checks the combination of options. */
#include "bench/process/interrupt.h"
#include "bench/load/load.h"
#include "bench/commands/matrix.h"
#include "bench/options/option_table.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_SECONDS 10.0
/* Requests of a `multi` query (as in LoadGen), warm-up queries of each session, and the fewest offline queries;
 * chosen without measurement. */
enum { DEFAULT_SAMPLES = 8, WARMUP_QUERIES = 10, OFFLINE_QUERIES = 8 };

/* ---- options ---- */

static scenario scenario_of(const options *o)
{
    for (int i = 0; o->load.scenario && scenario_names[i]; i++)
        if (strcmp(scenario_names[i], o->load.scenario) == 0) return (scenario)i;
    return SCENARIO_OFFLINE; /* --streams alone: all streams at full speed */
}

static int load_command_check_options(const options *o, scenario s)
{
    if (is_matrix(o)) return usage(o, "--scenario needs one configuration: no lists in -b, -x, -y or -p");
    if (o->verdict.threshold_count || o->shown.count)
        return usage(o, "--scenario cannot be combined with --threshold or --count");
    if (s == SCENARIO_SINGLE && (o->load.streams > 1 || o->load.max_batch > 1))
        return usage(o, "scenario single has one stream without batching: no --streams or --max-batch");
    if (s == SCENARIO_SERVER && !o->load.latency_bound_ns)
        return usage(o, "scenario server needs --latency-bound, such as 20ms");
    if (s == SCENARIO_OFFLINE && o->load.latency_bound_ns)
        return usage(o, "scenario offline measures throughput: no --latency-bound");
    if (s != SCENARIO_SERVER && o->load.rate > 0) return usage(o, "--rate needs --scenario server");
    if (s == SCENARIO_SERVER && o->measuring.runs && !(o->load.rate > 0))
        return usage(o, "-r with --scenario server needs --rate; a search needs -t");
    if (s != SCENARIO_MULTI && o->load.samples_per_query) return usage(o, "--samples-per-query needs --scenario multi");
    if (o->load.batch_window_ns > 0 && o->load.max_batch < 2)
        return usage(o, "--batch-window needs a --max-batch above 1");
    if (o->load.max_batch > 1 && o->model.batch > 1)
        return usage(o, "--max-batch combines requests of one sample: no -b");
    return EXIT_DONE;
}

/* ---- setting up ---- */

static int take_inputs(load *l)
{
    l->input_count = prony_model_input_count(l->model);
    l->inputs = calloc(l->input_count + 1, sizeof *l->inputs);
    if (!l->inputs) return fail(l->o, "out of memory");
    for (size_t i = 0; i < l->input_count; i++) l->inputs[i] = prony_session_input_value(l->session, i);
    const prony_value *first = l->input_count ? l->inputs[0] : NULL;
    l->samples_per_request = first && first->kind == PRONY_TENSOR && first->shape.rank > 0 && l->o->model.batch > 0
                                 ? first->shape.dim[0]
                                 : 1;
    return EXIT_DONE;
}

static int make_batcher(load *l)
{
    const options *o = l->o;
    prony_error error = {0};
    prony_session_options session = session_options(o);
    prony_batcher_options b = PRONY_BATCHER_OPTIONS_INIT;
    b.sessions = l->streams;
    b.max_batch = o->load.max_batch;
    b.max_wait_ns = o->load.batch_window_ns > 0 ? o->load.batch_window_ns : 0;
    if (prony_batcher_create(&l->batcher, l->model, &session, &b, &error) != PRONY_OK) return report_error(o, &error);
    l->trial = prony_batcher_trial(l->batcher);
    l->threads = l->trial.threads;
    return EXIT_DONE;
}

static int set_up(load *l)
{
    const options *o = l->o;
    prony_error error = {0};
    if (load_model(o, &l->model, o->arguments[0], &error) != PRONY_OK) return report_error(o, &error);
    int code = quantize_in_place(o, &l->model);
    if (code == EXIT_DONE) code = make_session(o, l->model, &l->session, false);
    if (code == EXIT_DONE) code = take_inputs(l);
    if (code != EXIT_DONE) return code;
    if (l->scenario != SCENARIO_SINGLE) return make_batcher(l);
    l->threads = prony_session_threads(l->session);
    return prony_session_pin(l->session, &error) == PRONY_OK ? EXIT_DONE : report_error(o, &error);
}

static void take_down(load *l)
{
    prony_batcher_release(l->batcher);
    prony_session_unpin(l->session);
    session_release(l->session);
    prony_model_release(l->model);
    free(l->inputs);
}

/* ---- measuring ---- */

static int load_command_warm_up(load *l)
{
    load_result warm;
    int64_t queries = l->o->measuring.warmup >= 0 ? l->o->measuring.warmup : (int64_t)WARMUP_QUERIES * l->streams;
    scenario scenario = l->scenario;
    if (queries == 0) return EXIT_DONE;
    if (scenario == SCENARIO_SERVER) l->scenario = SCENARIO_OFFLINE;
    int code = load_issue(l, &(load_plan){.longest = DEFAULT_SECONDS, .least = (size_t)queries}, &warm);
    l->scenario = scenario;
    if (code == EXIT_DONE && warm.failed) code = fail(l->o, "%s", interrupted() ? interrupted() : l->failure);
    load_result_free(&warm);
    return code;
}

static int load_command_measure(load *l, load_result *result, load_searched *searched)
{
    const options *o = l->o;
    double seconds = o->measuring.seconds > 0 ? o->measuring.seconds : DEFAULT_SECONDS;
    size_t fewest = l->scenario == SCENARIO_OFFLINE ? OFFLINE_QUERIES : load_fewest_queries(l->percentile);
    load_plan plan = {
        .seconds = seconds, .longest = seconds * 6, .least = fewest, .rate = o->load.rate, .seed = o->model.seed};
    if (o->measuring.runs) {
        plan = (load_plan){.least = (size_t)o->measuring.runs,
                           .most = (size_t)o->measuring.runs,
                           .rate = o->load.rate,
                           .seed = o->model.seed};
        if (o->measuring.seconds > 0) plan.longest = o->measuring.seconds;
    }
    plan.shared = l->ranks != NULL;
    if (l->scenario == SCENARIO_SERVER && !(o->load.rate > 0)) return load_search(l, result, searched);
    int code = load_issue(l, &plan, result);
    if (code == EXIT_DONE && result->failed && l->scenario != SCENARIO_SERVER && !interrupted())
        code = fail(o, "%s", l->failure);
    return code;
}

/* A missed bound is a verdict; too few queries give no verdict. */
static int verdict(const load *l, const load_result *r)
{
    if (!l->bound_ns || r->met) return EXIT_DONE;
    return r->queries && !r->quantile_valid && r->likely_met ? EXIT_DONE : EXIT_VERDICT;
}

int command_bench_load(const options *o)
{
    return bench_load(o, NULL);
}

/* The busy process starts before the sessions exist, so set-up and warm-up meet the same load as the measurement. It
 * ends before results are written. An interrupted load writes the results until then. With ranks, rank 0 alone
 * writes. */
int bench_load(const options *o, const load_ranks *ranks)
{
    load l = {.o = o,
              .ranks = ranks,
              .scenario = scenario_of(o),
              .streams = o->load.streams ? (int)o->load.streams : 1,
              .requests_per_query = 1,
              .bound_ns = o->load.latency_bound_ns,
              .lock = PTHREAD_MUTEX_INITIALIZER,
              .change = PTHREAD_COND_INITIALIZER};
    load_result result = {0};
    load_searched searched = {0};
    busy beside;
    l.percentile = o->load.percentile > 0 ? o->load.percentile : l.scenario == SCENARIO_SINGLE ? 0.9 : 0.99;
    if (l.scenario == SCENARIO_MULTI)
        l.requests_per_query = o->load.samples_per_query ? (int)o->load.samples_per_query : DEFAULT_SAMPLES;
    int code = load_command_check_options(o, l.scenario);
    if (code != EXIT_DONE) return code;
    code = busy_start(&beside, o);
    l.background_threads = beside.threads;
    if (code == EXIT_DONE) code = set_up(&l);
    if (code == EXIT_DONE) code = load_command_warm_up(&l);
    if (code == EXIT_DONE) code = load_command_measure(&l, &result, &searched);
    busy_stop(&beside);
    clear_progress();
    if (code == EXIT_DONE && interrupted()) fail(o, "%s; the results until then follow", interrupted());
    if (code == EXIT_DONE && (!ranks || ranks->rank == 0)) code = load_write(&l, &result, &searched);
    if (code == EXIT_DONE) code = verdict(&l, &result);
    load_result_free(&result);
    free(searched.steps);
    take_down(&l);
    return code;
}
