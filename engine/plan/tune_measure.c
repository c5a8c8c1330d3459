/* Runs the candidate kernels of a step in turns, on own data: the step's shapes, threads and constants, and random
 * activations. The plan is not changed: data packed for a trial is released with it. */
#include "base/os/clock.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "engine/bind/registry.h"
#include "engine/plan/plan.h"
#include "engine/plan/tune.h"

#include <string.h>

enum {
    REORDER_ROUNDS = 5,
    TOO_SLOW = 4,               /* a kernel so many times slower than the fastest is not measured further; chosen
                                   without measurement */
    SWEEP_BYTES = 4 << 20,      /* more than a core's private caches */
    SMALL_MODEL_BYTES = 1 << 20 /* bytes of weights that stay in these caches */
};
#define PROBLEM_NS INT64_C(60000000)  /* time for rounds beyond the least number; chosen without measurement */
#define LEAST_SLOW_NS INT64_C(100000) /* in shorter runs slowness may be chance; chosen without measurement */

typedef struct trial {
    const prn_kernel *kernel;
    prn_layout *layouts; /* of inputs, then of outputs */
    prony_value *values; /* likewise */
    const prony_value **inputs;
    prony_value **outputs;
    prony_context context;
    prn_node_environment site;
    prn_packings once;
    prn_prepared prepared;
    bool open, failed;
    int64_t reorder_ns;
    prony_error error;
} trial;

typedef struct bench {
    prn_plan *plan;
    prn_step *step;
    trial *trials;
    size_t count;
    void **blocks; /* of inputs, then of outputs: for the largest of all layouts; NULL: a constant's own */
    size_t *bytes;
    void *sweep; /* NULL: caches are left as they are */
    prn_bump pool;
    prn_weight_cache_refs held;
    int64_t *times; /* [count][PRN_TUNE_MOST_ROUNDS] */
    size_t *rounds;
} bench;

/* ---- data ---- */

static bool is_constant(const bench *b, size_t i)
{
    return i < b->step->context.input_count && b->step->inputs[i] != PRN_NO_VALUE &&
           b->plan->values[b->step->inputs[i]]->constant;
}

/* The value of an input, then output; NULL: omitted. */
static const prony_value *operand(const bench *b, size_t i)
{
    const prony_context *context = &b->step->context;
    return i < context->input_count ? context->inputs[i] : context->outputs[i - context->input_count];
}

static size_t operands(const bench *b)
{
    return b->step->context.input_count + b->step->context.output_count;
}

static prony_status take_blocks(bench *b, prony_error *error)
{
    for (size_t i = 0; i < operands(b); i++) {
        if (!operand(b, i) || is_constant(b, i)) continue;
        for (size_t k = 0; k < b->count; k++) {
            const size_t bytes = prn_layout_bytes(&b->trials[k].values[i]);
            if (bytes == SIZE_MAX) return prn_no_memory(error);
            if (bytes > b->bytes[i]) b->bytes[i] = bytes;
        }
        b->blocks[i] = prn_alloc_aligned(64, b->bytes[i] + 64);
        if (!b->blocks[i]) return prn_no_memory(error);
        prn_tune_fill(b->blocks[i], b->bytes[i], operand(b, i)->dtype);
        for (size_t k = 0; k < b->count; k++) b->trials[k].values[i].data = b->blocks[i];
    }
    return PRONY_OK;
}

/* Pins deferred weights while they are packed here. */
static prony_status tune_measure_hold_constants(bench *b, prony_error *error)
{
    for (size_t i = 0; i < b->step->context.input_count; i++)
        if (is_constant(b, i))
            PRN_TRY(prn_weight_cache_pin(b->plan->program->model->shared, &b->held,
                                         b->plan->values[b->step->inputs[i]]->shared, b->step->context.threads, error));
    return PRONY_OK;
}

static void sweep_part(void *argument, int64_t task)
{
    unsigned char *part = (unsigned char *)argument + task * SWEEP_BYTES;
    for (size_t i = 0; i < SWEEP_BYTES; i += 64) part[i]++;
}

/* Sweeps the caches, then reads the inputs. In a network other layers ran since a layer's weights were last read, and
 * its input has just been made. */
