/* The live page and its data. */
#include "bench/serve/alerts.h"
#include "bench/serve/serve_assets.h"
#include "bench/serve/service.h"

#include <string.h>
#include <time.h>

enum { LIVE_OPERATORS = 12, LIVE_WINDOW = 10 };

static void put_time(text_buffer *to, const char *key, int64_t ns)
{
    if (ns < 0)
        buffer_format(to, ",\"%s\":null", key);
    else
        buffer_format(to, ",\"%s\":%lld", key, (long long)ns);
}

/* The last minute, oldest second first: [requests, failed, p50, p99, queue p99, mean batch]; times -1: no request. */
static void put_history(text_buffer *to, service_stats *stats, int64_t now_ns)
{
    buffer_text(to, ",\"seconds\":[");
    for (int ago = STATS_SECONDS - 1; ago >= 1; ago--) {
        stats_summary s = stats_of_second(stats, ago, now_ns);
        buffer_format(to, "%s[%llu,%llu,%lld,%lld,%lld,%.4g]", ago < STATS_SECONDS - 1 ? "," : "",
                      (unsigned long long)s.requests, (unsigned long long)s.failed, (long long)s.p50, (long long)s.p99,
                      (long long)s.queue_p99, s.mean_batch);
    }
    buffer_text(to, "]");
}

static void put_live_operators(text_buffer *to, service_stats *stats)
{
    stats_operator rows[LIVE_OPERATORS];
    size_t count = stats_top_operators(stats, rows, LIVE_OPERATORS);
    buffer_text(to, ",\"operators\":[");
    for (size_t i = 0; i < count; i++) {
        buffer_text(to, i ? ",{\"name\":" : "{\"name\":");
        buffer_json(to, rows[i].name, strlen(rows[i].name));
        buffer_text(to, ",\"op\":");
        buffer_json(to, rows[i].op, strlen(rows[i].op));
        buffer_text(to, ",\"kernel\":");
        buffer_json(to, rows[i].kernel, strlen(rows[i].kernel));
        buffer_format(to, ",\"share\":%.5g,\"time_ns\":%.0f}", rows[i].share, rows[i].time_ns);
    }
    buffer_text(to, "]");
}

/* Runs by size, since the start. */
static void live_put_sizes(text_buffer *to, service_stats *stats)
{
    uint64_t sizes[STATS_SIZES + 1];
    pthread_mutex_lock(&stats->lock);
    memcpy(sizes, stats->sizes, sizeof sizes);
    uint64_t sampled = stats->sampled, arena = stats->arena_bytes, reloads = stats->reloads;
    pthread_mutex_unlock(&stats->lock);
    buffer_text(to, ",\"sizes\":[");
    for (int i = 0; i <= STATS_SIZES; i++) buffer_format(to, "%s%llu", i ? "," : "", (unsigned long long)sizes[i]);
    buffer_format(to, "],\"profiled_runs\":%llu,\"arena_bytes\":%llu,\"reloads\":%llu", (unsigned long long)sampled,
                  (unsigned long long)arena, (unsigned long long)reloads);
}

/* A model on the live page; times are ns. served_get holds the version until served_put, so a reload cannot free it
 * meanwhile. slot->failure is text that a reload changes, so it is read under the lock. */
static void put_live_model(text_buffer *to, served_model *slot, int64_t now_ns)
{
    model_version *v = served_get(slot);
    stats_summary s = stats_summarize(slot->stats, LIVE_WINDOW, now_ns);
    const options *o = slot->o;
    buffer_text(to, "{\"name\":");
    buffer_json(to, slot->name, strlen(slot->name));
    buffer_format(to, ",\"version\":\"%s\",\"sessions\":%lld,\"threads\":%d,\"max_batch\":%lld,\"max_queue\":%lld",
                  v->text, (long long)(o->load.streams ? o->load.streams : 1), v->trial.threads,
                  (long long)(o->load.max_batch > 1 ? o->load.max_batch : 1), (long long)o->serve.max_queue);
    buffer_format(to, ",\"waiting\":%zu,\"rate\":%.6g,\"samples_rate\":%.6g,\"failed_share\":%.5g,\"mean_batch\":%.5g",
                  prony_batcher_waiting(v->batcher), s.rate, s.samples_rate, s.failed_share, s.mean_batch);
    buffer_format(to, ",\"busy\":%.5g", s.busy);
    put_time(to, "mean", s.mean);
    put_time(to, "p50", s.p50);
    put_time(to, "p90", s.p90);
    put_time(to, "p95", s.p95);
    put_time(to, "p99", s.p99);
    put_time(to, "max", s.max);
    put_time(to, "queue_p50", s.queue_p50);
    put_time(to, "queue_p99", s.queue_p99);
    live_put_sizes(to, slot->stats);
    put_live_operators(to, slot->stats);
    put_history(to, slot->stats, now_ns);
    pthread_mutex_lock(&slot->lock);
    buffer_text(to, ",\"failure\":");
    buffer_json(to, slot->failure, strlen(slot->failure));
    pthread_mutex_unlock(&slot->lock);
    buffer_text(to, "}");
    served_put(v);
}

void service_live(service *s, text_buffer *to)
{
    int64_t now_ns = prony_now_ns();
    pthread_mutex_lock(&s->lock);
    double cpu = s->cpu_share, other = s->other_share;
    long long rss = (long long)s->rss_bytes;
    size_t clients = s->client_count, jobs = s->job_count;
    pthread_mutex_unlock(&s->lock);
    buffer_format(
        to,
        "{\"schema\":\"prony.live/1\",\"time\":%lld,\"uptime\":%.0f,\"version\":\"%s\",\"window\":%d,\"draining\":%s",
        (long long)time(NULL), (double)(now_ns - s->started_ns) * 1e-9, prony_version(), LIVE_WINDOW,
        atomic_load(&s->draining) ? "true" : "false");
    buffer_format(to, ",\"connections\":%zu,\"in_progress\":%zu,\"rss_bytes\":%lld,\"cpus\":", clients, jobs, rss);
    buffer_number(to, cpu);
    buffer_text(to, ",\"other_cpus\":");
    buffer_number(to, other);
    buffer_text(to, ",\"models\":[");
    for (size_t i = 0; i < s->model_count; i++) {
        if (i) buffer_text(to, ",");
        put_live_model(to, &s->models[i], now_ns);
    }
    buffer_text(to, "],\"alerts\":[");
    alerts_put(s->alerts, to);
    buffer_text(to, "]}");
}

/* The live page with its style and script inside; the style is that of the reports. */
void service_page(text_buffer *to)
{
    static const char mark_style[] = "/*STYLE*/", mark_script[] = "/*SCRIPT*/";
    const char *style = strstr(serve_page_body, mark_style), *script = strstr(serve_page_body, mark_script);
    buffer_bytes(to, serve_page_body, (size_t)(style - serve_page_body));
    buffer_bytes(to, serve_page_style, (size_t)(serve_page_style_end - serve_page_style));
    style += sizeof mark_style - 1;
    buffer_bytes(to, style, (size_t)(script - style));
    buffer_bytes(to, serve_page_script, (size_t)(serve_page_script_end - serve_page_script));
    buffer_text(to, script + sizeof mark_script - 1);
}
