/* Implements thread_use.h: one pass over a run's events, after the run's clock has stopped. */
#include "profiler/measure/thread_use.h"

/* Of one operator, summed over runs. */
typedef struct operator_sum {
    double time_ns;
    double busiest_ns, even_ns; /* of the busiest thread; the mean of those that had work */
    double used;                /* threads that had work */
} operator_sum;

struct prn_thread_use {
    size_t operators, runs;
    int members;
    double *busy_ns; /* [operators][members] */
    operator_sum *sums;
};

prony_status prn_thread_use_create(prn_thread_use **out, size_t operators, int members, prony_error *error)
{
    prn_thread_use *use = *out = prn_calloc(1, sizeof *use);
    if (!use) return prn_no_memory(error);
    use->operators = operators;
    use->members = members;
    use->busy_ns = prn_calloc(operators * (size_t)members, sizeof *use->busy_ns);
    use->sums = prn_calloc(operators, sizeof *use->sums);
    return use->busy_ns && use->sums ? PRONY_OK : prn_no_memory(error);
}

void prn_thread_use_release(prn_thread_use *use)
{
    if (!use) return;
    prn_free(use->busy_ns);
    prn_free(use->sums);
    prn_free(use);
}

static void thread_use_add_event(prn_thread_use *use, const prn_trace *trace, const prn_event *event)
{
    const prn_thread_pool_share *shares = &trace->shares[event->step * (size_t)trace->members];
    double *busy = &use->busy_ns[event->step * (size_t)use->members];
    double sum = 0, most = 0, time = (double)(event->end_ns - event->start_ns);
    int used = 0;
    for (int m = 0; m < use->members && m < trace->members; m++) {
        if (shares[m].tasks == 0) continue;
        double ns = (double)shares[m].busy_ns;
        busy[m] += ns;
        sum += ns;
        if (ns > most) most = ns;
        used++;
    }
    if (!used) { /* without a thread pool all work is the calling thread's */
        used = 1;
        most = sum = time;
        busy[0] += sum;
    }
    operator_sum *s = &use->sums[event->step];
    s->time_ns += time;
    s->busiest_ns += most;
    s->even_ns += sum / used;
    s->used += used;
}

void prn_thread_use_add(prn_thread_use *use, const prn_trace *trace)
{
    for (size_t e = 0; e < trace->count; e++)
        if (trace->events[e].step < use->operators && trace->events[e].step < trace->share_steps)
            thread_use_add_event(use, trace, &trace->events[e]);
    use->runs++;
}

prony_status prn_thread_use_fill(const prn_thread_use *use, prony_report *report, prony_operator_row *row,
                                 prony_error *error)
{
    size_t members = (size_t)use->members;
    if (row->index >= use->operators || use->runs == 0) return PRONY_OK;
    int64_t *busy = prn_bump_alloc(&report->pool, members, sizeof *busy);
    if (!busy) return prn_no_memory(error);
    const operator_sum *s = &use->sums[row->index];
    double runs = (double)use->runs, sum = 0, threads = row->threads > 0 ? row->threads : 1;
    for (size_t m = 0; m < members; m++) {
        double mean = use->busy_ns[row->index * members + m] / runs;
        busy[m] = (int64_t)mean;
        sum += mean;
    }
    row->thread_busy_ns = busy;
    row->thread_busy_count = members;
    double time = s->time_ns / runs, whole = time * threads;
    row->parallel = (prony_parallel){.threads_used = s->used / runs,
                                     .busy_ns = (int64_t)sum,
                                     .wait_ns = whole > sum ? (int64_t)(whole - sum) : 0,
                                     .imbalance = s->even_ns > 0 ? s->busiest_ns / s->even_ns - 1 : 0,
                                     .achieved_cores = time > 0 ? sum / time : 0,
                                     .efficiency = whole > 0 ? sum / whole : 0};
    return PRONY_OK;
}
