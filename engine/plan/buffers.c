/* Decides which values share bytes, the lifetime of each buffer, and its offset.
 *
 *   views     output is its input's bytes (made while planning steps)
 *   parts     Split's outputs are ranges of its input
 *   joins     Concat's producers write into Concat's output; a Concat whose inputs already lie in a row in another
 *             one's buffer is itself a range of it, so a DenseNet block needs one buffer
 *   in place  an output takes over the bytes of an input at its last use
 *
 * Every value in the arena has one root value; the root's buffer lives from the first definition to the last use of all
 * values in it. With `no_reuse` every value has its own buffer for the whole run. */
#include "engine/plan/buffer_order.h"
#include "base/threads/cancel.h"
#include "engine/plan/plan.h"
#include "engine/plan/workers.h"

#include <string.h>

/* Visited values point directly at the root afterwards, so long chains of views are walked once. */
uint32_t prn_plan_root(const prn_plan *plan, uint32_t value, uint64_t *offset)
{
    uint64_t sum = 0, left;
    uint32_t root = value;
    for (; plan->values[root]->alias != PRN_NO_VALUE; root = plan->values[root]->alias)
        sum += plan->values[root]->alias_offset;
    if (offset) *offset = sum;
    for (left = sum; value != root;) {
        prn_plan_value *walked = plan->values[value];
        uint64_t own = walked->alias_offset;
        value = walked->alias;
        walked->alias = root;
        walked->alias_offset = left;
        left -= own;
    }
    return root;
}

/* true: the value has its own bytes in this plan's arena. */
static bool in_arena(const prn_plan_value *value)
{
    return !value->constant && !value->input && !value->dynamic && value->value.kind == PRONY_TENSOR &&
           value->memory_space == PRN_ON_HOST;
}

static void buffers_use(prn_plan *plan, uint32_t value, uint32_t step)
{
    if (plan->values[value]->last_use < step) plan->values[value]->last_use = step;
}

uint32_t prn_plan_plain(const prn_plan *plan, uint32_t value)
{
    uint32_t v = plan->values[value]->source;
    while (v != PRN_NO_VALUE && !prn_plan_is_plain(plan->values[v])) v = plan->values[v]->variant;
    return v == PRN_NO_VALUE ? value : v;
}

static void find_uses(prn_plan *plan)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        for (size_t i = 0; i < step->context.input_count; i++)
            if (step->inputs[i] != PRN_NO_VALUE) buffers_use(plan, step->inputs[i], s);
        for (size_t k = 0; k < step->context.output_count; k++)
            if (step->outputs[k] != PRN_NO_VALUE) buffers_use(plan, step->outputs[k], s);
        for (uint32_t c = 0; c < step->node->child_count; c++)
            for (uint32_t k = 0; k < step->node->children[c].captured_count; k++)
                buffers_use(plan, prn_plan_plain(plan, step->node->children[c].captured[k]), s);
    }
    for (size_t k = 0; k < plan->program->output_count; k++)
        buffers_use(plan, plan->outputs[k], (uint32_t)plan->step_count);
}

/* ---- slices and joins ---- */

static bool step_gone(const prn_step *step)
{
    return step->node == NULL;
}

/* Removes a step without work from the schedule, without moving the others yet. Its outputs are views. A step with
 * parameters (it joins a constant) stays, so that an operator has them. */
static void drop_step(prn_step *step)
{
    if (step->work.cost.parameters > 0) return;
    if (step->kernel->release) step->kernel->release(step->state);
    step->state = step->context.state = NULL;
    step->node = NULL;
}

static void buffers_make_parts(prn_plan *plan, prn_step *step)
{
    uint64_t offset = 0;
    if (step->inputs[0] == PRN_NO_VALUE || plan->values[step->inputs[0]]->dynamic) return;
    for (size_t k = 0; k < step->context.output_count; k++) {
        bool lies = step->kernel->split_alias(&step->context, k, &offset);
        if (step->outputs[k] == PRN_NO_VALUE) continue;
        /* A join may already contain it; then Split copies it there instead of Concat. */
        if (plan->values[step->outputs[k]]->alias != PRN_NO_VALUE || !lies) return;
    }
    offset = 0;
    for (size_t k = 0; k < step->context.output_count; k++) {
        (void)step->kernel->split_alias(&step->context, k, &offset);
        if (step->outputs[k] == PRN_NO_VALUE) continue;
        prn_plan_value *value = plan->values[step->outputs[k]];
        value->alias = step->inputs[0];
        value->alias_offset = offset;
    }
    drop_step(step);
}

