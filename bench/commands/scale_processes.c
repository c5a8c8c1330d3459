/* The processes of a study: their arguments, and their results. A process ends by itself if the study is killed
 * (worker.c). */
#include "bench/process/child.h"
#include "bench/process/interrupt.h"
#include "bench/commands/scale.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* ---- a process's arguments ---- */

static void scale_processes_put(scale_arguments *w, const char *word)
{
    if (w->count + 2 > w->capacity) {
        const size_t capacity = 2 * w->capacity + 32;
        const char **list = realloc(w->list, capacity * sizeof *list);
        if (!list) {
            w->no_memory = true;
            return;
        }
        w->list = list;
        w->capacity = capacity;
    }
    w->list[w->count++] = word;
    w->list[w->count] = NULL;
}

static void put_number(scale_arguments *w, const char *option, const char *format, double value)
{
    char *text = w->numbers[w->number_count++];
    snprintf(text, sizeof w->numbers[0], format, value);
    for (char *c = text; *c; c++)
        if (*c == ',') *c = '.';
    scale_processes_put(w, option);
    scale_processes_put(w, text);
}

/* Adds this call's limits. They are not part of the study, because another machine may repeat it with other limits. */
static void put_limits(scale_arguments *w, const options *o)
{
    if (o->limits.memory_limit)
        scale_processes_put(w, "--memory-limit"), scale_processes_put(w, o->limits.memory_limit);
    if (o->limits.time_limit) scale_processes_put(w, "--time-limit"), scale_processes_put(w, o->limits.time_limit);
    if (o->limits.max_loop_trips > 0) { /* the number may have more digits than a double */
        snprintf(w->trips, sizeof w->trips, "%lld", (long long)o->limits.max_loop_trips);
        scale_processes_put(w, "--max-loop-trips"), scale_processes_put(w, w->trips);
    }
    if (o->limits.copy_model) scale_processes_put(w, "--copy-model");
}

void scale_make_words(scale_arguments *w, const options *o, const prony_study *study, const prony_study_task *task)
{
    size_t count;
    const char *const *more = prony_study_arguments(study, &count);
    *w = (scale_arguments){0};
    scale_processes_put(w, "prony");
    scale_processes_put(w, "worker");
    scale_processes_put(w, o->arguments[0]);
    put_number(w, "-x", "%.0f", task->intra_op_threads);
    put_number(w, "-y", "%.0f", task->inter_op_threads);
    if (task->batch) put_number(w, "-b", "%.0f", (double)task->batch);
    put_number(w, "-S", "%.0f", (double)prony_study_seed(study));
    if (task->runs) put_number(w, "-r", "%.0f", (double)task->runs);
    if (task->seconds > 0) put_number(w, "-t", "%.6f", task->seconds);
    if (task->warmup_runs >= 0) put_number(w, "-w", "%.0f", (double)task->warmup_runs);
    if (prony_study_replicas(study, task->configuration) > 1) scale_processes_put(w, "--barrier");
    scale_processes_put(w, "-p");
    scale_processes_put(w, task->precision);
    for (size_t i = 0; i < count; i++) scale_processes_put(w, more[i]);
    put_limits(w, o);
}

static int64_t cpu_of(const struct rusage *usage)
{
    return ((int64_t)usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000 +
           ((int64_t)usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

/* Collects a round's results. Its failure is the first one that is not a consequence of another. */
static void fill_round(scale_round *round, double limit)
{
    int64_t cpu_ns = 0;
    bool failed = false;
    for (size_t i = 0; i < round->count; i++) cpu_ns += cpu_of(&round->children[i].usage);
    for (size_t i = 0; i < round->count; i++) {
        child *c = &round->children[i];
        prony_study_process *p = &round->processes[i];
        p->cpu_ns = cpu_ns;
        p->sample = c->output ? c->output : "";
        p->sample_bytes = c->size;
        if (failed || c->waited || !child_failed(c, limit, round->failure, sizeof round->failure)) continue;
        failed = true;
        p->failure = round->failure;
        p->refused = c->answered && !WIFSIGNALED(c->status) &&
                     (WEXITSTATUS(c->status) == EXIT_FAILED || WEXITSTATUS(c->status) == EXIT_USAGE);
    }
}

int scale_run_round(scale_round *round, const char *const *words, size_t count, double limit)
{
    *round = (scale_round){.count = count,
                           .children = calloc(count, sizeof *round->children),
                           .processes = calloc(count, sizeof *round->processes)};
    if (!round->children || !round->processes) return ENOMEM;
    prony_machine_state before, after;
    prony_machine_state_read(&before);
    int code = children_run(round->children, count, words, limit);
    if (code) return code;
    prony_machine_state_read(&after);
    for (size_t i = 0; i < count; i++) {
        round->processes[i].before = before;
        round->processes[i].after = after;
    }
    fill_round(round, limit);
    return 0;
}

void scale_free_round(scale_round *round)
{
    for (size_t i = 0; round->children && i < round->count; i++) child_free(&round->children[i]);
    free(round->children);
    free(round->processes);
    round->children = NULL;
    round->processes = NULL;
}

int scale_run_task(const options *o, prony_study *study, const prony_study_task *task, double limit)
{
    prony_error error = {0};
    scale_round round;
    scale_arguments w;
    scale_make_words(&w, o, study, task);
    if (w.no_memory) return free(w.list), fail(o, "out of memory");
    int code = scale_run_round(&round, w.list, (size_t)prony_study_replicas(study, task->configuration), limit);
    free(w.list);
    if (code) return scale_free_round(&round), fail(o, "cannot start a process: %s", strerror(code));
    if (!interrupted() && prony_study_add_replicas(study, 0, task, round.processes, round.count, &error) != PRONY_OK)
        code = report_error(o, &error);
    scale_free_round(&round);
    return code;
}
