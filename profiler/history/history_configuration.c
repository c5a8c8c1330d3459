/* Implements history_configuration.h. Pieces that a run does not have are left out, so that an earlier history keeps
 * its texts when a version adds a piece. */
#include "profiler/history/history_configuration.h"

#include <string.h>

const char *prn_history_string(prn_json_reader *r, const prn_json_value *object, const char *key)
{
    const char *text = NULL;
    return object && prn_json_get_string(r, object, key, false, &text) && text ? text : "";
}

int64_t prn_history_integer(prn_json_reader *r, const prn_json_value *object, const char *key, int64_t otherwise)
{
    int64_t value;
    return object && prn_json_get_i64(r, object, key, false, &value) ? value : otherwise;
}

static double configuration_number(prn_json_reader *r, const prn_json_value *object, const char *key)
{
    double value = 0;
    return object && prn_json_get_double(r, object, key, false, &value) ? value : 0;
}

static bool is_false(prn_json_reader *r, const prn_json_value *object, const char *key)
{
    bool value = true;
    return object && prn_json_get_bool(r, object, key, false, &value) && !value;
}

typedef struct configuration {
    prn_json_reader *r;
    const char *text; /* in the reader's pool */
} configuration;

/* Appends a piece after ", ". NULL: its making ran out of memory. */
static void configuration_add_piece(configuration *c, const char *piece)
{
    const char *text = piece ? prn_bump_printf(c->r->pool, "%s%s%s", c->text, *c->text ? ", " : "", piece) : NULL;
    if (text)
        c->text = text;
    else if (c->r->status == PRONY_OK)
        c->r->status = prn_no_memory(c->r->error);
}
#define ADD_PIECE(configuration, ...)                                                                                  \
    configuration_add_piece(configuration, prn_bump_printf((configuration)->r->pool, __VA_ARGS__))

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void configuration_add_threads(configuration *c, const prn_json_value *shape)
{
    const int64_t intra = prn_history_integer(c->r, shape, "intra_op_threads", 1),
                  inter = prn_history_integer(c->r, shape, "inter_op_threads", 1);
    if (inter > 1)
        ADD_PIECE(c, "%lld x %lld threads", (long long)intra, (long long)inter);
    else
        ADD_PIECE(c, "%lld thread%s", (long long)intra, plural(intra));
}

static void configuration_add_affinity(configuration *c, const char *cores)
{
    if (*cores) ADD_PIECE(c, "cores %s", cores);
}

static void configuration_add_background(configuration *c, const prn_json_value *config)
{
    const int64_t threads = prn_history_integer(c->r, config, "background_threads", 0);
    if (threads) ADD_PIECE(c, "beside %lld busy threads", (long long)threads);
}

/* Batch and precision of `shape`; dimensions and switches of `config`, the session's. */
static void configuration_add_session(configuration *c, const prn_json_value *config, const prn_json_value *shape)
{
    const int64_t batch = prn_history_integer(c->r, shape, "batch", -1);
    const char *precision = prn_history_string(c->r, shape, "precision");
    if (batch >= 0) ADD_PIECE(c, "batch %lld", (long long)batch);
    configuration_add_piece(c, *precision ? precision : "fp32");
    const prn_json_value *dims = config ? prn_json_get_object(c->r, config, "dims", false) : NULL;
    for (const prn_json_value *d = dims ? prn_json_first(dims) : NULL; d; d = prn_json_next(d)) {
        const int64_t value = prn_history_integer(c->r, dims, prn_json_key(d), 0);
        if (value == batch && strcmp(prn_json_key(d), "batch") == 0) continue;
        ADD_PIECE(c, "%s=%lld", prn_json_key(d), (long long)value);
    }
    configuration_add_affinity(c, prn_history_string(c->r, config, "affinity"));
    if (*prn_history_string(c->r, config, "device")) ADD_PIECE(c, "on %s", prn_history_string(c->r, config, "device"));
    if (is_false(c->r, config, "rewrites")) configuration_add_piece(c, "no rewrites");
    if (is_false(c->r, config, "reuse")) configuration_add_piece(c, "no reuse");
    configuration_add_background(c, config);
}

/* Processes of MPI, and the machines that they ran on. */
static void configuration_add_ranks(configuration *c, const prn_json_value *document)
{
    size_t count = 0, nodes = 0;
    const prn_json_value *list = prn_json_get_array(c->r, document, "ranks", false, &count);
    if (!list || count == 0) return;
    for (const prn_json_value *one = prn_json_first(list); one; one = prn_json_next(one)) {
        const prn_json_value *like = prn_json_first(list);
        const char *node = prn_history_string(c->r, one, "node");
        while (like != one && strcmp(prn_history_string(c->r, like, "node"), node) != 0) like = prn_json_next(like);
        nodes += like == one;
    }
    ADD_PIECE(c, "%zu rank%s on %zu node%s", count, plural((int64_t)count), nodes, plural((int64_t)nodes));
    const prn_json_value *pipeline = prn_json_get_object(c->r, document, "pipeline", false);
    if (!pipeline) return;
    ADD_PIECE(c, "%lld stages, %lld micro-batches", (long long)prn_history_integer(c->r, pipeline, "stages", 1),
              (long long)prn_history_integer(c->r, pipeline, "micro_batches", 1));
}