/* true: all inputs already lie in another buffer exactly as the output needs them; *base is the offset. */
static bool inputs_in_a_row(const prn_plan *plan, const prn_step *step, uint32_t *root, uint64_t *base)
{
    uint64_t want = 0;
    for (size_t i = 0; i < step->context.input_count; i++) {
        uint64_t at;
        uint32_t r = prn_plan_root(plan, step->inputs[i], &at);
        if (!step->kernel->concat_alias(&step->context, i, &want) || at < want || !in_arena(plan->values[r]))
            return false;
        if (i == 0) {
            *root = r;
            *base = at - want;
        } else if (r != *root || at - want != *base) {
            return false;
        }
    }
    return step->context.input_count > 0 && *root != step->outputs[0];
}

/* `joined` has a word per value, and never the number of another step. */
static void make_join(prn_plan *plan, prn_step *step, uint32_t *joined)
{
    uint32_t out = step->outputs[0], root = PRN_NO_VALUE;
    uint64_t base = 0;
    prn_plan_value *value = plan->values[out];
    for (size_t i = 0; i < step->context.input_count; i++)
        if (step->inputs[i] == PRN_NO_VALUE) return;
    if (value->alias == PRN_NO_VALUE && inputs_in_a_row(plan, step, &root, &base) &&
        base + value->bytes <= plan->values[root]->bytes) {
        value->alias = root;
        value->alias_offset = base;
        drop_step(step);
        return;
    }
    bool all = true;
    uint64_t want = 0;
    for (size_t i = 0; i < step->context.input_count; i++) {
        uint32_t in = step->inputs[i];
        bool lies = step->kernel->concat_alias(&step->context, i, &want), twice = joined[in] == step->index + 1;
        joined[in] = step->index + 1;
        uint32_t r = prn_plan_root(plan, in, NULL);
        const prn_plan_value *source = plan->values[r];
        /* Only a value that fills its own buffer can move into the output's, and only if it was not moved before. */
        if (twice || !lies || !in_arena(source) || r == prn_plan_root(plan, out, NULL) ||
            source->bytes != plan->values[in]->bytes) {
            all = false;
            continue;
        }
        plan->values[r]->alias = out;
        plan->values[r]->alias_offset = want;
    }
    if (all) drop_step(step);
}

static prony_status share_ranges(prn_plan *plan, prony_error *error)
{
    uint32_t *joined = prn_calloc(plan->value_count + 1, sizeof *joined);
    if (!joined) return prn_no_memory(error);
    for (size_t s = plan->step_count; s-- > 0;) {
        prn_step *step = plan->steps[s];
        step->index = (uint32_t)s;
        if (step->dynamic || !step->kernel || step->kernel->memory_space) continue;
        if (step->kernel->concat_alias && step->context.output_count == 1 && step->outputs[0] != PRN_NO_VALUE)
            make_join(plan, step, joined);
        else if (step->kernel->split_alias)
            buffers_make_parts(plan, step);
    }
    prn_free(joined);
    return PRONY_OK;
}

static void close_ranks(prn_plan *plan)
{
    uint32_t kept = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (step_gone(plan->steps[s])) continue;
        plan->steps[s]->index = kept;
        plan->steps[kept++] = plan->steps[s];
    }
    plan->step_count = kept;
}

/* ---- lifetimes ---- */

typedef struct root_life {
    uint32_t first, last;
} root_life;

static void find_lives(prn_plan *plan, root_life *life)
{
    for (uint32_t v = 0; v < plan->value_count; v++) {
        plan->values[v]->last_use = 0;
        plan->values[v]->defined = PRN_NO_STEP;
        life[v] = (root_life){UINT32_MAX, 0};
    }
    for (uint32_t s = 0; s < plan->step_count; s++)
        for (size_t k = 0; k < plan->steps[s]->context.output_count; k++)
            if (plan->steps[s]->outputs[k] != PRN_NO_VALUE) plan->values[plan->steps[s]->outputs[k]]->defined = s;
    find_uses(plan);
    for (uint32_t v = 0; v < plan->value_count; v++) {
        const prn_plan_value *value = plan->values[v];
        root_life *r = &life[prn_plan_root(plan, v, NULL)];
        if (value->defined != PRN_NO_STEP && value->defined < r->first) r->first = value->defined;
        if (value->last_use > r->last) r->last = value->last_use;
    }
}

