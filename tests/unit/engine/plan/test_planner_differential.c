/* Random models, each run in ways that must agree: with and without reuse of memory and at one to four threads to the
 * bit, with and without rewrites and per instruction set within rounding (with fp32-strict to the bit), and a session
 * whose shapes change against fresh ones. Unused bytes hold NaNs meanwhile, and are poisoned under the address
 * sanitizer.
 *
 *     test_planner_differential                          what `make check` runs
 *     test_planner_differential --seed 7 --count 100000  more of them, from seed 7 on
 *     test_planner_differential --seed 7 --seconds 3600  for an hour
 *     test_planner_differential --print 7                the models of seed 7 as text
 *
 * A model that fails is made smaller while it still fails, and printed. */
#include "base/shape.h"
#include "base/cpu/isa.h"
#include "tests/support/seed_options.h"
#include "tests/support/graph_run.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || defined(__SANITIZE_THREAD__) ||               \
    __has_feature(thread_sanitizer)
enum { USUAL_COUNT = 250 };
#else
enum { USUAL_COUNT = 1500 };
#endif

/* Rewrites and instruction sets round differently, and a graph of 40 nodes amplifies the difference. */
static const double BOUND = 2e-3;

static seed_options options = {.first = 1, .count = USUAL_COUNT};

static const graph_way PLANNED = {.name = "planned", .fill_dead = true, .threads = 1, .runs = 2},
                       APART = {.name = "every buffer its own", .no_reuse = true, .threads = 1, .runs = 1},
                       BARE = {.name = "unrewritten", .no_rewrites = true, .fill_dead = true, .threads = 1, .runs = 1},
                       BARE_APART = {.name = "unrewritten, every buffer its own",
                                     .no_rewrites = true,
                                     .no_reuse = true,
                                     .threads = 1,
                                     .runs = 1},
                       STRICT = {.name = "strict",
                                 .fill_dead = true,
                                 .threads = 2,
                                 .runs = 1,
                                 .precision = PRONY_PRECISION_FP32_STRICT},
                       THREADS[] = {{.name = "2 threads", .fill_dead = true, .threads = 2, .runs = 1},
                                    {.name = "3 threads", .fill_dead = true, .threads = 3, .runs = 1},
                                    {.name = "4 threads", .fill_dead = true, .threads = 4, .runs = 1}};

typedef struct pair {
    const graph_way *a, *b;
    double bound; /* 0: to the bit */
} pair;

/* ---- one model ---- */

/* true: the two ways disagree; `text` has the difference. `refused` (may be NULL): both refuse. */
static bool disagree(const random_graph *g, const pair *pair, bool *refused, char *text, size_t size)
{
    graph_model m;
    graph_outputs a = {0}, b = {0};
    bool wrong = false;
    if (graph_open(&m, g) != PRONY_OK) {
        snprintf(text, size, "%s", m.error.message);
        if (refused) *refused = true;
        graph_close(&m);
        return false;
    }
    graph_run(&m, pair->a, &a);
    graph_run(&m, pair->b, &b);
    if (a.status != b.status || a.status == PRONY_INTERNAL) {
        wrong = true;
        snprintf(text, size, "%.300s | %.300s", a.status ? a.message : "runs", b.status ? b.message : "runs");
    } else if (a.status == PRONY_OK) {
        wrong = pair->bound > 0 ? !graph_near(&a, &b, pair->bound, text, size) : !graph_same(&a, &b, text, size);
    } else {
        snprintf(text, size, "%s", a.message);
        if (refused) *refused = true;
    }
    graph_outputs_free(&a);
    graph_outputs_free(&b);
    graph_close(&m);
    return wrong;
}

static bool still_wrong(const random_graph *g, void *argument)
{
    char text[1024];
    return disagree(g, argument, NULL, text, sizeof text);
}