static void cool(const bench *b)
{
    volatile unsigned char seen = 0;
    if (!b->sweep) return;
    prn_parallel_tasks(b->step->context.threads, b->step->context.threads, sweep_part, b->sweep);
    for (size_t i = 0; i < b->step->context.input_count; i++)
        for (size_t at = 0; b->blocks[i] && at < b->bytes[i] && at < SWEEP_BYTES / 4; at += 64)
            seen ^= ((unsigned char *)b->blocks[i])[at];
    (void)seen;
}

/* ---- trials ---- */

/* Makes the plan's context, with other bytes. */
static prony_status tune_measure_lay_out(bench *b, trial *t, const prn_kernel *kernel, prony_error *error)
{
    const prony_context *from = &b->step->context;
    const size_t all = operands(b), in_count = from->input_count;
    t->kernel = kernel;
    t->layouts = prn_bump_alloc(&b->pool, all + 1, sizeof *t->layouts);
    t->values = prn_bump_alloc(&b->pool, all + 1, sizeof *t->values);
    t->inputs = prn_bump_alloc(&b->pool, in_count + 1, sizeof *t->inputs);
    t->outputs = prn_bump_alloc(&b->pool, from->output_count + 1, sizeof *t->outputs);
    if (!t->layouts || !t->values || !t->inputs || !t->outputs) return prn_no_memory(error);
    if (kernel->layouts) kernel->layouts(from, t->layouts, t->layouts + in_count);
    for (size_t i = 0; i < all; i++) {
        const prony_value *value = operand(b, i);
        if (!value) continue;
        t->values[i] = *value;
        t->values[i].layout = (uint8_t)t->layouts[i];
        if (i < in_count)
            t->inputs[i] = &t->values[i];
        else
            t->outputs[i - in_count] = &t->values[i];
    }
    t->site = (prn_node_environment){.program = b->plan->program, .node = b->step->node, .once = &t->once};
    t->context = *from;
    t->context.inputs = t->inputs;
    t->context.outputs = t->outputs;
    t->context.services_data = &t->site;
    t->context.error = &t->error;
    t->context.state = NULL;
    t->context.scratch = prn_no_bytes();
    t->context.scratch_bytes = 0;
    return PRONY_OK;
}

static void open_trial(trial *t)
{
    prony_status status = t->kernel->prepare ? t->kernel->prepare(&t->context, &t->prepared) : PRONY_OK;
    t->failed = status != PRONY_OK;
    if (t->failed) return;
    t->open = true;
    t->context.state = t->prepared.state;
    t->context.scratch_bytes = t->prepared.scratch_bytes;
    if (!t->prepared.scratch_bytes) return;
    t->context.scratch = prn_alloc_aligned(64, t->prepared.scratch_bytes);
    if (t->context.scratch) return;
    t->context.scratch = prn_no_bytes();
    t->context.scratch_bytes = 0;
    t->failed = true;
    (void)prn_no_memory(&t->error);
}

static void close_trial(trial *t)
{
    if (t->open && t->kernel->release) t->kernel->release(t->prepared.state);
    if (t->context.scratch_bytes) prn_free_aligned(t->context.scratch);
    for (size_t i = 0; i < t->once.count; i++) prn_free_aligned(t->once.blocks[i]);
    prn_free(t->once.blocks);
    t->once = (prn_packings){0};
    t->open = false;
    t->context.scratch_bytes = 0;
}

static int64_t run_trial(trial *t)
{
    const int64_t start = prn_now_ns();
    if (t->kernel->run(&t->context) != PRONY_OK) t->failed = true;
    return prn_now_ns() - start;
}

/* ---- reorders ---- */

