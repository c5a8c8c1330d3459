/* The tables of each schema, and the sentence that says its result. */
#include "profiler/documents/document.h"

#include "profiler/text/number_text.h"

#include <stdio.h>
#include <string.h>

/* ---- results ---- */

static size_t count_text(prn_document *d, const char *list, const char *key, const char *wanted, const char *flag)
{
    size_t count = 0;
    const char *leaf;
    const prn_json_value *array = prn_document_at(d, NULL, list, &leaf);
    for (const prn_json_value *row = array ? prn_json_first(array) : NULL; row; row = prn_json_next(row)) {
        const char *text = prn_document_text(d, row, key);
        bool set = !flag;
        if (flag) prn_json_get_bool(&d->reader, row, flag, false, &set);
        count += set && text && strcmp(text, wanted) == 0;
    }
    return count;
}

static void comparison_lead(prn_document *d, char text[PRN_DOCUMENT_LEAD])
{
    const char *a = prn_document_text(d, NULL, "a.name"), *b = prn_document_text(d, NULL, "b.name");
    snprintf(text, PRN_DOCUMENT_LEAD,
             "Deciding metrics: %zu worse, %zu better, %zu undecided. A is %.150s, B is %.150s.",
             count_text(d, "metrics", "verdict", "worse", "decides"),
             count_text(d, "metrics", "verdict", "better", "decides"),
             count_text(d, "metrics", "verdict", "cannot tell", "decides"), a ? a : "?", b ? b : "?");
}

static void check_lead(prn_document *d, char text[PRN_DOCUMENT_LEAD])
{
    const size_t met = count_text(d, "thresholds", "outcome", "met", NULL),
                 missed = count_text(d, "thresholds", "outcome", "missed", NULL),
                 unknown = count_text(d, "thresholds", "outcome", "unknown", NULL),
                 open = count_text(d, "thresholds", "outcome", "open", NULL) +
                        count_text(d, "thresholds", "outcome", "withheld", NULL);
    snprintf(text, PRN_DOCUMENT_LEAD, "Thresholds: %zu met, %zu missed, %zu undecided, %zu unknown.", met, missed, open,
             unknown);
}

static void versus_lead(prn_document *d, char text[PRN_DOCUMENT_LEAD])
{
    const char *peer = prn_document_text(d, NULL, "peer.name");
    const size_t faster = count_text(d, "results", "prony_is", "faster", NULL),
                 slower = count_text(d, "results", "prony_is", "slower", NULL),
                 same = count_text(d, "results", "prony_is", "as fast", NULL);
    snprintf(text, PRN_DOCUMENT_LEAD,
             "Prony beside %.100s: faster in %zu thread counts, as fast in %zu, slower in %zu. A ratio above 1: Prony "
             "is faster.",
             peer ? peer : "the peer", faster, same, slower);
}

static void recommendation_lead(prn_document *d, char text[PRN_DOCUMENT_LEAD])
{
    const char *leaf;
    size_t count = 0;
    const prn_json_value *array = prn_document_at(d, NULL, "recommendations", &leaf);
    for (const prn_json_value *row = array ? prn_json_first(array) : NULL; row; row = prn_json_next(row)) count++;
    snprintf(text, PRN_DOCUMENT_LEAD, "%zu recommendation%s, the largest gain first.", count, count == 1 ? "" : "s");
}

static void load_lead(prn_document *d, char text[PRN_DOCUMENT_LEAD])
{
    prn_number_text number;
    double rate = 0;
    const char *scenario = prn_document_text(d, NULL, "scenario"), *bound = prn_document_text(d, NULL, "result.bound");
    prn_document_number(d, NULL, "result.queries_per_second", &rate);
    snprintf(text, PRN_DOCUMENT_LEAD, "Scenario %.20s: %s queries per second%s%.40s.", scenario ? scenario : "?",
             prn_number_si(number, rate, 4, " "), bound ? "; latency bound: " : "", bound ? bound : "");
}