/* The command: what ran, and on which data. */
static configuration report_kind(prn_json_reader *r, const prn_json_value *report, bool stamped)
{
    const char *command = stamped ? "profile" : "bench";
    const prn_json_value *evaluation = prn_json_get_object(r, report, "evaluation", false),
                         *generation = prn_json_get_object(r, report, "generation", false);
    configuration c = {r, ""};
    if (generation) {
        const char *cache = prn_history_string(r, generation, "cache");
        ADD_PIECE(&c, "generate %lld after %lld", (long long)prn_history_integer(r, generation, "new_tokens", 0),
                  (long long)prn_history_integer(r, generation, "prompt_tokens", 0));
        configuration_add_piece(&c, command);
        if (*cache) ADD_PIECE(&c, "cache %s", cache);
    } else
        ADD_PIECE(&c, "%s%s", command, evaluation ? " of labelled data" : "");
    if (evaluation)
        ADD_PIECE(&c, "%s of %lld samples", prn_history_string(r, evaluation, "metric"),
                  (long long)prn_history_integer(r, evaluation, "samples", 0));
    return c;
}

const char *prn_history_report_configuration(prn_json_reader *r, const prn_json_value *report, bool stamped)
{
    const prn_json_value *config = prn_json_get_object(r, report, "config", false);
    configuration c = report_kind(r, report, stamped);
    configuration_add_threads(&c, config);
    configuration_add_session(&c, config, config);
    if (prn_json_has(report, "tuning")) configuration_add_piece(&c, "tuned");
    configuration_add_ranks(&c, report);
    return c.text;
}

/* Percentile of a server's bound unless the user sets another one. */
#define USUAL_PERCENTILE 0.99

/* The text that groups runs of a load, "" where the document lacks its parts. Two runs with one text are compared, so
 * each option that moves a latency has a piece. Order and wording of pieces never change: stored histories hold them.
 * The text is in the reader's pool. */
const char *prn_history_load_configuration(prn_json_reader *r, const prn_json_value *document)
{
    const prn_json_value *config = prn_json_get_object(r, document, "config", true),
                         *report = prn_json_get_object(r, document, "report", true);
    if (!config || !report) return "";
    const prn_json_value *session = prn_json_get_object(r, report, "config", false);
    configuration c = {r, ""};
    const int64_t sessions = prn_history_integer(r, config, "sessions", 1),
                  most = prn_history_integer(r, config, "max_batch", 1),
                  samples = prn_history_integer(r, config, "samples_per_request", 1),
                  requests = prn_history_integer(r, config, "requests_per_query", 1);
    const double window = configuration_number(r, config, "batch_window_ns"),
                 rate = configuration_number(r, config, "rate"),
                 bound = configuration_number(r, config, "latency_bound_ns"),
                 percentile = configuration_number(r, config, "percentile");
    ADD_PIECE(&c, "load %s", prn_history_string(r, document, "scenario"));
    ADD_PIECE(&c, "%lld session%s", (long long)sessions, plural(sessions));
    ADD_PIECE(&c, "batches to %lld", (long long)most);
    if (most > 1 && window > 0) ADD_PIECE(&c, "window %.6g ms", window * 1e-6);
    if (samples > 1) ADD_PIECE(&c, "%lld samples a request", (long long)samples);
    if (requests > 1) ADD_PIECE(&c, "%lld requests a query", (long long)requests);
    if (rate > 0) ADD_PIECE(&c, "%.6g/s", rate);
    if (bound > 0) ADD_PIECE(&c, "bound %.6g ms", bound * 1e-6);
    if (bound > 0 && percentile > 0 && (percentile < USUAL_PERCENTILE || percentile > USUAL_PERCENTILE))
        ADD_PIECE(&c, "p%.6g", 100 * percentile);
    configuration_add_threads(&c, prn_json_has(config, "intra_op_threads") ? config : session);
    configuration_add_session(&c, session, session);
    configuration_add_affinity(&c, prn_history_string(r, config, "affinity"));
    configuration_add_background(&c, config);
    configuration_add_ranks(&c, document);
    return c.text;
}

/* The value of an option among the arguments of a study's processes; "": not there. */
static const char *study_argument(prn_json_reader *r, const prn_json_value *plan, const char *option)
{
    size_t count;
    const prn_json_value *list = plan ? prn_json_get_array(r, plan, "arguments", false, &count) : NULL;
    bool next = false;
    for (const prn_json_value *one = list ? prn_json_first(list) : NULL; one; one = prn_json_next(one)) {
        const char *text = NULL;
        if (!prn_json_element_string(r, one, "arguments", &text)) break;
        if (next) return text;
        next = strcmp(text, option) == 0;
    }
    return "";
}

const char *prn_history_study_configuration(prn_json_reader *r, const prn_json_value *document,
                                            const prn_json_value *shape)
{
    const prn_json_value *manifest = prn_json_get_object(r, document, "manifest", true),
                         *plan = prn_json_get_object(r, document, "plan", true);
    if (!manifest || !plan) return "";
    const prn_json_value *config = prn_json_get_object(r, manifest, "config", false);
    size_t nodes = 0;
    configuration c = {r, "scale"};
    configuration_add_threads(&c, shape);
    configuration_add_session(&c, config, shape);
    /* The manifest of a repeated study does not have the session's options. */
    if (!*prn_history_string(r, config, "affinity"))
        configuration_add_affinity(&c, study_argument(r, plan, "--affinity"));
    if (prn_json_get_array(r, document, "nodes", false, &nodes) && nodes) ADD_PIECE(&c, "%zu nodes", nodes);
    return c.text;
}
