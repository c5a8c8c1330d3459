/* prony recommend TARGET: what to change, and what it gives. A model is measured beside variants of itself: other batch
 * sizes where it leaves them free, other thread counts, and rewritten where it was asked to run as written. A report
 * speaks for itself alone. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "bench/interrupt.h"
#include "bench/json_file.h"
#include "bench/judge.h"
#include "prony_judge.h"

#include <sched.h>

enum { VARIANTS_MOST = 16 };
#define SECONDS_EACH 2.0

typedef struct study {
    target base;
    target other[VARIANTS_MOST];
    size_t count;
} study;

/* Only where the model allows the batch: what it fixes is no variant. */
static int add_batch(const options *o, int64_t batch, study *s)
{
    prony_error error = {0};
    options changed = *o;
    changed.batch = batch;
    prony_session_options session = session_options(&changed);
    target *t = &s->other[s->count];
    prony_status status = session_create(&t->session, s->base.model, &session, &error);
    if (status == PRONY_OK) status = prony_session_generate_inputs(t->session, o->seed, &error);
    if (status == PRONY_OK) status = prony_session_prepare(t->session, &error);
    if (status == PRONY_OK)
        s->count++;
    else
        target_close(t);
    return status == PRONY_OUT_OF_MEMORY || status == PRONY_IO_ERROR ? report_error(o, &error) : EXIT_DONE;
}

static int add_changed(const options *changed, study *s)
{
    return make_session(changed, s->base.model, &s->other[s->count++].session, true);
}

static int usable_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static int add_variants(const options *o, study *s)
{
    static const int64_t batches[] = {1, 2, 4, 8, 16};
    int now = prony_session_threads(s->base.session), most = usable_cores(), code = EXIT_DONE;
    options changed = *o;
    for (size_t i = 0; i < sizeof batches / sizeof batches[0] && code == EXIT_DONE; i++)
        if (batches[i] != (o->batch > 0 ? o->batch : 1) && o->input_count == 0 && o->shape_count == 0)
            code = add_batch(o, batches[i], s);
    for (int threads = 1; threads <= most && threads <= 256 && code == EXIT_DONE; threads *= 2) {
        changed.intra_op = threads;
        if (threads != now) code = add_changed(&changed, s);
    }
    changed = *o;
    changed.no_rewrites = false;
    return code == EXIT_DONE && o->no_rewrites ? add_changed(&changed, s) : code;
}

static int measure(const options *o, study *s)
{
    target *all[VARIANTS_MOST + 1] = {&s->base};
    options limited = *o;
    int code = add_variants(o, s);
    if (limited.seconds <= 0) limited.seconds = SECONDS_EACH;
    for (size_t i = 0; i < s->count; i++) all[i + 1] = &s->other[i];
    return code == EXIT_DONE ? targets_measure(&limited, all, s->count + 1) : code;
}

static int write_advice(const options *o, const target *base, const prony_advice *rows, size_t count)
{
    prony_error error = {0};
    json_file json;
    prony_write_options w = write_options(o);
    prony_status status = PRONY_OK;
    prony_disturbance load;
    int code = json_open(&json, o);
    if (code != EXIT_DONE) return code;
    say_assumed(o, &base, 1);
    if (!o->quiet && !stdout_taken(o) && prony_report_disturbance(&load, base->report) && *load.text)
        printf("%s\n", load.text);
    if (!o->quiet && !stdout_taken(o))
        status =
            prony_advice_write(rows, count, o->arguments[0], PRONY_FORMAT_TEXT, &w, write_to_stream, stdout, &error);
    if (status == PRONY_OK && json.stream)
        status = prony_advice_write(rows, count, o->arguments[0], PRONY_FORMAT_JSON, &w, write_to_stream, json.stream,
                                    &error);
    return json_close(&json, o, status == PRONY_OK ? EXIT_DONE : report_error(o, &error));
}

static int advise(const options *o, const study *s)
{
    prony_error error = {0};
    const prony_report *variants[VARIANTS_MOST];
    prony_advice *rows = NULL;
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) variants[i] = s->other[i].report;
    if (prony_recommend(&rows, &count, s->base.report, variants, s->count, &error) != PRONY_OK)
        return report_error(o, &error);
    int code = write_advice(o, &s->base, rows, count);
    prony_rows_release(rows);
    return code;
}

int command_recommend(const options *o)
{
    study s = {0};
    int code = refuse_run_options(o, 1);
    if (code == EXIT_DONE) code = target_open(o, 0, &s.base);
    if (code == EXIT_DONE && !s.base.report) code = measure(o, &s);
    if (code == EXIT_DONE) code = advise(o, &s);
    for (size_t i = 0; i < s.count; i++) target_close(&s.other[i]);
    target_close(&s.base);
    return code;
}
