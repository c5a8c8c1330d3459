/* The plan of a study: configurations, the order of its blocks, and the next block.
 *
 * Every round holds each configuration once (over nodes: once on each node) in a random order, so that changes of the
 * machine affect all of them. After the plan, configurations with disturbed blocks are measured again, at most one
 * block in PRN_STUDY_REPEATS. With a budget, the time of a block follows from the rest of it; if that is too little,
 * later rounds are dropped. */
#include "profiler/study/study.h"

#include <math.h>
#include <string.h>

/* Chosen without measurement. */
#define DEFAULT_PROCESSES 10
#define DEFAULT_SECONDS 1.0
#define SHORTEST_SECONDS 0.1
#define FEWEST_ROUNDS 3 /* fewest rounds under a budget; chosen without measurement */

/* ---- configurations ---- */

static prony_status study_plan_add(prony_study *s, prn_study_configuration c, prony_error *error)
{
    for (size_t i = 0; i < s->configuration_count; i++) {
        const prn_study_configuration *o = &s->configurations[i];
        if (o->group == c.group && o->intra_op == c.intra_op && o->inter_op == c.inter_op && o->again == c.again &&
            prn_study_replicas(o) == prn_study_replicas(&c))
            return PRONY_OK;
    }
    if (s->configuration_count == PRN_STUDY_MOST_CONFIGURATIONS)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "a study has at most %d configurations",
                        PRN_STUDY_MOST_CONFIGURATIONS);
    s->configurations[s->configuration_count++] = c;
    return PRONY_OK;
}

/* Adds the configuration of one thread count, and its replicas. Weak scaling multiplies the batch by the threads. */
static prony_status add_threads(prony_study *s, const prony_study_options *o, prn_study_configuration base,
                                int64_t intra, int64_t inter, prony_error *error)
{
    if (intra == 0) intra = s->usable / (inter > 0 ? inter : 1) > 0 ? s->usable / inter : 1;
    if (intra < 1 || inter < 1 || intra > 1024 || inter > 1024)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%lld threads and %lld workers: both must be from 1 to 1024",
                        (long long)intra, (long long)inter);
    base.intra_op = (int)intra;
    base.inter_op = (int)inter;
    int threads = prn_study_threads(&base);
    base.baseline = threads == 1;
    base.beyond = threads > s->usable;
    if (o->weak && __builtin_mul_overflow(base.batch ? base.batch : 1, (int64_t)threads, &base.batch))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "the batch of %d threads is too large", threads);
    PRN_TRY(study_plan_add(s, base, error));
    for (size_t i = 0; i < o->replica_count; i++) {
        prn_study_configuration many = base;
        if (o->replicas[i] < 1 || o->replicas[i] > PRN_STUDY_MOST_REPLICAS)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "%lld replicas: must be from 1 to %d",
                            (long long)o->replicas[i], PRN_STUDY_MOST_REPLICAS);
        if (o->replicas[i] == 1) continue;
        many.replicas = (int)o->replicas[i];
        many.baseline = false;
        many.beyond = prn_study_processors(&many) > s->usable;
        PRN_TRY(study_plan_add(s, many, error));
    }
    return PRONY_OK;
}

/* Adds 1, 2, 4 … and all usable threads. */
static prony_status add_default_threads(prony_study *s, const prony_study_options *o, prn_study_configuration base,
                                        int64_t inter, prony_error *error)
{
    for (int n = 1; n * inter <= s->usable; n *= 2) PRN_TRY(add_threads(s, o, base, n, inter, error));
    return add_threads(s, o, base, 0, inter, error);
}

static prony_status study_plan_add_group(prony_study *s, const prony_study_options *o, prn_study_configuration base,
                                         prony_error *error)
{
    static const int64_t one = 1;
    const int64_t *workers = o->inter_op_count ? o->inter_op : &one;
    size_t count = o->inter_op_count ? o->inter_op_count : 1;
    PRN_TRY(add_threads(s, o, base, 1, 1, error));
    for (size_t y = 0; y < count; y++) {
        if (workers[y] < 1)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "a study needs a number of workers, not auto");
        if (o->intra_op_count == 0) PRN_TRY(add_default_threads(s, o, base, workers[y], error));
        for (size_t x = 0; x < o->intra_op_count; x++)
            PRN_TRY(add_threads(s, o, base, o->intra_op[x], workers[y], error));
    }
    prn_study_configuration again = s->configurations[prn_study_baseline(s, base.group)];
    again.again = true;
    return study_plan_add(s, again, error);
}

