/* The measurements of one process: the process writes JSON; the study reads it into a block and tests for disturbance
 * of the machine.
 */
#include "profiler/study/study_keys.h"

#include "base/os/machine_state.h"

#include <math.h>
#include <string.h>

#define DISTURBED_OTHERS 0.05 /* share of the processors; chosen without measurement */
#define DISTURBED_STEAL 0.01
#define CHANGE_LEAST 0.03 /* least change of the median that counts as a change of level; chosen without measurement */

/* ---- written by the process ---- */

static int compare_starts(const void *left, const void *right)
{
    const prony_thread_share *a = left, *b = right;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static prn_study_operator_time study_sample_sum_threads(const prony_operator_row *row)
{
    prn_study_operator_time part = {.time_ns = row->time.median_ns};
    const prony_thread_share *first = NULL;
    for (size_t i = 0; i < row->thread_share_count; i++) {
        const prony_thread_share *share = &row->thread_shares[i];
        part.tasks += share->tasks;
        part.members += share->tasks > 0;
        part.busy_ns += share->busy_ns;
        if (share->busy_ns > part.longest_ns) part.longest_ns = share->busy_ns;
        if (!first || compare_starts(share, first) < 0) first = share;
    }
    for (size_t i = 0; i < row->thread_share_count && part.members > 1; i++)
        if (&row->thread_shares[i] != first)
            part.wake_ns += (row->thread_shares[i].start_ns - first->start_ns) / (part.members - 1);
    return part;
}

static prony_status find_path(bool *on_path, const prony_report *r, prony_error *error)
{
    uint32_t *chain = NULL;
    size_t count = 0;
    int64_t time;
    prony_status status = prony_report_critical_path(&chain, &count, &time, r, error);
    if (status != PRONY_OK && status != PRONY_UNSUPPORTED) return status;
    for (size_t i = 0; i < r->operator_count && status != PRONY_OK; i++) on_path[i] = true;
    for (size_t i = 0; i < count && status == PRONY_OK; i++) on_path[chain[i]] = true;
    prony_rows_release(chain);
    return PRONY_OK;
}

static void take_operators(prn_study_sample *sample, const prony_report *r, const bool *on_path)
{
    sample->operator_count = r->operator_count;
    for (size_t i = 0; i < r->operator_count; i++) {
        const prony_operator_row *row = &r->operators[i];
        sample->operators[i].what = (prn_study_operator){row->name,
                                                         row->op,
                                                         row->kernel,
                                                         (uint64_t)prn_operator_flops(row),
                                                         (uint64_t)prn_operator_bytes(row),
                                                         (uint64_t)prn_operator_fact(row, "bf16_products"),
                                                         on_path[i]};
        sample->operators[i].measured = study_sample_sum_threads(row);
    }
}

prony_status prony_study_sample_write(const prony_report *latency, const prony_report *operators, prony_write_fn write,
                                      void *user, prony_error *error)
{
    if (!latency || !write || !latency->measured)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "prony_study_sample_write: an argument is NULL, or nothing was measured");
    size_t count = operators ? operators->operator_count : 0;
    prn_study_sample sample = {.batch = latency->config.batch,
                               .warmup_runs = latency->config.warmup_runs,
                               .warmup_detected = latency->warmup_detected,
                               .involuntary_switches = latency->cpu.involuntary_switches,
                               .samples_ns = latency->samples_ns,
                               .sample_count = (size_t)latency->latency.count};
    bool *on_path = prn_calloc(count + 1, sizeof *on_path);
    if (operators) sample.operators = prn_calloc(count + 1, sizeof *sample.operators);
    prony_status status = on_path && (!operators || sample.operators) ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK && operators) status = find_path(on_path, operators, error);
    if (status == PRONY_OK && operators) take_operators(&sample, operators, on_path);
    if (status == PRONY_OK)
        status = prn_keys_write_document(PRN_STUDY_SCHEMA, prn_study_sample_keys, &(prn_at){.row = &sample}, write,
                                         user, error);
    prn_free(on_path);
    prn_free(sample.operators);
    return status;
}

/* ---- read by the study ---- */

/* A node may run other kernels than the first one that measured a configuration. With another number of operators its
 * block has none; only the samples are comparable. */
static void keep_operators(prn_json_reader *j, const prony_study *s, const prn_study_sample *sample,
                           prn_study_configuration *c, prn_study_block *b)
{
    size_t count = sample->operator_count;
    if (count == 0) return;
    if (c->operators && c->operator_count != count && s->node_count) return; /* a node with other instruction sets */
    if (c->operators && c->operator_count != count) {
        prn_json_bad(j, "operators", "%zu operators, but other processes of this configuration had %zu", count,
                     c->operator_count);
        return;
    }
    prn_study_operator *operators = prn_json_room(j, count, sizeof *operators);
    b->parts = prn_json_room(j, count, sizeof *b->parts);
    if (!operators || !b->parts) return;
    for (size_t i = 0; i < count; i++) {
        operators[i] = sample->operators[i].what;
        b->parts[i] = sample->operators[i].measured;
    }
    if (c->operators) return;
    c->operators = operators;
    c->operator_count = count;
}

