/* The processes of a study: what each is told, and what becomes of what it says. A process ends with the study by
 * itself if that is killed (worker.c). */
#include "bench/process/child.h"
#include "bench/process/interrupt.h"
#include "bench/commands/scale.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* ---- what a process is told ---- */

typedef struct words {
    const char **list; /* ends with NULL */
    size_t count, capacity;
    bool no_memory;
    char numbers[8][40], trips[24];
    size_t number_count;
} words;

static void put(words *w, const char *word)
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

static void put_number(words *w, const char *option, const char *format, double value)
{
    char *text = w->numbers[w->number_count++];
    snprintf(text, sizeof w->numbers[0], format, value);
    for (char *c = text; *c; c++)
        if (*c == ',') *c = '.';
    put(w, option);
    put(w, text);
}

/* What this call is given to be held to: no part of the study, which another machine may repeat with other limits. */
static void put_limits(words *w, const options *o)
{
    if (o->memory_limit) put(w, "--memory-limit"), put(w, o->memory_limit);
    if (o->time_limit) put(w, "--time-limit"), put(w, o->time_limit);
    if (o->max_loop_trips > 0) { /* may have more digits than a double */
        snprintf(w->trips, sizeof w->trips, "%lld", (long long)o->max_loop_trips);
        put(w, "--max-loop-trips"), put(w, w->trips);
    }
    if (o->copy_model) put(w, "--copy-model");
}

static void make_words(words *w, const options *o, const prony_study *study, const prony_study_task *task)
{
    size_t count;
    const char *const *more = prony_study_arguments(study, &count);
    *w = (words){0};
    put(w, "prony");
    put(w, "worker");
    put(w, o->arguments[0]);
    put_number(w, "-x", "%.0f", task->intra_op_threads);
    put_number(w, "-y", "%.0f", task->inter_op_threads);
    if (task->batch) put_number(w, "-b", "%.0f", (double)task->batch);
    put_number(w, "-S", "%.0f", (double)prony_study_seed(study));
    if (task->runs) put_number(w, "-r", "%.0f", (double)task->runs);
    if (task->seconds > 0) put_number(w, "-t", "%.6f", task->seconds);
    if (task->warmup_runs >= 0) put_number(w, "-w", "%.0f", (double)task->warmup_runs);
    put(w, "-p");
    put(w, task->precision);
    for (size_t i = 0; i < count; i++) put(w, more[i]);
    put_limits(w, o);
}

static int64_t cpu_of(const struct rusage *usage)
{
    return ((int64_t)usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000 +
           ((int64_t)usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

int scale_run_task(const options *o, prony_study *study, const prony_study_task *task, double limit)
{
    prony_error error = {0};
    prony_study_process process = {0};
    char text[CHILD_WORDS + 100];
    child c;
    words w;
    make_words(&w, o, study, task);
    if (w.no_memory) return free(w.list), fail(o, "out of memory");
    prony_machine_state_read(&process.before);
    int code = child_run(&c, w.list, limit);
    free(w.list);
    if (code) return fail(o, "cannot start a process: %s", strerror(code));
    prony_machine_state_read(&process.after);
    process.cpu_ns = cpu_of(&c.usage);
    process.sample = c.output ? c.output : "";
    process.sample_bytes = c.size;
    if (child_failed(&c, limit, text, sizeof text)) {
        process.failure = text;
        process.refused = c.answered && !WIFSIGNALED(c.status) &&
                          (WEXITSTATUS(c.status) == EXIT_FAILED || WEXITSTATUS(c.status) == EXIT_USAGE);
    }
    if (!interrupted() && prony_study_add(study, task, &process, &error) != PRONY_OK) code = report_error(o, &error);
    child_free(&c);
    return code;
}