static prony_status add_groups(prony_study *s, const prony_study_options *o, prony_error *error)
{
    size_t batches = o->batch_count ? o->batch_count : 1, precisions = o->precision_count ? o->precision_count : 1;
    s->configurations = prn_bump_alloc(&s->pool, PRN_STUDY_MOST_CONFIGURATIONS, sizeof *s->configurations);
    if (!s->configurations) return prn_no_memory(error);
    for (size_t p = 0; p < precisions; p++) {
        const char *name = o->precision_count ? o->precisions[p] : "fp32";
        for (size_t b = 0; b < batches; b++) {
            prn_study_configuration base = {.batch = o->batch_count ? o->batches[b] : 0, .group = p * batches + b};
            base.precision = prn_bump_strndup(&s->pool, name, strlen(name));
            if (!base.precision) return prn_no_memory(error);
            PRN_TRY(study_plan_add_group(s, o, base, error));
        }
    }
    return PRONY_OK;
}

/* Every round holds each configuration once on each node. The pairs are shuffled as numbers, node * configurations +
 * configuration, and then taken apart; of one machine they are the configurations themselves. */
prony_status prn_study_make_order(prony_study *s, prony_error *error)
{
    uint64_t random = s->seed;
    size_t count = s->configuration_count * prn_study_node_total(s);
    s->order_count = count * (size_t)s->processes;
    s->order = prn_bump_alloc(&s->pool, s->order_count, sizeof *s->order);
    if (s->node_count) s->order_nodes = prn_bump_alloc(&s->pool, s->order_count, sizeof *s->order_nodes);
    if (!s->order || (s->node_count && !s->order_nodes)) return prn_no_memory(error);
    s->order_node_count = s->node_count ? s->order_count : 0;
    for (size_t round = 0; round < (size_t)s->processes; round++) {
        uint32_t *of = s->order + round * count;
        for (size_t i = 0; i < count; i++) of[i] = (uint32_t)i;
        for (size_t i = count - 1; i > 0; i--) {
            size_t other = prn_random_below(&random, i + 1);
            uint32_t swapped = of[i];
            of[i] = of[other];
            of[other] = swapped;
        }
    }
    for (size_t i = 0; i < s->order_node_count; i++) {
        s->order_nodes[i] = s->order[i] / (uint32_t)s->configuration_count;
        s->order[i] %= (uint32_t)s->configuration_count;
    }
    return PRONY_OK;
}

static prony_status keep_arguments(prony_study *s, const char *const *arguments, size_t count, prony_error *error)
{
    const char **kept = prn_bump_alloc(&s->pool, count + 1, sizeof *kept);
    if (!kept) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++)
        if (!(kept[i] = prn_bump_strndup(&s->pool, arguments[i], strlen(arguments[i])))) return prn_no_memory(error);
    s->arguments = kept;
    s->argument_count = count;
    return PRONY_OK;
}

static prony_status study_plan_fill(prony_study *s, const prony_study_options *o, prony_error *error)
{
    if (o->processes < 0 || o->processes > PRN_STUDY_MOST_PROCESSES || o->runs < 0 || !(o->seconds >= 0) ||
        !(o->budget_seconds >= 0))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "study options: numbers must not be negative, processes not above %d",
                        PRN_STUDY_MOST_PROCESSES);
    s->seed = o->seed;
    s->weak = o->weak;
    s->processes = o->processes ? o->processes : DEFAULT_PROCESSES;
    s->runs = o->runs;
    s->seconds = o->seconds > 0 ? o->seconds : DEFAULT_SECONDS;
    s->warmup_runs = o->warmup_runs;
    s->budget_seconds = o->budget_seconds;
    PRN_TRY(keep_arguments(s, o->arguments, o->argument_count, error));
    PRN_TRY(add_groups(s, o, error));
    return prn_study_make_order(s, error);
}