/* true: the value has the output's elements, one for one. Sizes do not tell: with padded channels, one broadcast
 * channel is as large as sixteen. */
static bool goes_along(const prony_value *value, const prony_value *out)
{
    return value->layout == PRN_PLAIN || prn_shape_equal(&value->shape, &out->shape);
}

/* true: the output may lie in `root`, whose last use is an input of this step. Every input there must fill the whole
 * buffer and may be overwritten: it is then read element by element with the output. A smaller input (a slice,
 * broadcast) would be read again after it was overwritten. */
static bool may_lie_in(const prn_plan *plan, const prn_step *step, uint32_t root)
{
    for (size_t j = 0; j < step->context.input_count; j++) {
        if (step->inputs[j] == PRN_NO_VALUE || prn_plan_root(plan, step->inputs[j], NULL) != root) continue;
        const prn_plan_value *input = plan->values[step->inputs[j]];
        if (!prn_kernel_may_overwrite(step->kernel, step->context.post_ops, j) ||
            input->bytes != plan->values[root]->bytes || !goes_along(&input->value, step->output_values[0]))
            return false;
    }
    return true;
}

bool prn_plan_stays_in_place(const prn_plan *plan, const prn_step *step)
{
    if (step->context.output_count < 1 || step->outputs[0] == PRN_NO_VALUE) return true;
    const prn_plan_value *out = plan->values[step->outputs[0]];
    if (out->alias == PRN_NO_VALUE || out->dynamic) return true;
    const uint32_t root = prn_plan_root(plan, step->outputs[0], NULL);
    return out->bytes == plan->values[root]->bytes && may_lie_in(plan, step, root);
}

/* Lets outputs reuse an input's bytes if the buffer's last use is this step and both fill it. `uses`: of several
 * workers; NULL: sequential steps. */
static void reuse_in_place(prn_plan *plan, root_life *life, prn_uses *uses)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        if (step->dynamic || !step->kernel || !step->kernel->inplace || step->context.output_count < 1) continue;
        uint32_t out = step->outputs[0];
        if (prn_cancelled()) return; /* like the memory plan, checked often */
        if (out == PRN_NO_VALUE || plan->values[out]->alias != PRN_NO_VALUE || !in_arena(plan->values[out])) continue;
        for (size_t i = 0; i < step->context.input_count; i++) {
            if (!prn_kernel_may_overwrite(step->kernel, step->context.post_ops, i) || step->inputs[i] == PRN_NO_VALUE)
                continue;
            uint64_t offset;
            uint32_t root = prn_plan_root(plan, step->inputs[i], &offset);
            const prn_plan_value *from = plan->values[root];
            if (!in_arena(from) || root == out || offset != 0 || life[root].last != s ||
                from->bytes != plan->values[out]->bytes || !may_lie_in(plan, step, root))
                continue;
            if (uses && !prn_uses_allow(uses, root, out, s)) continue;
            if (uses) prn_uses_merge(uses, root, out);
            /* `out` is a root itself, perhaps of a join: everything in it moves along. */
            plan->values[out]->alias = root;
            plan->values[out]->alias_offset = 0;
            if (life[out].last > life[root].last) life[root].last = life[out].last;
            break;
        }
    }
}

static uint32_t add_buffer(prn_plan *plan, uint64_t bytes, uint32_t first, uint32_t last, uint32_t owner,
                           prn_arena_tag tag)
{
    size_t i = plan->memory.buffer_count++;
    if (plan->options.no_reuse) {
        first = 0;
        last = (uint32_t)plan->step_count;
    }
    plan->memory.buffers[i] = (prn_buffer){.bytes = bytes, .first = first, .last = last};
    plan->memory.owner[i] = owner;
    plan->memory.tag[i] = (uint8_t)tag;
    return (uint32_t)i;
}