static prony_status read_sample(prony_study *s, prn_study_block *b, const prony_study_process *p, prony_error *error)
{
    prn_json_value *root = NULL;
    prn_study_sample sample = {.batch = 0};
    PRN_TRY(prn_json_document_parse(&root, "a process of the study", p->sample, p->sample_bytes, error));
    prn_json_reader j = {.pool = &s->pool, .file = "a process of the study", .error = error};
    prn_study_configuration *c = &s->configurations[b->configuration];
    prn_keys_read(&j, root, prn_study_sample_keys, &(prn_at){.row = &sample});
    prn_json_document_release(root);
    b->warmup_runs = sample.warmup_runs;
    b->warmup_detected = sample.warmup_detected;
    b->involuntary_switches = sample.involuntary_switches;
    b->samples_ns = sample.samples_ns;
    b->sample_count = sample.sample_count;
    if (j.status == PRONY_OK) keep_operators(&j, s, &sample, c, b);
    if (j.status == PRONY_OK && b->sample_count == 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "the process measured nothing");
    if (j.status == PRONY_OK) c->samples = sample.batch > 0 ? sample.batch : 1;
    return j.status;
}

void prn_study_judge_block(prn_study_block *b)
{
    prn_machine_shares shares = prn_machine_shares_between(&b->before, &b->after, b->cpu_ns);
    b->others = shares.others < 0 ? NAN : shares.others;
    b->steal = shares.steal < 0 ? NAN : shares.steal;
    b->disturbed = NULL;
    if (b->failure) return;
    size_t at[8];
    if (prn_change_points(at, 8, &b->changes, b->samples_ns, b->sample_count, CHANGE_LEAST, NULL) != PRONY_OK)
        b->changes = 0;
    if (b->others > DISTURBED_OTHERS)
        b->disturbed = "other processes";
    else if (b->steal > DISTURBED_STEAL)
        b->disturbed = "steal";
    else if (b->before.throttle_events >= 0 && b->after.throttle_events > b->before.throttle_events)
        b->disturbed = "throttling";
    else if (b->changes)
        b->disturbed = "level changed";
}

prony_status prony_study_add(prony_study *s, const prony_study_task *task, const prony_study_process *process,
                             prony_error *error)
{
    return prony_study_add_on(s, 0, task, process, error);
}

prony_status prony_study_add_on(prony_study *s, size_t node, const prony_study_task *task,
                                const prony_study_process *process, prony_error *error)
{
    return prony_study_add_replicas(s, node, task, process, 1, error);
}

/* Adds a block, also for a failed process. A damaged sample counts as a failure. */
static prony_status study_sample_add_block(prony_study *s, size_t node, const prony_study_task *task,
                                           const prony_study_process *process, int replica, prony_error *error)
{
    if (!s || !task || !process || (!process->sample && !process->failure) ||
        task->configuration >= s->configuration_count || node >= prn_study_node_total(s))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "prony_study_add: an argument is NULL, or the task is not from this study");
    if (!PRN_GROW(s->blocks, s->block_capacity, s->block_count + 1)) return prn_no_memory(error);
    prn_study_block *b = &s->blocks[s->block_count];
    *b = (prn_study_block){.configuration = task->configuration,
                           .node = node,
                           .replica = replica,
                           .process = task->process,
                           .again = task->repeated,
                           .before = process->before,
                           .after = process->after,
                           .cpu_ns = process->cpu_ns};
    const char *failure = process->failure;
    prony_error damaged = {0};
    if (!failure && read_sample(s, b, process, &damaged) != PRONY_OK) {
        failure = damaged.message;
        b->sample_count = 0;
        b->parts = NULL;
    }
    if (failure && !(b->failure = prn_bump_strndup(&s->pool, failure, strlen(failure)))) return prn_no_memory(error);
    if (failure && process->refused) s->configurations[task->configuration].refused = b->failure;
    prn_study_judge_block(b);
    s->block_count++;
    s->analysed = false;
    return PRONY_OK;
}

/* Adds one block per replica, in order; a failed round is one block. Damaged data of a replica fails its round, whose
 * blocks are removed, because rounds are complete. */
prony_status prony_study_add_replicas(prony_study *s, size_t node, const prony_study_task *task,
                                      const prony_study_process *processes, size_t count, prony_error *error)
{
    if (!s || !task || !processes || task->configuration >= s->configuration_count || count < 1)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "prony_study_add: an argument is NULL, or the task is not from this study");
    for (size_t i = 0; i < count; i++)
        if (processes[i].failure) return study_sample_add_block(s, node, task, &processes[i], 0, error);
    if (count != (size_t)prn_study_replicas(&s->configurations[task->configuration]))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_study_add: %zu processes, but the configuration has %d",
                        count, prn_study_replicas(&s->configurations[task->configuration]));
    const size_t begin = s->block_count;
    for (size_t i = 0; i < count; i++) {
        PRN_TRY(study_sample_add_block(s, node, task, &processes[i], (int)i, error));
        if (!s->blocks[begin + i].failure || i == 0) {
            if (s->blocks[begin].failure) return PRONY_OK;
            continue;
        }
        s->blocks[begin] = s->blocks[begin + i];
        s->blocks[begin].replica = 0;
        s->block_count = begin + 1;
        return PRONY_OK;
    }
    return PRONY_OK;
}