static prony_status study_plan_begin(prony_study **out, prony_report *manifest, int usable, prony_error *error)
{
    *out = prn_calloc(1, sizeof **out);
    if (!*out) return prn_no_memory(error);
    (*out)->manifest = manifest;
    (*out)->usable = usable;
    return PRONY_OK;
}

prony_status prn_study_plan(prony_study **out, prony_report *manifest, const prony_study_options *options, int usable,
                            prony_error *error)
{
    prony_study *s;
    PRN_TRY(study_plan_begin(&s, manifest, usable, error));
    prony_status status = study_plan_fill(s, options, error);
    if (status == PRONY_OK) {
        *out = s;
        return status;
    }
    s->manifest = NULL; /* stays the caller's */
    prony_study_release(s);
    return status;
}

/* Takes configurations, seed and lengths of an earlier study; limits follow from this machine. */
prony_status prn_study_plan_again(prony_study **out, prony_report *manifest, const prony_study *earlier, int usable,
                                  prony_error *error)
{
    prony_study *s;
    PRN_TRY(study_plan_begin(&s, manifest, usable, error));
    s->seed = earlier->seed;
    s->weak = earlier->weak;
    s->processes = earlier->processes;
    s->runs = earlier->runs;
    s->seconds = earlier->seconds;
    s->warmup_runs = earlier->warmup_runs;
    s->budget_seconds = earlier->budget_seconds;
    prony_status status = keep_arguments(s, earlier->arguments, earlier->argument_count, error);
    s->configurations = prn_bump_alloc(&s->pool, earlier->configuration_count + 1, sizeof *s->configurations);
    if (status == PRONY_OK && !s->configurations) status = prn_no_memory(error);
    for (size_t i = 0; status == PRONY_OK && i < earlier->configuration_count; i++) {
        prn_study_configuration c = earlier->configurations[i];
        c.operators = NULL;
        c.operator_count = 0;
        c.refused = NULL;
        c.samples = 0;
        c.beyond = prn_study_processors(&c) > usable;
        c.precision = prn_bump_strndup(&s->pool, c.precision, strlen(c.precision));
        if (!c.precision) status = prn_no_memory(error);
        s->configurations[s->configuration_count++] = c;
    }
    if (status == PRONY_OK) status = prn_study_make_order(s, error);
    if (status == PRONY_OK) {
        *out = s;
        return status;
    }
    s->manifest = NULL;
    prony_study_release(s);
    return status;
}

/* ---- the next block ---- */

static double elapsed(const prn_study_block *b)
{
    return (double)(b->after.time_ns - b->before.time_ns) * 1e-9;
}

/* The time of a lane's blocks so far; one block runs at a time. */
typedef struct lane_use {
    double all, beside; /* seconds; beside: of starting and warming up */
    size_t blocks;
} lane_use;

static lane_use spent(const prony_study *s, size_t lane)
{
    lane_use use = {0};
    for (size_t i = 0; i < s->block_count; i++) {
        double measured = 0;
        if (s->blocks[i].replica || prn_study_lane_of(s, s->blocks[i].node) != lane) continue;
        for (size_t k = 0; k < s->blocks[i].sample_count; k++) measured += (double)s->blocks[i].samples_ns[k] * 1e-9;
        use.all += elapsed(&s->blocks[i]);
        use.beside += fmax(0, elapsed(&s->blocks[i]) - measured);
        use.blocks++;
    }
    return use;
}

static size_t round_blocks(const prony_study *s)
{
    return s->configuration_count * prn_study_node_total(s);
}