static void capacity_lead(prn_document *d, char text[PRN_DOCUMENT_LEAD])
{
    double cores, rate, bound, sessions, threads, batch, headroom;
    if (!prn_document_number(d, NULL, "config.rate", &rate) ||
        !prn_document_number(d, NULL, "config.latency_bound_ns", &bound))
        return;
    if (!prn_document_number(d, NULL, "answer.cores", &cores) ||
        !prn_document_number(d, NULL, "answer.sessions", &sessions) ||
        !prn_document_number(d, NULL, "answer.intra_op_threads", &threads) ||
        !prn_document_number(d, NULL, "answer.max_batch", &batch) ||
        !prn_document_number(d, NULL, "answer.headroom", &headroom)) {
        snprintf(text, PRN_DOCUMENT_LEAD, "No configuration keeps %g ms at %g requests/s.", bound / 1e6, rate);
        return;
    }
    snprintf(
        text, PRN_DOCUMENT_LEAD,
        "%g processor%s %g ms at %g requests/s: %g session%s of %g thread%s, batches of up to %g. The bound holds up "
        "to %.4g requests/s.",
        cores, cores > 1 ? "s keep" : " keeps", bound / 1e6, rate, sessions, sessions > 1 ? "s" : "", threads,
        threads > 1 ? "s" : "", batch, rate * (1 + headroom));
}

static void matrix_lead(prn_document *d, char text[PRN_DOCUMENT_LEAD])
{
    prn_number_text rate, time;
    double best = 0, least = 0, throughput = 0, latency = 0;
    bool undecided = false;
    const char *leaf;
    const prn_json_value *verdict = prn_document_at(d, NULL, "verdict", &leaf);
    if (verdict) prn_json_get_bool(&d->reader, verdict, "undecided", false, &undecided);
    prn_document_number(d, NULL, "verdict.throughput.report", &throughput);
    prn_document_number(d, NULL, "verdict.latency.report", &latency);
    prn_document_number(d, NULL, "verdict.throughput.samples_per_second", &best);
    prn_document_number(d, NULL, "verdict.latency.median_ns", &least);
    snprintf(text, PRN_DOCUMENT_LEAD,
             "Best throughput: %s samples per second in row %.0f. Lowest latency: %s in row %.0f.%s",
             prn_number_si(rate, best, 4, " "), throughput + 1, prn_number_time(time, (int64_t)least, 4, " "),
             latency + 1, undecided ? " The machine was busy: undecided." : "");
}

static void study_lead(prn_document *d, char text[PRN_DOCUMENT_LEAD])
{
    const char *statement = prn_document_text(d, NULL, "statement");
    snprintf(text, PRN_DOCUMENT_LEAD, "%.470s", statement ? statement : "");
}

static void report_lead(prn_document *d, char text[PRN_DOCUMENT_LEAD])
{
    prn_number_text time, rate;
    double median = 0, flops = 0, runs = 0;
    if (!prn_document_number(d, NULL, "latency_ns.median", &median)) {
        prn_document_number(d, NULL, "totals.flops", &flops);
        snprintf(text, PRN_DOCUMENT_LEAD, "%s FLOPs in a run; nothing was measured.",
                 prn_number_si(rate, flops, 4, " "));
        return;
    }
    prn_document_number(d, NULL, "latency_ns.runs", &runs);
    prn_document_number(d, NULL, "throughput.flops_per_second", &flops);
    snprintf(text, PRN_DOCUMENT_LEAD, "Median latency %s over %.0f runs; %sFLOP/s.",
             prn_number_time(time, (int64_t)median, 4, " "), runs, prn_number_si(rate, flops, 3, " "));
}

/* ---- tables ---- */

#define PART_COLUMNS                                                                                                   \
    {                                                                                                                  \
        {"name", "name", PRN_CELL_TEXT}, {"type", "op", PRN_CELL_TEXT}, {"A", "a_ns", PRN_CELL_TIME},                  \
            {"B", "b_ns", PRN_CELL_TIME}, {"B - A", "difference_ns", PRN_CELL_TIME},                                   \
            {"B / A", "ratio", PRN_CELL_RATIO}, {"95 %", "ratio_ci95", PRN_CELL_RATIO}, {"p", "p", PRN_CELL_RATIO},    \
        {                                                                                                              \
            "B is", "verdict", PRN_CELL_TEXT                                                                           \
        }                                                                                                              \
    }