/* Times the reorder of a value of this type between two layouts. An impossible one takes infinite time. */
static prony_status time_reorder(bench *b, const prony_value *like, prn_layout from, prn_layout to, int64_t *out,
                                 prony_error *error)
{
    static const prn_attr_list no_attributes = {NULL, 0};
    const prony_node info = {
        .op_type = "Reorder", .name = "reorder", .domain = "prony", .opset = 1, .attributes = &no_attributes};
    const prn_operator_binding binding = prn_registry_find(NULL, "prony", "Reorder", 1);
    prony_value a = *like, c = *like, *outputs[1] = {&c};
    const prony_value *inputs[1] = {&a};
    trial t = {.context = b->step->context};
    int64_t times[REORDER_ROUNDS];
    *out = INT64_MAX / 4;
    a.layout = (uint8_t)from;
    c.layout = (uint8_t)to;
    t.context.node = &info;
    t.context.params = NULL;
    t.context.post_ops = NULL;
    t.context.user = NULL;
    t.context.constant_inputs = 0;
    t.context.inputs = inputs;
    t.context.outputs = outputs;
    t.context.input_count = t.context.output_count = 1;
    t.site = (prn_node_environment){.program = b->plan->program, .once = &t.once};
    t.context.services_data = &t.site;
    t.context.error = &t.error;
    t.context.state = NULL;
    t.context.scratch = prn_no_bytes();
    t.context.scratch_bytes = 0;
    a.data = prn_alloc_aligned(64, prn_layout_bytes(&a) + 64);
    c.data = prn_alloc_aligned(64, prn_layout_bytes(&c) + 64);
    t.kernel = a.data && c.data && binding.op ? prn_op_kernel(binding.op, &t.context, false, NULL) : NULL;
    if (t.kernel) {
        prn_tune_fill(a.data, prn_layout_bytes(&a), a.dtype);
        open_trial(&t);
        if (!t.failed) (void)run_trial(&t);
        for (size_t r = 0; r < REORDER_ROUNDS && !t.failed; r++) times[r] = run_trial(&t);
        if (!t.failed) *out = prn_tune_median(times, REORDER_ROUNDS);
        close_trial(&t);
    }
    prn_free_aligned(a.data);
    prn_free_aligned(c.data);
    return prn_cancel_check(error);
}

/* true: the plan already has this form of the value. */
static bool tune_measure_has_form(const prn_plan *plan, uint32_t value, prn_layout layout)
{
    for (uint32_t v = plan->values[value]->source; v != PRN_NO_VALUE; v = plan->values[v]->variant)
        if (plan->values[v]->value.layout == (uint8_t)layout && plan->values[v]->memory_space == PRN_ON_HOST)
            return true;
    return false;
}

/* Inputs: reorders from the producers' layouts. Outputs: reorders to the default kernel's layout, which later steps
 * expect. A kernel with another layout pays for this reorder, even if a later step would not need it. */
static prony_status count_reorders(bench *b, trial *t, prony_error *error)
{
    const size_t in_count = b->step->context.input_count;
    for (size_t i = 0; i < operands(b); i++) {
        const prony_value *value = operand(b, i);
        if (!value || is_constant(b, i)) continue;
        const prn_layout have = i < in_count ? (prn_layout)value->layout : t->layouts[i];
        const prn_layout want = i < in_count ? t->layouts[i] : b->trials[0].layouts[i];
        if (have == want || prn_layout_same_bytes(&value->shape, have, want)) continue;
        if (i < in_count && tune_measure_has_form(b->plan, b->step->inputs[i], want)) continue;
        int64_t ns = 0;
        PRN_TRY(time_reorder(b, value, have, want, &ns, error));
        t->reorder_ns += ns;
    }
    return PRONY_OK;
}

/* ---- rounds ---- */

/* Untimed first runs touch all pages and drop hopeless kernels. */
static prony_status tune_measure_warm_up(bench *b, bool *slow, int64_t *first, prony_error *error)
{
    int64_t fastest = INT64_MAX;
    for (size_t k = 0; k < b->count; k++) {
        trial *t = &b->trials[k];
        open_trial(t);
        if (!t->failed) (void)run_trial(t);
        if (!t->failed) first[k] = run_trial(t) + t->reorder_ns;
        PRN_TRY(prn_cancel_check(error));
        if (!t->failed && first[k] < fastest) fastest = first[k];
    }
    for (size_t k = 1; k < b->count; k++) slow[k] = first[k] > LEAST_SLOW_NS && first[k] / TOO_SLOW > fastest;
    return PRONY_OK;
}