static prony_status make_buffers(prn_plan *plan, const root_life *life, prony_error *error)
{
    size_t most = plan->value_count + 2 * plan->step_count + 1;
    plan->memory.buffers = prn_calloc(most, sizeof *plan->memory.buffers);
    plan->memory.owner = prn_calloc(most, sizeof *plan->memory.owner);
    plan->memory.tag = prn_calloc(most, sizeof *plan->memory.tag);
    if (!plan->memory.buffers || !plan->memory.owner || !plan->memory.tag) return prn_no_memory(error);
    for (uint32_t v = 0; v < plan->value_count; v++) {
        prn_plan_value *value = plan->values[v];
        if (value->alias != PRN_NO_VALUE || !in_arena(value) || life[v].first == UINT32_MAX) continue;
        uint32_t last = life[v].last > life[v].first ? life[v].last : life[v].first;
        value->buffer = add_buffer(plan, value->bytes, life[v].first, last, v, PRN_TAG_ACTIVATION);
    }
    for (uint32_t s = 0; s < plan->step_count; s++) {
        prn_step *step = plan->steps[s];
        uint64_t inner = 0;
        if (step->context.scratch_bytes)
            step->memory.scratch_buffer = add_buffer(plan, step->context.scratch_bytes, s, s, s, PRN_TAG_SCRATCH);
        for (uint32_t c = 0; step->children && c < step->node->child_count; c++)
            if (step->children[c] && step->children[c]->memory.figures.planned_bytes > inner)
                inner = step->children[c]->memory.figures.planned_bytes;
        if (inner) step->memory.children_buffer = add_buffer(plan, inner, s, s, s, PRN_TAG_SCRATCH);
    }
    return PRONY_OK;
}

/* Notes the dynamic values that each step releases, because it reads them last. */
static prony_status find_last_uses(prn_plan *plan, prony_error *error)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        prn_step *step = plan->steps[s];
        size_t most = step->context.input_count + step->context.output_count;
        for (uint32_t c = 0; c < step->node->child_count; c++) most += step->node->children[c].captured_count;
        step->memory.last_uses = prn_bump_alloc(&plan->pool, most + 1, sizeof *step->memory.last_uses);
        if (!step->memory.last_uses) return prn_no_memory(error);
    }
    plan->memory.retained = prn_bump_alloc(&plan->pool, plan->value_count + 1, sizeof *plan->memory.retained);
    if (!plan->memory.retained) return prn_no_memory(error);
    for (uint32_t v = 0; v < plan->value_count; v++) {
        const prn_plan_value *value = plan->values[v];
        if (!value->dynamic || value->defined == PRN_NO_STEP) continue;
        if (value->last_use >= plan->step_count || plan->options.no_reuse) {
            plan->memory.retained[plan->memory.retained_count++] = v;
            continue;
        }
        prn_step *step = plan->steps[value->last_use];
        step->memory.last_uses[step->memory.last_use_count++] = v;
    }
    return PRONY_OK;
}

static prony_status plan_one_worker(prn_plan *plan, root_life *life, prony_error *error)
{
    if (!plan->options.no_reuse) reuse_in_place(plan, life, NULL);
    PRN_TRY(make_buffers(plan, life, error));
    return prn_memory_plan(plan->memory.buffers, plan->memory.buffer_count, (uint32_t)plan->step_count + 1,
                           PRN_ARENA_ALIGNMENT, &plan->memory.figures, error);
}

static prony_status plan_workers(prn_plan *plan, root_life *life, prony_error *error)
{
    prn_uses uses;
    if (plan->options.no_reuse) return plan_one_worker(plan, life, error);
    PRN_TRY(prn_uses_find(&uses, plan, error));
    reuse_in_place(plan, life, &uses);
    prony_status status = make_buffers(plan, life, error);
    if (status == PRONY_OK) status = prn_plan_memory_by(plan, &uses, PRN_ARENA_ALIGNMENT, error);
    prn_uses_free(&uses);
    return status;
}

/* Several workers and one worker may differ in in-place outputs; this keeps the aliases before either choice. */
typedef struct former_alias {
    uint32_t alias;
    uint64_t offset;
} former_alias;