/* True if the ways agree on the model. */
static bool try_pair(random_graph *g, const pair *pair, bool *refused)
{
    char text[1024] = "";
    if (!disagree(g, pair, refused, text, sizeof text)) {
        if (*refused && getenv("PRONY_TEST_VERBOSE")) printf("seed %" PRIu64 " refused: %s\n", g->seed, text);
        return true;
    }
    printf("seed %" PRIu64 ": %s and %s differ: %s\nreduced:\n", g->seed, pair->a->name, pair->b->name, text);
    fflush(stdout);
    random_graph_reduce(g, still_wrong, (void *)(uintptr_t)pair);
    random_graph_print(g, stdout);
    (void)disagree(g, pair, NULL, text, sizeof text);
    printf("now: %s\n", text);
    fflush(stdout);
    return false;
}

/* ---- many models ---- */

typedef struct tally {
    uint64_t models, refused, wrong, nodes;
} tally;

static void run_seeds(bool (*one)(uint64_t seed, tally *t), const char *what, uint64_t share)
{
    tally t = {0};
    double start = seed_options_now();
    for (uint64_t seed = options.first; options.seconds > 0 ? seed_options_now() - start < options.seconds
                                                            : seed - options.first < options.count / share;
         seed++) {
        t.models++;
        t.wrong += !one(seed, &t);
        if (t.wrong >= 5) break;
    }
    printf("%s: %" PRIu64 " models of %" PRIu64 " nodes from seed %" PRIu64 ", %" PRIu64 " refused, %" PRIu64
           " wrong\n",
           what, t.models, t.nodes, options.first, t.refused, t.wrong);
    fflush(stdout);
    assert_int_equal(t.wrong, 0);
    assert_true(t.refused * 10 <= t.models); /* the maker should know what is valid */
}

static bool agree_on_all(random_graph *g, const pair *pairs, size_t count, tally *t)
{
    bool refused = false, good = true;
    t->nodes += random_graph_nodes(g);
    for (size_t p = 0; p < count && good && !refused; p++) good = try_pair(g, &pairs[p], &refused);
    t->refused += refused;
    random_graph_free(g);
    return good;
}

static bool reuse_changes_no_bit(uint64_t seed, tally *t)
{
    const pair pairs[] = {{&PLANNED, &APART, 0}, {&BARE, &BARE_APART, 0}};
    return agree_on_all(random_graph_make(seed, RG_ANY), pairs, 2, t);
}

static bool threads_change_no_bit(uint64_t seed, tally *t)
{
    const pair pairs[] = {{&APART, &THREADS[seed % 3], 0}};
    return agree_on_all(random_graph_make(seed, RG_ANY), pairs, 1, t);
}

static bool rewrites_change_roundings(uint64_t seed, tally *t)
{
    const pair pairs[] = {{&PLANNED, &BARE_APART, BOUND}};
    return agree_on_all(random_graph_make(seed, RG_SMOOTH), pairs, 1, t);
}

static void test_reuse(void **state)
{
    (void)state;
    run_seeds(reuse_changes_no_bit, "reuse", 1);
}

static void test_threads(void **state)
{
    (void)state;
    run_seeds(threads_change_no_bit, "threads", 3);
}

static void test_rewrites(void **state)
{
    (void)state;
    run_seeds(rewrites_change_roundings, "rewrites", 1);
}

/* ---- instruction sets: the level is asked once in a process, so each runs in one of its own ---- */

enum { LEVELS = 4, FIRST_STRICT = 1 }; /* scalar loops have no fused multiply-add, which fp32-strict is made of */
static const char *const level_names[LEVELS] = {"scalar", "avx2", "avx512", "amx"};
static int level_pipes[LEVELS];
static pid_t level_children[LEVELS];