static prony_status take_rounds(bench *b, const bool *slow, prony_error *error)
{
    const prn_tuning *tuning = b->plan->options.tuning;
    const int64_t start = prn_now_ns();
    for (size_t r = 0; r < PRN_TUNE_MOST_ROUNDS; r++) {
        const int64_t spent = prn_now_ns() - start;
        if (r >= PRN_TUNE_LEAST_ROUNDS && spent > PROBLEM_NS) break;
        if (r > 0 && tuning->spent_ns + spent > tuning->most_ns) break;
        for (size_t k = 0; k < b->count; k++) {
            trial *t = &b->trials[k];
            if (t->failed || slow[k]) continue;
            cool(b);
            b->times[k * PRN_TUNE_MOST_ROUNDS + r] = run_trial(t) + t->reorder_ns;
            PRN_TRY(prn_cancel_check(error));
            b->rounds[k] = r + 1;
        }
    }
    return PRONY_OK;
}

static prony_status keep_trials(const bench *b, const int64_t *first, prn_tune_row *row, prony_error *error)
{
    prn_bump *pool = &b->plan->options.tuning->pool;
    prn_tune_trial *trials = prn_bump_alloc(pool, b->count, sizeof *trials);
    if (!trials) return prn_no_memory(error);
    for (size_t k = 0; k < b->count; k++) {
        const trial *t = &b->trials[k];
        trials[k] = (prn_tune_trial){.kernel = t->kernel->name, .time_ns = -1, .reorder_ns = t->reorder_ns};
        const int64_t *times = b->times + k * PRN_TUNE_MOST_ROUNDS;
        if (!t->failed)
            trials[k].time_ns = (b->rounds[k] ? prn_tune_median(times, b->rounds[k]) : first[k]) - t->reorder_ns;
        if (!t->failed) continue;
        trials[k].failure =
            prn_bump_strndup(pool, t->error.message, strlen(t->error.message) < 200 ? strlen(t->error.message) : 200);
        if (!trials[k].failure) return prn_no_memory(error);
    }
    row->trials = trials;
    row->trial_count = b->count;
    return PRONY_OK;
}

static prony_status tune_measure_measure(bench *b, const prn_kernel *const *kernels, prn_tune_row *row,
                                         prony_error *error)
{
    bool slow[PRN_TUNE_MOST_KERNELS] = {false};
    int64_t first[PRN_TUNE_MOST_KERNELS] = {0};
    const int threads = b->step->context.threads;
    for (size_t k = 0; k < b->count; k++) PRN_TRY(tune_measure_lay_out(b, &b->trials[k], kernels[k], error));
    for (size_t k = 0; k < b->count; k++) PRN_TRY(count_reorders(b, &b->trials[k], error));
    PRN_TRY(take_blocks(b, error));
    PRN_TRY(tune_measure_hold_constants(b, error));
    if (b->plan->program->weight_bytes > SMALL_MODEL_BYTES) b->sweep = prn_calloc((size_t)threads, SWEEP_BYTES);
    PRN_TRY(tune_measure_warm_up(b, slow, first, error));
    PRN_TRY(take_rounds(b, slow, error));
    row->kernel = kernels[prn_tune_choose(b->times, PRN_TUNE_MOST_ROUNDS, b->rounds, b->count)]->name;
    return keep_trials(b, first, row, error);
}

prony_status prn_tune_measure(prn_plan *plan, prn_step *step, const prn_kernel *const *kernels, size_t count,
                              prn_tune_row *row, prony_error *error)
{
    bench b = {.plan = plan, .step = step, .count = count};
    b.trials = prn_calloc(count, sizeof *b.trials);
    b.blocks = prn_calloc(operands(&b), sizeof *b.blocks);
    b.bytes = prn_calloc(operands(&b), sizeof *b.bytes);
    b.times = prn_calloc(count, PRN_TUNE_MOST_ROUNDS * sizeof *b.times);
    b.rounds = prn_calloc(count, sizeof *b.rounds);
    const bool made = b.trials && b.blocks && b.bytes && b.times && b.rounds;
    prony_status status = made ? tune_measure_measure(&b, kernels, row, error) : prn_no_memory(error);
    for (size_t k = 0; b.trials && k < count; k++) close_trial(&b.trials[k]);
    for (size_t i = 0; b.blocks && i < operands(&b); i++)
        if (b.blocks[i]) prn_free_aligned(b.blocks[i]);
    prn_weight_cache_drop(plan->program->model->shared, &b.held);
    prn_free(b.sweep);
    prn_free(b.trials);
    prn_free(b.blocks);
    prn_free(b.bytes);
    prn_free(b.times);
    prn_free(b.rounds);
    prn_bump_release(&b.pool);
    return status;
}
