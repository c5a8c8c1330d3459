/* Losses of scaling: each operator at each thread count against the serial baseline, with the measured reason, and the
 * upper bound of the speed-up on this machine.
 *
 * An operator's times are medians over the processes. profiler/report/reasons.c finds the reasons.
 */
#include "profiler/report/reasons.h"
#include "profiler/study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Median over the processes of one value of an operator; -1: not traced. */
static double study_scaling_figure_of(const prony_study *s, size_t configuration, size_t operator, size_t offset,
                                      double *room, const prn_study_block **blocks)
{
    size_t count = prn_study_blocks_of(s, configuration, blocks), known = 0;
    for (size_t i = 0; i < count; i++) {
        if (!blocks[i]->parts || operator>= s->configurations[configuration].operator_count) continue;
        int64_t value;
        memcpy(&value, (const char *)&blocks[i]->parts[operator] + offset, sizeof value);
        room[known++] = (double)value;
    }
    return known ? prn_median(room, known) : -1;
}

#define FIGURE(s, configuration, operator, field, room, blocks)                                                        \
    study_scaling_figure_of((s), (configuration), (operator), offsetof(prn_study_operator_time, field), (room),        \
                            (blocks))

static double mean_frequency(const prn_study_block **blocks, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += blocks[i]->after.frequency_hz / (double)count;
    return sum;
}

static double mean_others(const prn_study_block **blocks, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += isnan(blocks[i]->others) ? 0 : blocks[i]->others / (double)count;
    return sum;
}

/* The operator's roof time on `threads` threads, ns; 0: not known. */
static double roof_of(const prony_study *s, const prn_study_operator *operator, int threads, bool *compute)
{
    prony_report view = *s->manifest;
    prony_operator_row row = {.layer_count = 1};
    view.config.intra_op_threads = threads;
    row.cost.flops = operator->flops;
    row.cost.bytes_read = operator->bytes;
    const prony_fact products = {"bf16_products", (int64_t)operator->bf16_products };
    row.kernel_facts = &products;
    row.kernel_fact_count = 1;
    return s->manifest->has_roof ? prn_operator_roof_ns(&view, &row, compute) : 0;
}

typedef struct scene {
    prony_study *s;
    size_t configuration, baseline;
    double *room;
    const prn_study_block **blocks;
} scene;

/* Collects the medians over processes that prn_thread_reason needs. */
static const char *reason_of(const scene *at, size_t o, const prn_study_loss *loss)
{
    prony_study *s = at->s;
    size_t c = at->configuration;
    int threads = s->configurations[c].intra_op;
    double tasks = FIGURE(s, c, o, tasks, at->room, at->blocks),
           members = FIGURE(s, c, o, members, at->room, at->blocks);
    double busy = FIGURE(s, c, o, busy_ns, at->room, at->blocks),
           longest = FIGURE(s, c, o, longest_ns, at->room, at->blocks);
    double wake = FIGURE(s, c, o, wake_ns, at->room, at->blocks);
    bool compute = true;
    double roof = roof_of(s, &s->configurations[c].operators[o], threads, &compute);
    size_t count = prn_study_blocks_of(s, c, at->blocks);
    double others = mean_others(at->blocks, count), clock = mean_frequency(at->blocks, count);
    count = prn_study_blocks_of(s, at->baseline, at->blocks);
    double clock_before = mean_frequency(at->blocks, count);
    const prn_thread_facts facts = {.threads = threads,
                                    .tasks = tasks,
                                    .members = members,
                                    .busy_ns = busy,
                                    .longest_ns = longest,
                                    .wake_ns = wake,
                                    .time_ns = loss->time_ns,
                                    .serial_ns = loss->serial_ns,
                                    .lost_ns = loss->lost_ns,
                                    .bandwidth_ns = compute ? 0 : roof,
                                    .clock_ratio = clock > 0 && clock_before > 0 ? clock / clock_before : 0,
                                    .others = others};
    return prn_thread_reason(&facts);
}

static int study_scaling_by_loss(const void *left, const void *right)
{
    const prn_study_loss *a = left, *b = right;
    if (a->configuration != b->configuration) return a->configuration < b->configuration ? -1 : 1;
    return (a->lost_ns < b->lost_ns) - (a->lost_ns > b->lost_ns);
}

/* The loss is the time beyond the serial time divided by the threads (weak scaling: times the work). Sorted, the
 * largest first. */