/* Blocks of the plan that the budget allows: whole rounds, as many as the slowest lane has time for. */
static size_t planned_blocks(const prony_study *s)
{
    size_t count = round_blocks(s), done = prn_study_rounds_done(s);
    if (s->budget_seconds <= 0 || done < count || count == 0) return s->order_count;
    size_t fewest = s->order_count / count;
    for (size_t lane = 0; lane < prn_study_lanes(s); lane++) {
        lane_use use = spent(s, lane);
        if (use.blocks == 0) continue;
        double each = use.beside / (double)use.blocks + SHORTEST_SECONDS;
        size_t of_round = s->configuration_count * prn_study_lane_nodes(s, lane);
        size_t rounds = (size_t)fmax(0, (s->budget_seconds - use.all) / each / (double)of_round) +
                        (use.blocks < s->order_count ? use.blocks : s->order_count) / of_round;
        if (rounds < fewest) fewest = rounds;
    }
    if (fewest < FEWEST_ROUNDS) fewest = FEWEST_ROUNDS;
    return fewest * count < s->order_count ? fewest * count : s->order_count;
}

/* Seconds that a block of this lane may measure: an even share of what is left of the budget. */
static double block_seconds(const prony_study *s, size_t planned, size_t lane)
{
    if (s->budget_seconds <= 0) return s->seconds;
    lane_use use = spent(s, lane);
    size_t nodes = prn_study_lane_nodes(s, lane), total = prn_study_node_total(s);
    if (use.blocks < s->configuration_count * nodes) { /* the times beside measuring are not known yet */
        double even = s->budget_seconds / (double)(s->order_count / total * nodes + 1);
        return fmax(SHORTEST_SECONDS, fmin(s->seconds, even / 2));
    }
    size_t own = planned / total * nodes;
    double left = s->budget_seconds * 0.95 - use.all;
    return fmax(SHORTEST_SECONDS,
                left / (double)(own > use.blocks ? own - use.blocks : 1) - use.beside / (double)use.blocks);
}

/* The configuration with the most disturbed blocks on this node that were not measured again yet. */
static bool next_again(const prony_study *s, size_t planned, size_t node, size_t *configuration)
{
    size_t repeated = 0, most = 0;
    for (size_t i = 0; i < s->block_count; i++)
        repeated += s->blocks[i].node == node && s->blocks[i].again && !s->blocks[i].replica;
    if (repeated >= planned / prn_study_node_total(s) / PRN_STUDY_REPEATS) return false;
    if (s->budget_seconds > 0 && spent(s, prn_study_lane_of(s, node)).all > s->budget_seconds * 0.95) return false;
    for (size_t c = 0; c < s->configuration_count; c++) {
        size_t disturbed = 0, again = 0;
        for (size_t i = 0; i < s->block_count; i++) {
            const prn_study_block *b = &s->blocks[i];
            if (b->configuration != c || b->node != node || b->replica) continue;
            again += b->again;
            disturbed += (b->disturbed || b->failure) && !b->again;
        }
        if (s->configurations[c].refused || disturbed <= again || disturbed - again <= most) continue;
        most = disturbed - again;
        *configuration = c;
    }
    return most > 0;
}

/* The plan's position on a node: the first block that is neither measured nor refused. Blocks of refused configurations
 * are skipped, so the position is found by counting each configuration's blocks. `of`: one configuration alone, or
 * PRONY_NO_INDEX. */
static bool next_planned(const prony_study *s, size_t planned, size_t node, size_t of, prony_study_task *task,
                         size_t *position)
{
    uint32_t seen[PRN_STUDY_MOST_CONFIGURATIONS] = {0}, done[PRN_STUDY_MOST_CONFIGURATIONS] = {0};
    for (size_t i = 0; i < s->block_count; i++)
        done[s->blocks[i].configuration] += s->blocks[i].node == node && !s->blocks[i].again && !s->blocks[i].replica;
    for (size_t i = 0; i < planned; i++) {
        uint32_t c = s->order[i];
        if (s->order_nodes && s->order_nodes[i] != node) continue;
        if (of != PRONY_NO_INDEX && c != of) continue;
        if (s->configurations[c].refused || seen[c]++ < done[c]) continue;
        *position = i;
        task->configuration = c;
        task->process = (int)done[c];
        return true;
    }
    return false;
}