static void undo_buffers(prn_plan *plan, const former_alias *former)
{
    prn_free(plan->memory.buffers);
    prn_free(plan->memory.owner);
    prn_free(plan->memory.tag);
    plan->memory.buffers = NULL;
    plan->memory.owner = NULL;
    plan->memory.tag = NULL;
    plan->memory.buffer_count = 0;
    for (uint32_t v = 0; v < plan->value_count; v++) {
        plan->values[v]->alias = former[v].alias;
        plan->values[v]->alias_offset = former[v].offset;
        plan->values[v]->buffer = PRN_NO_BUFFER;
    }
    for (uint32_t s = 0; s < plan->step_count; s++)
        plan->steps[s]->memory.scratch_buffer = plan->steps[s]->memory.children_buffer = PRN_NO_BUFFER;
}

static prony_status buffers_plan_again(prn_plan *plan, root_life *life, const former_alias *former,
                                       prony_status (*with)(prn_plan *plan, root_life *life, prony_error *error),
                                       prony_error *error)
{
    undo_buffers(plan, former);
    find_lives(plan, life);
    return with(plan, life, error);
}

/* If the plan chooses the number of workers, plans both and compares their memory. */
static prony_status plan_either(prn_plan *plan, root_life *life, prony_error *error)
{
    former_alias *former = prn_calloc(plan->value_count + 1, sizeof *former);
    if (!former) return prn_no_memory(error);
    for (uint32_t v = 0; v < plan->value_count; v++)
        former[v] = (former_alias){plan->values[v]->alias, plan->values[v]->alias_offset};
    prony_status status = plan_one_worker(plan, life, error);
    uint64_t one_bytes = plan->memory.figures.planned_bytes;
    if (status == PRONY_OK) status = buffers_plan_again(plan, life, former, plan_workers, error);
    if (status == PRONY_OK && !prn_plan_affords_workers(plan, one_bytes, plan->memory.figures.planned_bytes)) {
        prn_plan_drop_workers(plan);
        status = buffers_plan_again(plan, life, former, plan_one_worker, error);
    }
    prn_free(former);
    return status;
}

prony_status prn_plan_buffers(prn_plan *plan, prony_error *error)
{
    if (!plan->options.no_reuse && !plan->options.follows) PRN_TRY(share_ranges(plan, error));
    PRN_TRY(prn_plan_choose_workers(plan, close_ranks, error));
    root_life *life = prn_calloc(plan->value_count + 1, sizeof *life);
    if (!life) return prn_no_memory(error);
    find_lives(plan, life);
    prony_status status = !plan->parallel.graph                       ? plan_one_worker(plan, life, error)
                          : plan->options.workers == PRN_WORKERS_AUTO ? plan_either(plan, life, error)
                                                                      : plan_workers(plan, life, error);
    if (status == PRONY_OK) status = find_last_uses(plan, error);
    prn_free(life);
    return status;
}

/* Sets pointers of values, scratch and subgraphs. User-bound roots point at the user's bytes instead of the arena. */
void prn_plan_point(prn_plan *plan, uint8_t *base)
{
    plan->memory.base = base;
    for (uint32_t v = 0; v < plan->value_count; v++) {
        prn_plan_value *value = plan->values[v];
        uint64_t offset;
        uint32_t root = prn_plan_root(plan, v, &offset);
        const prn_plan_value *owner = plan->values[root];
        if (owner->buffer != PRN_NO_BUFFER)
            value->value.data =
                (owner->user_bytes ? (uint8_t *)owner->user_bytes : base + plan->memory.buffers[owner->buffer].offset) +
                offset;
        else if (root != v && owner->value.data)
            value->value.data = (uint8_t *)owner->value.data + offset;
    }
    for (uint32_t s = 0; s < plan->step_count; s++) {
        prn_step *step = plan->steps[s];
        step->context.scratch = step->memory.scratch_buffer == PRN_NO_BUFFER
                                    ? prn_no_bytes()
                                    : base + plan->memory.buffers[step->memory.scratch_buffer].offset;
        for (uint32_t c = 0; step->children && c < step->node->child_count; c++)
            if (step->children[c])
                prn_plan_point(step->children[c],
                               base + (step->memory.children_buffer == PRN_NO_BUFFER
                                           ? 0
                                           : plan->memory.buffers[step->memory.children_buffer].offset));
    }
}