#define TIMES_TABLE(id, title, path)                                                                                   \
    {                                                                                                                  \
        id, title, path, NULL,                                                                                         \
        {                                                                                                              \
            {"queries", "count", PRN_CELL_NUMBER}, {"mean", "mean", PRN_CELL_TIME}, {"median", "p50", PRN_CELL_TIME},  \
                {"p90", "p90", PRN_CELL_TIME}, {"p95", "p95", PRN_CELL_TIME}, {"p99", "p99", PRN_CELL_TIME},           \
                {"p99.9", "p999", PRN_CELL_TIME},                                                                      \
            {                                                                                                          \
                "maximum", "max", PRN_CELL_TIME                                                                        \
            }                                                                                                          \
        }                                                                                                              \
    }

static const prn_document_schema schemas[] = {
    {"prony.comparison/1",
     "Comparison",
     NULL,
     "notes",
     comparison_lead,
     {{"metrics",
       "Metrics",
       "metrics",
       "decides",
       {{"metric", "key", PRN_CELL_TEXT},
        {"A", "a", PRN_CELL_METRIC},
        {"B", "b", PRN_CELL_METRIC},
        {"B / A", "ratio", PRN_CELL_RATIO},
        {"95 %", "ratio_ci95", PRN_CELL_RATIO},
        {"p", "p", PRN_CELL_RATIO},
        {"B is", "verdict", PRN_CELL_TEXT},
        {"decides", "decides", PRN_CELL_FLAG}}},
      {"layers", "Layers", "layers", "difference_ns", PART_COLUMNS},
      {"types", "Operator types", "operator_types", "difference_ns", PART_COLUMNS},
      {"nested", "Inside of layers", "nested_layers", "difference_ns", PART_COLUMNS}}},
    {"prony.check/1",
     "Thresholds",
     "target",
     NULL,
     check_lead,
     {{"thresholds",
       "Thresholds",
       "thresholds",
       NULL,
       {{"metric", "metric", PRN_CELL_TEXT},
        {"value", "value_text", PRN_CELL_TEXT},
        {"bound", "bound", PRN_CELL_TEXT},
        {"limit", "limit_text", PRN_CELL_TEXT},
        {"outcome", "outcome", PRN_CELL_TEXT},
        {"left", "margin", PRN_CELL_SHARE},
        {"", "value", PRN_CELL_NUMBER},
        {"", "limit", PRN_CELL_NUMBER}}}}},
    {"prony.versus/1",
     "Comparison with another engine",
     "manifest.model.name",
     NULL,
     versus_lead,
     {{"results",
       "Latency",
       "results",
       NULL,
       {{"threads", "intra_op_threads", PRN_CELL_NUMBER},
        {"prony", "prony.median_ns", PRN_CELL_TIME},
        {"peer", "peer.median_ns", PRN_CELL_TIME},
        {"ratio", "ratio", PRN_CELL_RATIO},
        {"95 %", "ratio_ci95", PRN_CELL_RATIO},
        {"prony is", "prony_is", PRN_CELL_TEXT},
        {"pairs", "pairs", PRN_CELL_NUMBER},
        {"start of prony", "prony.start_ns", PRN_CELL_TIME},
        {"start of peer", "peer.start_ns", PRN_CELL_TIME},
        {"memory of prony", "prony.peak_rss_bytes", PRN_CELL_BYTES},
        {"memory of peer", "peer.peak_rss_bytes", PRN_CELL_BYTES}}},
      {"operators",
       "Operators",
       "operators",
       "prony_ns",
       {{"operator", "name", PRN_CELL_TEXT},
        {"kernel", "kernel", PRN_CELL_TEXT},
        {"prony", "prony_ns", PRN_CELL_TIME},
        {"peer", "peer_ns", PRN_CELL_TIME},
        {"nodes of peer", "peer_nodes", PRN_CELL_NUMBER}}},
      {"outputs",
       "Outputs",
       "outputs",
       NULL,
       {{"output", "name", PRN_CELL_TEXT},
        {"agrees", "agrees", PRN_CELL_FLAG},
        {"difference", "difference", PRN_CELL_NUMBER},
        {"because", "reason", PRN_CELL_TEXT}}}}},
    {"prony.history/1",
     "History",
     "name",
     NULL,
     NULL,
     {{"runs",
       "Runs",
       "runs",
       NULL,
       {{"run", "run", PRN_CELL_NUMBER},
        {"time", "time", PRN_CELL_TEXT},
        {"commit", "commit", PRN_CELL_TEXT},
        {"label", "label", PRN_CELL_TEXT},
        {"model", "model", PRN_CELL_TEXT},
        {"file", "sha256", PRN_CELL_TEXT},
        {"configuration", "configuration", PRN_CELL_TEXT},
        {"machine", "machine", PRN_CELL_TEXT},
        {"fingerprint", "fingerprint", PRN_CELL_TEXT},
        {"load", "load", PRN_CELL_TEXT},
        {"group", "group", PRN_CELL_NUMBER},
        {"prony", "prony", PRN_CELL_TEXT}}},
      {"values",
       "Values",
       "values",
       NULL,
       {{"run", "run", PRN_CELL_NUMBER},
        {"metric", "metric", PRN_CELL_TEXT},
        {"value", "value", PRN_CELL_NUMBER},
        {"95 %", "interval", PRN_CELL_NUMBER}}},
      {"layers",
       "Layers",
       "layers",
       NULL,
       {{"run", "run", PRN_CELL_NUMBER},
        {"layer", "layer", PRN_CELL_TEXT},
        {"type", "op", PRN_CELL_TEXT},
        {"time", "time_ns", PRN_CELL_TIME}}}}},
    {"prony.trend/1",
     "Trend",
     "name",
     NULL,
     NULL,
     {{"points",
       "Runs",
       "points",
       NULL,
       {{"group", "group", PRN_CELL_NUMBER},
        {"model", "model", PRN_CELL_TEXT},
        {"metric", "metric", PRN_CELL_TEXT},
        {"run", "number", PRN_CELL_NUMBER},
        {"time", "time", PRN_CELL_TEXT},
        {"commit", "commit", PRN_CELL_TEXT},
        {"label", "label", PRN_CELL_TEXT},
        {"load", "load", PRN_CELL_TEXT},
        {"value", "value", PRN_CELL_METRIC},
        {"95 %", "interval", PRN_CELL_METRIC},
        {"level", "level", PRN_CELL_METRIC},
        {"counted", "counted", PRN_CELL_FLAG}}},
      {"changes",
       "Changes of level",
       "changes",
       NULL,
       {{"group", "group", PRN_CELL_NUMBER},
        {"model", "model", PRN_CELL_TEXT},
        {"metric", "metric", PRN_CELL_TEXT},
        {"is", "kind", PRN_CELL_TEXT},
        {"direction", "direction", PRN_CELL_TEXT},
        {"from", "from", PRN_CELL_METRIC},
        {"to", "to", PRN_CELL_METRIC},
        {"ratio", "ratio", PRN_CELL_RATIO},
        {"first run", "first", PRN_CELL_NUMBER},
        {"last run", "last", PRN_CELL_NUMBER},
        {"commit before", "commit_before", PRN_CELL_TEXT},
        {"commit after", "commit_after", PRN_CELL_TEXT}}},
      {"groups",
       "Groups",
       "groups",
       NULL,
       {{"model", "model", PRN_CELL_TEXT},
        {"file", "sha256", PRN_CELL_TEXT},
        {"configuration", "configuration", PRN_CELL_TEXT},
        {"machine", "machine", PRN_CELL_TEXT},
        {"runs", "runs", PRN_CELL_NUMBER},
        {"busy", "busy", PRN_CELL_NUMBER}}}}},
    {"prony.trend_check/1",
     "Newest run",
     "name",
     NULL,
     NULL,
     {{"checks",
       "Newest run beside the trend",
       "checks",
       NULL,
       {{"group", "group", PRN_CELL_NUMBER},
        {"model", "model", PRN_CELL_TEXT},
        {"metric", "metric", PRN_CELL_TEXT},
        {"value", "value", PRN_CELL_METRIC},
        {"expected", "expected", PRN_CELL_METRIC},
        {"99 %", "interval", PRN_CELL_METRIC},
        {"ratio", "ratio", PRN_CELL_RATIO},
        {"verdict", "verdict", PRN_CELL_TEXT},
        {"outcome", "outcome", PRN_CELL_TEXT}}}}},
    {"prony.recommendation/1",
     "Recommendations",
     "target",
     NULL,
     recommendation_lead,
     {{"recommendations",
       "Recommendations",
       "recommendations",
       NULL,
       {{"about", "topic", PRN_CELL_TEXT},
        {"do", "action", PRN_CELL_TEXT},
        {"because", "reason", PRN_CELL_TEXT},
        {"metric", "metric", PRN_CELL_TEXT},
        {"gain", "gain_text", PRN_CELL_TEXT},
        {"basis", "basis", PRN_CELL_TEXT},
        {"", "gain", PRN_CELL_RATIO}}},
      {"considered",
       "Considered, and not recommended",
       "considered",
       NULL,
       {{"about", "topic", PRN_CELL_TEXT}, {"because", "reason", PRN_CELL_TEXT}}}}},
    {"prony.load/1",
     "Load",
     "report.model.name",
     NULL,
     load_lead,
     {{"result",
       "Result",
       "result",
       NULL,
       {{"queries", "queries", PRN_CELL_NUMBER},
        {"failed", "failed", PRN_CELL_NUMBER},
        {"samples", "samples", PRN_CELL_NUMBER},
        {"seconds", "seconds", PRN_CELL_NUMBER},
        {"queries/s", "queries_per_second", PRN_CELL_NUMBER},
        {"samples/s", "samples_per_second", PRN_CELL_NUMBER},
        {"offered/s", "offered_per_second", PRN_CELL_NUMBER},
        {"goodput/s", "goodput_per_second", PRN_CELL_NUMBER},
        {"late", "late", PRN_CELL_NUMBER},
        {"mean batch", "mean_batch", PRN_CELL_NUMBER},
        {"bound", "bound", PRN_CELL_TEXT}}},
      TIMES_TABLE("latency", "Latency", "result.latency_ns"),
      TIMES_TABLE("queue", "In the queue", "result.queue_ns"),
      TIMES_TABLE("run", "In a run", "result.run_ns"),
      {"search",
       "Search for the largest rate",
       "search.steps",
       NULL,
       {{"queries/s", "rate", PRN_CELL_NUMBER},
        {"queries", "queries", PRN_CELL_NUMBER},
        {"late", "late", PRN_CELL_NUMBER},
        {"quantile", "percentile_ns", PRN_CELL_TIME},
        {"kept", "kept", PRN_CELL_FLAG}}}}},
    {"prony.capacity/1",
     "Capacity",
     "model",
     NULL,
     capacity_lead,
     {{"frontier",
       "Processors and the largest rate that keeps the bound",
       "frontier",
       NULL,
       {{"cores", "cores", PRN_CELL_NUMBER},
        {"sessions", "sessions", PRN_CELL_NUMBER},
        {"threads", "intra_op_threads", PRN_CELL_NUMBER},
        {"batch", "max_batch", PRN_CELL_NUMBER},
        {"rate", "largest_rate", PRN_CELL_NUMBER},
        {"headroom", "headroom", PRN_CELL_SHARE},
        {"kept", "keeps_bound", PRN_CELL_FLAG},
        {"percentile", "percentile_ns", PRN_CELL_TIME},
        {"busy", "utilisation", PRN_CELL_SHARE},
        {"estimated", "estimated", PRN_CELL_FLAG}}},
      {"measured",
       "Measured times of runs",
       "measured",
       NULL,
       {{"sessions", "sessions", PRN_CELL_NUMBER},
        {"threads each", "intra_op_threads", PRN_CELL_NUMBER},
        {"batch", "batch", PRN_CELL_NUMBER},
        {"median", "median_ns", PRN_CELL_TIME},
        {"p99", "p99_ns", PRN_CELL_TIME},
        {"runs", "samples", PRN_CELL_NUMBER}}}}},
    {"prony.matrix/1",
     "Configurations",
     NULL,
     NULL,
     matrix_lead,
     {{"configurations",
       "Configurations",
       "reports",
       NULL,
       {{"batch", "config.batch", PRN_CELL_NUMBER},
        {"threads", "config.intra_op_threads", PRN_CELL_NUMBER},
        {"workers", "config.inter_op_threads", PRN_CELL_NUMBER},
        {"precision", "config.precision", PRN_CELL_TEXT},
        {"median", "latency_ns.median", PRN_CELL_TIME},
        {"95 %", "latency_ns.median_ci95", PRN_CELL_TIME},
        {"p90", "latency_ns.p90", PRN_CELL_TIME},
        {"samples/s", "throughput.samples_per_second", PRN_CELL_NUMBER},
        {"runs", "latency_ns.runs", PRN_CELL_NUMBER},
        {"prefill tokens/s", "generation.prefill_tokens_per_second", PRN_CELL_NUMBER},
        {"decode tokens/s", "generation.decode_tokens_per_second", PRN_CELL_NUMBER},
        {"first token", "generation.ttft_ns", PRN_CELL_TIME},
        {"token p50", "generation.tpot_ns.p50", PRN_CELL_TIME},
        {"token p99", "generation.tpot_ns.p99", PRN_CELL_TIME}}}}},
    {"prony.study/1",
     "Scaling study",
     "manifest.model.name",
     "quality.notes",
     study_lead,
     {{"results",
       "Results",
       "results",
       NULL,
       {{"threads", "configuration@plan.configurations.intra_op_threads", PRN_CELL_NUMBER},
        {"workers", "configuration@plan.configurations.inter_op_threads", PRN_CELL_NUMBER},
        {"batch", "configuration@plan.configurations.batch", PRN_CELL_NUMBER},
        {"precision", "configuration@plan.configurations.precision", PRN_CELL_TEXT},
        {"processes", "processes", PRN_CELL_NUMBER},
        {"median", "median_ns", PRN_CELL_TIME},
        {"95 %", "ci95", PRN_CELL_TIME},
        {"samples/s", "samples_per_second", PRN_CELL_NUMBER},
        {"speed-up", "speedup", PRN_CELL_RATIO},
        {"efficiency", "efficiency", PRN_CELL_SHARE},
        {"serial fraction", "karp_flatt", PRN_CELL_SHARE}}},
      {"comparison",
       "Beside the earlier study",
       "comparison",
       NULL,
       {{"threads", "configuration@plan.configurations.intra_op_threads", PRN_CELL_NUMBER},
        {"workers", "configuration@plan.configurations.inter_op_threads", PRN_CELL_NUMBER},
        {"then", "earlier_median_ns", PRN_CELL_TIME},
        {"ratio", "effect", PRN_CELL_RATIO},
        {"95 %", "interval", PRN_CELL_RATIO},
        {"is", "verdict", PRN_CELL_TEXT},
        {"because", "why", PRN_CELL_TEXT}}},
      {"operators",
       "Operators that lose most",
       "operators",
       "lost_ns",
       {{"operator", "name", PRN_CELL_TEXT},
        {"type", "op", PRN_CELL_TEXT},
        {"threads", "configuration@plan.configurations.intra_op_threads", PRN_CELL_NUMBER},
        {"1 thread", "serial_ns", PRN_CELL_TIME},
        {"now", "time_ns", PRN_CELL_TIME},
        {"lost", "lost_ns", PRN_CELL_TIME},
        {"because", "reason", PRN_CELL_TEXT}}}}},
    {"prony.report/1",
     "Profile",
     "model.name",
     NULL,
     report_lead,
     {{"layers",
       "Layers",
       "layers",
       "share",
       {{"layer", "name", PRN_CELL_TEXT},
        {"op", "op", PRN_CELL_TEXT},
        {"parameters", "parameters", PRN_CELL_COUNT},
        {"MACs", "macs", PRN_CELL_COUNT},
        {"FLOPs", "flops", PRN_CELL_COUNT},
        {"time", "time_ns.mean", PRN_CELL_TIME},
        {"share", "share", PRN_CELL_SHARE}}},
      {"operators",
       "Operators",
       "operators",
       "share",
       {{"operator", "name", PRN_CELL_TEXT},
        {"kernel", "kernel", PRN_CELL_TEXT},
        {"FLOPs", "flops", PRN_CELL_COUNT},
        {"time", "time_ns.mean", PRN_CELL_TIME},
        {"share", "share", PRN_CELL_SHARE},
        {"FLOP/s", "flops_per_second", PRN_CELL_COUNT},
        {"bound by", "bound", PRN_CELL_TEXT}}}}},
};

const prn_document_schema *prn_document_find(const char *schema)
{
    for (size_t i = 0; schema && i < sizeof schemas / sizeof schemas[0]; i++)
        if (strcmp(schemas[i].schema, schema) == 0) return &schemas[i];
    return NULL;
}