/* Completes a task of a known configuration and process. */
static void study_plan_fill_task(const prony_study *s, size_t planned, size_t node, prony_study_task *task)
{
    const prn_study_configuration *c = &s->configurations[task->configuration];
    task->intra_op_threads = c->intra_op;
    task->inter_op_threads = c->inter_op;
    task->batch = c->batch;
    task->precision = c->precision;
    task->runs = s->runs;
    task->warmup_runs = s->warmup_runs;
    task->seconds = s->runs && s->budget_seconds <= 0 ? 0 : block_seconds(s, planned, prn_study_lane_of(s, node));
}

bool prony_study_next_of(const prony_study *s, size_t node, size_t configuration, prony_study_task *out)
{
    const size_t planned = planned_blocks(s);
    size_t at;
    prony_study_task task = {.block = s->block_count};
    if (node >= prn_study_node_total(s) || !next_planned(s, planned, node, configuration, &task, &at)) return false;
    study_plan_fill_task(s, planned, node, &task);
    *out = task;
    return true;
}

bool prony_study_next_on(const prony_study *s, size_t node, prony_study_task *out, size_t *position)
{
    size_t planned = planned_blocks(s), at = PRONY_NO_INDEX;
    prony_study_task task = {.block = s->block_count};
    if (node >= prn_study_node_total(s)) return false;
    task.repeated = !next_planned(s, planned, node, PRONY_NO_INDEX, &task, &at);
    if (task.repeated) {
        if (!next_again(s, planned, node, &task.configuration)) return false;
        for (size_t i = 0; i < s->block_count; i++)
            task.process +=
                s->blocks[i].node == node && s->blocks[i].configuration == task.configuration && !s->blocks[i].replica;
    }
    study_plan_fill_task(s, planned, node, &task);
    *out = task;
    if (position) *position = at;
    return true;
}

/* The next task; in a study over nodes that of the first unfinished node. */
bool prony_study_next(const prony_study *s, prony_study_task *out)
{
    for (size_t node = 0; node < prn_study_node_total(s); node++)
        if (prony_study_next_on(s, node, out, NULL)) return true;
    return false;
}

/* The half width estimates the largest relative interval of a median at the end of the plan, from blocks so far. */
void prony_study_progress_of(const prony_study *s, prony_study_progress *out)
{
    double all = 0;
    for (size_t lane = 0; lane < prn_study_lanes(s); lane++) all = fmax(all, spent(s, lane).all);
    *out = (prony_study_progress){.done = prn_study_rounds_done(s), .planned = planned_blocks(s), .half_width = NAN};
    for (size_t i = 0; i < s->block_count; i++) {
        out->failed += s->blocks[i].failure != NULL;
        out->disturbed += s->blocks[i].disturbed != NULL;
        out->planned += s->blocks[i].again && !s->blocks[i].replica;
    }
    prony_study_task task;
    if (out->done >= out->planned) out->planned = out->done + prony_study_next(s, &task);
    size_t left = out->planned - out->done;
    if (out->done) out->seconds_left = all / (double)out->done * (double)left;
    if (s->budget_seconds > 0) out->seconds_left = fmax(0, s->budget_seconds - all);
    size_t of_round = round_blocks(s);
    double rounds = (double)planned_blocks(s) / (double)(of_round ? of_round : 1);
    for (size_t c = 0; c < s->configuration_count; c++) {
        double sum = 0, square = 0, n = 0;
        for (size_t i = 0; i < s->block_count; i++) {
            const prn_study_block *b = &s->blocks[i];
            if (b->configuration != c || b->node != 0 || b->failure || b->disturbed) continue;
            double median = prn_study_block_median(b);
            sum += median;
            square += median * median;
            n++;
        }
        if (n < 3 || rounds < 2) continue;
        double mean = sum / n, deviation = sqrt(fmax(0, square / n - mean * mean) * n / (n - 1));
        double half = 1.25 * prn_student_bound(0.05, rounds - 1) * deviation / sqrt(rounds) / mean; /* of a median */
        if (isnan(out->half_width) || half > out->half_width) out->half_width = half;
    }
}

const char *const *prony_study_arguments(const prony_study *study, size_t *count)
{
    *count = study->argument_count;
    return study->arguments;
}

uint64_t prony_study_seed(const prony_study *study)
{
    return study->seed;
}