prony_status prn_study_find_losses(prony_study *s, prony_error *error)
{
    size_t most = 0;
    for (size_t i = 0; i < s->configuration_count; i++) most += s->configurations[i].operator_count;
    scene at = {.s = s,
                .room = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *at.room),
                .blocks = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *at.blocks)};
    s->losses = prn_bump_alloc(&s->results_pool, most + 1, sizeof *s->losses);
    if (!at.room || !at.blocks || !s->losses) return prn_no_memory(error);
    for (at.configuration = 0; at.configuration < s->configuration_count; at.configuration++) {
        const prn_study_configuration *c = &s->configurations[at.configuration];
        at.baseline = prn_study_baseline(s, c->group);
        if (c->baseline || c->replicas > 1 || at.baseline == PRONY_NO_INDEX) continue;
        if (s->configurations[at.baseline].operator_count != c->operator_count) continue;
        for (size_t o = 0; o < c->operator_count; o++) {
            prn_study_loss loss = {.configuration = at.configuration, .operator= o };
            loss.time_ns = FIGURE(s, at.configuration, o, time_ns, at.room, at.blocks);
            loss.serial_ns = FIGURE(s, at.baseline, o, time_ns, at.room, at.blocks);
            if (loss.time_ns < 0 || loss.serial_ns < 0) continue;
            double ideal = loss.serial_ns / c->intra_op * (s->weak ? prn_study_threads(c) : 1);
            loss.lost_ns = loss.time_ns - ideal;
            loss.efficiency = loss.time_ns > 0 ? ideal / loss.time_ns : 1;
            loss.reason = reason_of(&at, o, &loss);
            s->losses[s->loss_count++] = loss;
        }
    }
    qsort(s->losses, s->loss_count, sizeof *s->losses, study_scaling_by_loss);
    return PRONY_OK;
}

/* ---- the limit ---- */

/* Number of the operator's tasks in any configuration of the group; 0: not known. */
static double tasks_of(const scene *at, size_t group, size_t o)
{
    double most = 0;
    for (size_t c = 0; c < at->s->configuration_count; c++)
        if (at->s->configurations[c].group == group && at->s->configurations[c].intra_op > 1)
            most = fmax(most, FIGURE(at->s, c, o, tasks, at->room, at->blocks));
    return most;
}

typedef struct floor_sums {
    double serial, chain, path; /* serial times; least remaining times; those on the critical path */
    double uncut, roof, few;    /* least remaining time beyond an even share, by cause */
} floor_sums;

static floor_sums add_floors(const scene *at, size_t group, int processors)
{
    floor_sums f = {0};
    const prn_study_configuration *c = &at->s->configurations[at->baseline];
    for (size_t o = 0; o < c->operator_count; o++) {
        double serial = FIGURE(at->s, at->baseline, o, time_ns, at->room, at->blocks), tasks = tasks_of(at, group, o);
        bool compute = true;
        if (serial < 0) continue;
        double share = serial / processors, cut = serial / fmin(processors, fmax(1, tasks));
        double roof = fmin(serial, roof_of(at->s, &c->operators[o], processors, &compute));
        double least = fmax(cut, roof);
        f.serial += serial;
        f.chain += least;
        if (c->operators[o].on_path) f.path += least;
        if (tasks <= 1)
            f.uncut += least - share;
        else if (roof > cut)
            f.roof += least - share;
        else
            f.few += least - share;
    }
    return f;
}

static const char *why_of(prony_study *s, const floor_sums *f, bool workers)
{
    char text[240] = "";
    size_t used = 0;
    const struct {
        double lost;
        const char *words;
    } causes[] = {{f->uncut, "is in operators that one thread runs alone"},
                  {f->roof, "is bound by the roof of memory or arithmetic of all processors"},
                  {f->few, "is in operators with fewer tasks than processors"}};
    if (workers) return prn_bump_printf(&s->results_pool, "is the longest chain of operators");
    for (size_t i = 0; i < 3; i++) {
        if (causes[i].lost < 0.005 * f->serial) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.0f %% of the serial time %s", used ? "; " : "",
                                 100 * causes[i].lost / f->serial, causes[i].words);
        if (used >= sizeof text) break;
    }
    return prn_bump_printf(&s->results_pool, "%s", *text ? text : "only the number of processors limits it");
}

/* The bound is the serial time over the least remaining time: with several workers the critical path or an even share,
 * else the chain. */
prony_status prn_study_find_limits(prony_study *s, prony_error *error)
{
    size_t groups = prn_study_groups(s);
    scene at = {.s = s,
                .room = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *at.room),
                .blocks = prn_bump_alloc(&s->results_pool, s->block_count + 1, sizeof *at.blocks)};
    s->limits = prn_bump_alloc(&s->results_pool, groups + 1, sizeof *s->limits);
    if (!at.room || !at.blocks || !s->limits) return prn_no_memory(error);
    for (size_t g = 0; g < groups && !s->weak; g++) {
        bool workers = false, traced = false;
        at.baseline = prn_study_baseline(s, g);
        for (size_t c = 0; c < s->configuration_count; c++) {
            workers = workers || (s->configurations[c].group == g && s->configurations[c].inter_op > 1);
            traced = traced || (s->configurations[c].group == g && s->configurations[c].intra_op > 1 &&
                                s->configurations[c].operator_count > 0);
        }
        if (at.baseline == PRONY_NO_INDEX || s->configurations[at.baseline].operator_count == 0 || !traced) continue;
        floor_sums f = add_floors(&at, g, s->usable);
        double least = workers ? fmax(f.path, f.serial / s->usable) : f.chain;
        if (!(least > 0)) continue;
        prn_study_limit *limit = &s->limits[s->limit_count++];
        *limit = (prn_study_limit){.group = g, .processors = s->usable, .speedup = fmin(f.serial / least, s->usable)};
        limit->why = why_of(s, &f, workers && f.path > f.serial / s->usable);
        if (!limit->why) return prn_no_memory(error);
    }
    return PRONY_OK;
}
