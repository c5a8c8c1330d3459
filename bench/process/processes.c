/* --processes N: profile or bench in N fresh processes, one after the other, each returns a report as JSON; the joined
 * report knows the deviation between processes. A process is this program with the same command line and a hidden
 * option: it measures, and only writes its report to stdout. */
#include "bench/process/child.h"
#include "bench/process/interrupt.h"
#include "bench/process/processes.h"

#include <stdlib.h>
#include <string.h>

/* A process loads the model and measures for -t; one that takes ten times as long and a minute more hangs. */
enum { LIMIT_LEAST = 600, LIMIT_FACTOR = 10 };

static const char **words_of(const options *o)
{
    const char **words = calloc((size_t)o->argc + 3, sizeof *words);
    size_t count = 0;
    if (!words) return NULL;
    words[count++] = "prony";
    words[count++] = o->command;
    words[count++] = "--one-process";
    for (int i = 1; i < o->argc; i++) words[count++] = o->argv[i];
    return words;
}

static int processes_run_process(const options *o, const char *const *words, prony_report **out)
{
    child c;
    prony_error error = {0};
    char text[CHILD_WORDS + 100];
    double limit = LIMIT_LEAST + LIMIT_FACTOR * o->measuring.seconds;
    int code = child_run(&c, words, limit);
    if (code)
        code = fail(o, "cannot start a process: %s", strerror(code));
    else if (child_failed(&c, limit, text, sizeof text))
        code = interrupted() ? EXIT_FAILED : fail(o, "%s", text);
    else if (prony_report_load_memory(out, "a process of this measurement", c.output ? c.output : "", c.size, &error) !=
             PRONY_OK)
        code = report_error(o, &error);
    child_free(&c);
    return code;
}

static int by_median(const void *left, const void *right)
{
    const prony_time_stats *a = prony_report_latency(*(prony_report *const *)left);
    const prony_time_stats *b = prony_report_latency(*(prony_report *const *)right);
    return (a->median_ns > b->median_ns) - (a->median_ns < b->median_ns);
}

/* Joins into the report with the middle median, whose layers and operators represent all; releases the others. */
static int processes_join(const options *o, prony_report **reports, size_t count, prony_report **out)
{
    prony_error error = {0};
    qsort(reports, count, sizeof *reports, by_median);
    prony_report *middle = reports[count / 2];
    memmove(reports + count / 2, reports + count / 2 + 1, (count - count / 2 - 1) * sizeof *reports);
    prony_status status = prony_report_join(middle, (const prony_report *const *)reports, count - 1, &error);
    for (size_t i = 0; i + 1 < count; i++) prony_report_release(reports[i]);
    if (status == PRONY_OK) {
        *out = middle;
        return EXIT_DONE;
    }
    prony_report_release(middle);
    return report_error(o, &error);
}

int processes_refuse(const options *o)
{
    if (!o->files.output_dir && !o->shown.topk) return EXIT_DONE;
    fail(o, "--processes cannot be combined with %s: no process remains to show outputs",
         o->shown.topk ? "--topk" : "--output-dir");
    return EXIT_USAGE;
}

int processes_measure(const options *o, prony_report **out)
{
    const char **words = words_of(o);
    prony_report **reports = calloc((size_t)o->measuring.processes, sizeof *reports);
    size_t count = 0;
    char text[80];
    int code = words && reports ? EXIT_DONE : fail(o, "out of memory");
    while (code == EXIT_DONE && count < (size_t)o->measuring.processes && !interrupted()) {
        snprintf(text, sizeof text, "process %zu of %lld", count + 1, (long long)o->measuring.processes);
        if (want_progress(o)) show_progress_text(text);
        code = processes_run_process(o, words, &reports[count]);
        count += code == EXIT_DONE;
    }
    clear_progress();
    /* Interrupted: the finished processes are still reported. */
    if (interrupted() && count) {
        fail(o, "%s; the results of the %zu processes until then follow", interrupted(), count);
        code = EXIT_DONE;
    }
    if (code == EXIT_DONE && count)
        code = processes_join(o, reports, count, out);
    else
        for (size_t i = 0; i < count; i++) prony_report_release(reports[i]);
    free(words);
    free(reports);
    return *out || code != EXIT_DONE ? code : EXIT_FAILED;
}