static bool put_all(int file, const void *data, size_t size)
{
    for (const char *at = data; size;) {
        ssize_t wrote = write(file, at, size);
        if (wrote <= 0) return false;
        at += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

static bool get_all(int file, void *data, size_t size)
{
    for (char *at = data; size;) {
        ssize_t got = read(file, at, size);
        if (got <= 0) return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static bool level_seed(int64_t turn, uint64_t *seed)
{
    *seed = options.first + (uint64_t)turn;
    return (uint64_t)turn < (options.seconds > 0 ? UINT64_MAX : options.count / 4);
}

static bool put_outputs(int to, const graph_outputs *out)
{
    bool open = put_all(to, &out->status, sizeof out->status) && put_all(to, &out->count, sizeof out->count);
    for (size_t k = 0; k < out->count && open; k++)
        open = put_all(to, &out->values[k], sizeof out->values[k]) &&
               put_all(to, out->values[k].data, prn_value_bytes(&out->values[k]));
    return open;
}

static bool serve_way(int to, uint64_t seed, unsigned kind, const graph_way *way)
{
    random_graph *g = random_graph_make(seed, kind);
    graph_model m;
    graph_outputs out = {0};
    if (graph_open(&m, g) == PRONY_OK) graph_run(&m, way, &out);
    const bool open = put_outputs(to, &out);
    graph_outputs_free(&out);
    graph_close(&m);
    random_graph_free(g);
    return open;
}

/* Writes status and outputs of one seed after another until the reader closes. */
static _Noreturn void serve_level(int to, bool strict)
{
    uint64_t seed;
    bool open = true;
    for (int64_t turn = 0; open && level_seed(turn, &seed); turn++)
        open = serve_way(to, seed, RG_SMOOTH, &PLANNED) && (!strict || serve_way(to, seed, RG_ANY, &STRICT));
    _exit(0);
}

/* Before anything of the library runs here. */
static void start_levels(void)
{
    for (int l = 0; l < LEVELS; l++) {
        int ends[2];
        if (pipe(ends) != 0) abort();
        fflush(stdout);
        level_children[l] = fork();
        if (level_children[l] == 0) {
            close(ends[0]);
            setenv("PRONY_MAX_ISA", level_names[l], 1);
            signal(SIGPIPE, SIG_IGN);
            serve_level(ends[1], l >= FIRST_STRICT);
        }
        close(ends[1]);
        level_pipes[l] = ends[0];
    }
}

static bool read_outputs(int from, graph_outputs *out)
{
    *out = (graph_outputs){0};
    if (!get_all(from, &out->status, sizeof out->status) || !get_all(from, &out->count, sizeof out->count))
        return false;
    out->values = calloc(out->count + 1, sizeof *out->values);
    bool whole = out->values != NULL;
    for (size_t k = 0; k < out->count && whole; k++) {
        whole = get_all(from, &out->values[k], sizeof out->values[k]);
        if (!whole) continue;
        size_t bytes = prn_value_bytes(&out->values[k]);
        out->values[k].data = malloc(bytes + 1);
        whole = out->values[k].data && get_all(from, out->values[k].data, bytes);
    }
    return whole;
}

static void read_level(int l, uint64_t seed, graph_outputs *out)
{
    if (!read_outputs(level_pipes[l], out)) fail_msg("level %s ended at seed %" PRIu64, level_names[l], seed);
}

static bool levels_agree(uint64_t seed, int a, int b, const graph_outputs *left, const graph_outputs *right,
                         bool strict)
{
    char text[256] = "";
    const bool good = left->status == right->status && (strict ? graph_same(left, right, text, sizeof text)
                                                               : graph_near(left, right, BOUND, text, sizeof text));
    if (!good)
        printf("seed %" PRIu64 "%s: %s and %s differ: %s\n", seed, strict ? ", fp32-strict" : "", level_names[a],
               level_names[b], text);
    return good;
}

static void test_levels(void **state)
{
    (void)state;
    uint64_t seed, wrong = 0, ran = 0;
    double start = seed_options_now();
    for (int64_t turn = 0;
         level_seed(turn, &seed) && !(options.seconds > 0 && seed_options_now() - start >= options.seconds); turn++) {
        graph_outputs outputs[LEVELS] = {0}, strict[LEVELS] = {0};
        for (int l = 0; l < LEVELS; l++) {
            read_level(l, seed, &outputs[l]);
            if (l >= FIRST_STRICT) read_level(l, seed, &strict[l]);
        }
        for (int l = 1; l < LEVELS; l++) {
            wrong += !levels_agree(seed, 0, l, &outputs[0], &outputs[l], false);
            if (l > FIRST_STRICT)
                wrong += !levels_agree(seed, FIRST_STRICT, l, &strict[FIRST_STRICT], &strict[l], true);
        }
        for (int l = 0; l < LEVELS; l++) {
            graph_outputs_free(&outputs[l]);
            graph_outputs_free(&strict[l]);
        }
        ran++;
    }
    printf("levels: %" PRIu64 " models from seed %" PRIu64 ", %" PRIu64 " wrong\n", ran, options.first, wrong);
    assert_int_equal(wrong, 0);
    assert_true(ran > 0);
}

static void stop_levels(void)
{
    for (int l = 0; l < LEVELS; l++) close(level_pipes[l]);
    for (int l = 0; l < LEVELS; l++) waitpid(level_children[l], NULL, 0);
}

/* ---- sessions ---- */

enum { TURNS = 8, MOST_BATCH = 45, RG_MOST_OPEN = 64 };

static prony_session *open_session(prony_model *model, int threads, prony_error *error)
{
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = threads;
    if (prony_session_create(&session, model, &options, error) != PRONY_OK) fail_msg("%s", error->message);
    return session;
}

static prony_status run_session(prony_session *session, const random_graph *g, int64_t batch, graph_outputs *out)
{
    prony_error error = {0};
    *out = (graph_outputs){0};
    for (size_t i = 0; i < g->main.input_count; i++) {
        char name[16];
        const rg_value *type = &g->values[g->main.inputs[i]];
        prony_value value = {.dtype = type->dtype, .shape = type->shape};
        value.shape.dim[0] = batch;
        value.data = malloc(prn_value_bytes(&value) + 1);
        assert_non_null(value.data);
        random_graph_fill(g, i, batch, value.data);
        snprintf(name, sizeof name, "v%d", g->main.inputs[i]);
        out->status = prony_session_set_input(session, name, &value, &error);
        free(value.data);
        if (out->status != PRONY_OK) fail_msg("%s", error.message);
    }
    out->status = prony_session_run(session, &error);
    snprintf(out->message, sizeof out->message, "%s", error.message);
    if (out->status != PRONY_OK) return out->status;
    out->values = calloc(g->main.output_count + 1, sizeof *out->values);
    assert_non_null(out->values);
    for (size_t k = 0; k < g->main.output_count; k++) {
        const prony_value *value = NULL;
        if (prony_session_output(session, k, &value, &error) != PRONY_OK) fail_msg("%s", error.message);
        size_t bytes = prn_value_bytes(value);
        out->values[k] = *value;
        out->values[k].data = malloc(bytes + 1);
        assert_non_null(out->values[k].data);
        if (bytes) memcpy(out->values[k].data, value->data, bytes);
        out->count++;
    }
    return PRONY_OK;
}

static uint64_t followed_models; /* of those with sessions: one plan was for all batches */

/* One plan for the largest batch: it is taken to the others, or a batch has a plan of its own. */
static prony_session *open_largest(prony_model *model, int workers, prony_error *error)
{
    char names[RG_MOST_OPEN][16];
    prony_dim most[RG_MOST_OPEN];
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 1;
    options.inter_op_threads = workers;
    options.max_dims = most;
    for (size_t i = 0; i < prony_model_input_count(model) && i < RG_MOST_OPEN; i++) {
        const prony_value_info *port = prony_model_input(model, i);
        const char *symbol = port->dim_names[0];
        snprintf(names[i], sizeof names[i], "%s.0", port->name);
        if (symbol && *symbol && options.max_dim_count) continue; /* one symbol for all of them */
        most[options.max_dim_count++] = (prony_dim){symbol && *symbol ? symbol : names[i], MOST_BATCH};
    }
    if (prony_session_create(&session, model, &options, error) != PRONY_OK) fail_msg("%s", error->message);
    return session;
}

static bool same_as_fresh(const random_graph *g, prony_session *session, const char *way, int64_t batch,
                          const graph_outputs *fresh, uint64_t seed)
{
    char text[512] = "";
    graph_outputs outputs;
    prony_status status = run_session(session, g, batch, &outputs);
    const bool good = status == fresh->status && graph_same(&outputs, fresh, text, sizeof text);
    if (!good) {
        printf("seed %" PRIu64 ": batch %d, %s: %s %s %s\n", seed, (int)batch, way, text, outputs.message,
               fresh->message);
        random_graph_print(g, stdout);
    }
    graph_outputs_free(&outputs);
    return good;
}

/* Sessions with changing batches (more of them than stored plans, or with one plan for all) give the results of a
 * fresh session. */
static bool shapes_may_change(uint64_t seed, tally *t)
{
    static const int64_t batches[TURNS] = {1, 3, 2, 1, 4, 5, 3, MOST_BATCH};
    random_graph *g = random_graph_make(seed, RG_BATCHED);
    model_builder *m = random_graph_build(g);
    prony_model *model = NULL;
    prony_error error = {0};
    size_t size;
    const void *bytes = mb_finish(m, &size);
    bool good = true, refused = false;
    t->nodes += random_graph_nodes(g);
    if (prony_model_load_memory(&model, "random", bytes, size, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    prony_session *kept = open_session(model, 2, &error), *largest = open_largest(model, 1 + (int)(seed % 2), &error);
    for (int turn = 0; turn < TURNS && good; turn++) {
        graph_outputs outputs;
        prony_session *fresh = open_session(model, 1, &error);
        prony_status status = run_session(fresh, g, batches[turn], &outputs);
        if (status != PRONY_OK && !refused && getenv("PRONY_TEST_VERBOSE"))
            printf("seed %" PRIu64 " refused: %s\n", seed, outputs.message);
        good = same_as_fresh(g, kept, "plans for each", batches[turn], &outputs, seed) &&
               same_as_fresh(g, largest, "a plan for all", batches[turn], &outputs, seed);
        refused |= status != PRONY_OK;
        graph_outputs_free(&outputs);
        prony_session_release(fresh);
    }
    const prony_preparations made = prony_session_preparations(largest);
    followed_models += made.respecialized >= TURNS - 2;
    prony_session_release(kept);
    prony_session_release(largest);
    prony_model_release(model);
    mb_free(m);
    random_graph_free(g);
    t->refused += refused;
    return good;
}

static void test_sessions(void **state)
{
    (void)state;
    followed_models = 0;
    run_seeds(shapes_may_change, "sessions", 6);
    printf("one plan for all batches: %" PRIu64 " models\n", followed_models);
    assert_true(followed_models > 0);
}

static int print_model(uint64_t seed)
{
    static const unsigned kinds[] = {RG_ANY, RG_SMOOTH, RG_BATCHED};
    for (int i = 0; i < 3; i++) {
        random_graph *g = random_graph_make(seed, kinds[i]);
        random_graph_print(g, stdout);
        random_graph_free(g);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const int status = seed_options_read(&options, argc, argv, print_model, NULL);
    if (status >= 0) return status;
    bool levels = !options.only || strcmp("test_levels", options.only) == 0;
    if (levels) start_levels();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels), cmocka_unit_test(test_reuse),
                                       cmocka_unit_test(test_threads), cmocka_unit_test(test_rewrites),
                                       cmocka_unit_test(test_sessions)};
    if (options.only) cmocka_set_test_filter(options.only);
    bool any = !options.only;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) any |= !any && strcmp(tests[i].name, options.only) == 0;
    if (!any) fprintf(stderr, "no test is named %s\n", options.only);
    int failed = any ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
    if (levels) stop_levels();
    return failed;
}
