/* prony serve: opens the models, starts HTTP, and looks after deadlines, alerts, events and replaced files until a
 * signal or --time-limit ends it. */
#define _GNU_SOURCE
#include "bench/options/option_table.h"

#ifdef PRN_HAVE_MICROHTTPD

#include "bench/history/history.h"
#include "bench/process/interrupt.h"
#include "bench/serve/alerts.h"
#include "bench/serve/service.h"
#include "prony_machine.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS INT64_C(1000000000)
#define LOOK_NS INT64_C(100000000)  /* signals are looked for as often */
#define LAST_NS INT64_C(3000000000) /* at the end, for runs whose requests were answered */
/* Between two writes of the metrics' file; chosen without measurement. */
enum { METRICS_SECONDS = 10 };

/* ---- names ---- */

/* Letters, digits, '.', '_' and '-': names are parts of paths. */
static bool is_served_name(const char *name)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return *name && strlen(name) < SERVED_NAME && strspn(name, fine) == strlen(name) && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

/* The file's name without folder and ending; other characters become '_'. */
static void name_of_file(const char *path, char name[SERVED_NAME])
{
    const char *base = strrchr(path, '/');
    snprintf(name, SERVED_NAME, "%s", base ? base + 1 : path);
    char *ending = strrchr(name, '.');
    if (ending && ending != name) *ending = '\0';
    for (char *c = name; *c; c++) {
        char one[2] = {*c, '\0'};
        if (!is_served_name(one) && *c != '.') *c = '_';
    }
    if (!is_served_name(name)) snprintf(name, SERVED_NAME, "model");
}

/* MODEL or MODEL=NAME; a file whose own name has '=' is a MODEL. */
static int open_model(service *s, const char *argument)
{
    char name[SERVED_NAME];
    char *path = strdup(argument), *cut = path ? strrchr(path, '=') : NULL;
    if (!path) return fail(s->o, "out of memory");
    if (cut && access(argument, F_OK) != 0) {
        *cut = '\0';
        snprintf(name, sizeof name, "%s", cut + 1);
        if (!is_served_name(cut + 1)) {
            int code = usage(s->o, "'%s' is not a name: wanted letters, digits, '.', '_' and '-'", cut + 1);
            free(path);
            return code;
        }
    } else {
        name_of_file(path, name);
    }
    for (size_t i = 0; i < s->model_count; i++)
        if (strcmp(s->models[i].name, name) == 0) {
            free(path);
            return usage(s->o, "two models are named '%s': give one another name, MODEL=NAME", name);
        }
    return served_open(&s->models[s->model_count++], s->o, path, name, s->history); /* the model keeps the path */
}

static void say_model(const served_model *slot)
{
    const model_version *v = slot->current;
    const prony_batch_trial *t = &v->trial;
    const long long sessions = slot->o->load.streams ? (long long)slot->o->load.streams : 1;
    char line[600];
    int used = snprintf(line, sizeof line, "%s: %lld session%s of %d thread%s", slot->name, sessions,
                        sessions == 1 ? "" : "s", t->threads, t->threads == 1 ? "" : "s");
    if (t->sizes_count > 1) {
        used += snprintf(line + used, sizeof line - (size_t)used, ", runs of");
        for (int i = 0; i < t->sizes_count; i++)
            used += snprintf(line + used, sizeof line - (size_t)used, "%s %lld", i ? "," : "", (long long)t->sizes[i]);
        used += snprintf(line + used, sizeof line - (size_t)used, " requests");
    }
    if (t->known && !t->identical && t->largest >= 0.01)
        snprintf(line + used, sizeof line - (size_t)used,
                 "; WARNING: this model mixes the samples of a batch (they differ by %.1e from the same samples alone)",
                 t->largest);
    put_wrapped(line, 0, 2);
}

/* ---- the process ---- */

static int64_t resident_bytes(void)
{
    long long pages = -1, all;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%lld %lld", &all, &pages) != 2) pages = -1;
    if (file) fclose(file);
    return pages < 0 ? -1 : (int64_t)pages * sysconf(_SC_PAGESIZE);
}

typedef struct process_times {
    int64_t wall_ns, own_ns, busy_ns, total_ns;
} process_times;

static process_times serve_read_times(void)
{
    struct rusage usage = {0};
    prony_machine_state machine;
    getrusage(RUSAGE_SELF, &usage);
    prony_machine_state_read(&machine);
    return (process_times){.wall_ns = prony_now_ns(),
                           .own_ns = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * SECOND_NS +
                                     (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000,
                           .busy_ns = (int64_t)machine.busy_ns,
                           .total_ns = (int64_t)machine.total_ns};
}

static void update_process(service *s, process_times *before)
{
    process_times now = serve_read_times();
    double wall = (double)(now.wall_ns - before->wall_ns), own = (double)(now.own_ns - before->own_ns);
    double busy = (double)(now.busy_ns - before->busy_ns);
    int64_t rss = resident_bytes();
    pthread_mutex_lock(&s->lock);
    s->cpu_share = wall > 0 ? own / wall : -1;
    s->other_share = now.total_ns == 0 || wall <= 0 ? -1 : busy > own ? (busy - own) / wall : 0;
    s->rss_bytes = rss;
    pthread_mutex_unlock(&s->lock);
    *before = now;
}

/* ---- the main thread ---- */

/* Collectors read the file at any time. */
static void serve_write_metrics(service *s)
{
    const char *path = s->o->serve.metrics_file;
    static bool said;
    if (!path) return;
    text_buffer text = {0};
    service_metrics(s, &text, false);
    bool ok = buffer_save(&text, path, false);
    if (!ok && !said) fail(s->o, "--metrics-file '%s': cannot write: %s", path, strerror(errno));
    said = !ok;
    buffer_free(&text);
}

/* Each version has the baselines of its own file. */
static void compare_versions(service *s)
{
    for (size_t i = 0; s->past && i < s->model_count; i++) {
        model_version *v = served_get(&s->models[i]);
        const unsigned number = (unsigned)strtoul(v->text, NULL, 10);
        if (s->compared[i] != number) alerts_compare_with(s->alerts, i, s->past, prony_history_at(v->described, 0));
        s->compared[i] = number;
        served_put(v);
    }
}

static void each_second(service *s, process_times *times, uint64_t number)
{
    int64_t now_ns = prony_now_ns();
    update_process(s, times);
    service_sweep(s, now_ns);
    compare_versions(s);
    for (size_t i = 0; i < s->model_count; i++) {
        served_reap(&s->models[i]);
        served_look(&s->models[i]);
        if (!s->alerts) continue;
        stats_summary summary = stats_summarize(s->models[i].stats, ALERT_WINDOW_SECONDS, now_ns);
        model_version *v = served_get(&s->models[i]);
        alert_values values = alert_values_of(&summary, prony_batcher_waiting(v->batcher), s->rss_bytes);
        served_put(v);
        alerts_step(s->alerts, i, &values, now_ns);
    }
    if (number % METRICS_SECONDS == 0) serve_write_metrics(s);
    bool streams = false;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < SERVICE_EVENT_STREAMS; i++) streams = streams || s->streams[i].used;
    pthread_mutex_unlock(&s->lock);
    if (!streams) return;
    text_buffer live = {0};
    service_live(s, &live);
    if (!live.failed) events_publish(s, &live);
    buffer_free(&live);
}

/* Sleeps until the earliest deadline, the next second or the next look for a signal. The deadlines are read under the
 * lock that the wait gives up, so that a job listed meanwhile sees wake_ns and ends the wait. */
static void wait_for_work(service *s, int64_t second_ns)
{
    int64_t wake_ns = prony_now_ns() + LOOK_NS;
    if (second_ns < wake_ns) wake_ns = second_ns;
    pthread_mutex_lock(&s->lock);
    for (const service_job *job = s->jobs; job; job = job->next)
        if (job->deadline_ns && job->deadline_ns < wake_ns) wake_ns = job->deadline_ns;
    struct timespec until = {wake_ns / SECOND_NS, wake_ns % SECOND_NS};
    s->wake_ns = wake_ns;
    pthread_cond_timedwait(&s->change, &s->lock, &until);
    s->wake_ns = 0;
    pthread_mutex_unlock(&s->lock);
}

static void serve_until_signal(service *s)
{
    process_times times = serve_read_times();
    update_process(s, &times);
    int64_t second_ns = prony_now_ns() + SECOND_NS;
    for (uint64_t number = 0; !interrupted();) {
        service_expire(s, prony_now_ns());
        alerts_deliver(s->alerts, prony_now_ns());
        if (prony_now_ns() >= second_ns) {
            each_second(s, &times, number++);
            second_ns += SECOND_NS;
            if (second_ns < prony_now_ns()) second_ns = prony_now_ns() + SECOND_NS; /* the process was stopped */
        }
        wait_for_work(s, second_ns);
    }
}

/* ---- --history ---- */

/* Opens the file once: one that cannot be written ends the command before it serves, not behind. */
static int begin_history(service *s)
{
    prony_error error = {0};
    history_store *store = NULL;
    if (!s->o->history.file) return EXIT_DONE;
    if (prony_history_create(&s->history, &error) != PRONY_OK) return report_error(s->o, &error);
    int code = store_open(&store, s->o, s->o->history.file);
    store_close(store);
    return code;
}

/* Writes the runs of all versions in one transaction. */
static int end_history(service *s, int code)
{
    history_store *store = NULL;
    char commit[72] = "";
    for (size_t i = 0; s->history && i < s->model_count; i++) served_keep(&s->models[i]);
    if (!prony_history_count(s->history)) return code;
    int kept = store_open(&store, s->o, s->o->history.file);
    history_commit(s->o, commit);
    if (kept == EXIT_DONE) kept = store_add(store, s->history, commit, NULL);
    store_close(store);
    if (kept != EXIT_DONE) fail(s->o, "'%s': the session is not in the history", s->o->history.file);
    return code == EXIT_DONE ? kept : code;
}

/* Sessions that drift alerts compare with. */
static int read_past(service *s)
{
    prony_error error = {0};
    history_store *store = NULL;
    if (!alerts_drift(s->alerts)) return EXIT_DONE;
    if (!s->history) {
        fail(s->o, "an alert 'drift ...' compares with a history: --history FILE.db is missing");
        return EXIT_USAGE;
    }
    if (prony_history_create(&s->past, &error) != PRONY_OK) return report_error(s->o, &error);
    int code = store_open_to_read(&store, s->o, s->o->history.file);
    if (code == EXIT_DONE) code = store_read(store, s->past, &(store_wanted){0});
    store_close(store);
    if (code == EXIT_DONE) compare_versions(s);
    return code;
}

static int open_service(service *s)
{
    static const char *names[SERVICE_MOST_MODELS];
    const options *o = s->o;
    int code = begin_history(s);
    for (size_t i = 0; code == EXIT_DONE && i < o->argument_count; i++) code = open_model(s, o->arguments[i]);
    for (size_t i = 0; i < s->model_count; i++) names[i] = s->models[i].name;
    if (code == EXIT_DONE) code = alerts_create(&s->alerts, o, names, s->model_count);
    if (code == EXIT_DONE) code = read_past(s);
    if (code == EXIT_DONE) code = service_listen(s);
    if (code != EXIT_DONE || o->terminal.quiet) return code;
    for (size_t i = 0; i < s->model_count; i++) say_model(&s->models[i]);
    printf("listening on http://%s (Ctrl-C ends)\n", s->address);
    fflush(stdout);
    return EXIT_DONE;
}

/* The order at the end matters: accepted requests are answered and HTTP ends, metrics and history are written, then
 * models close. A model that still runs at end_ns is in use by its threads, so the process ends without freeing it. */
int command_serve(const options *o)
{
    static service s; /* large */
    pthread_condattr_t attributes;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    s = (service){.o = o,
                  .listener = -1,
                  .started_ns = prony_now_ns(),
                  .started_at = (double)now.tv_sec + (double)now.tv_nsec * 1e-9,
                  .cpu_share = -1,
                  .other_share = -1,
                  .rss_bytes = -1};
    signal(SIGPIPE, SIG_IGN); /* of connections that end */
    pthread_mutex_init(&s.lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s.change, &attributes);
    pthread_condattr_destroy(&attributes);
    int code = open_service(&s);
    if (code == EXIT_DONE) {
        serve_until_signal(&s);
        interrupt_granted();
        if (!o->terminal.quiet) printf("%s: accepted requests are answered, then the service ends\n", interrupted());
        fflush(stdout);
        service_stop(&s);
        serve_write_metrics(&s);
        code = end_history(&s, code);
    }
    alerts_free(s.alerts);
    int64_t end_ns = prony_now_ns() + LAST_NS;
    for (size_t i = 0; i < s.model_count; i++) {
        char *path = (char *)(uintptr_t)s.models[i].path;
        if (!served_close(&s.models[i], end_ns)) _exit(command_end(code)); /* a run without a waiting request goes on */
        free(path);
    }
    free(s.event);
    prony_history_release(s.history);
    prony_history_release(s.past);
    pthread_cond_destroy(&s.change);
    pthread_mutex_destroy(&s.lock);
    return code;
}

#else

int command_serve(const options *o)
{
    return fail(o, "prony was built without libmicrohttpd, its HTTP server (Debian: libmicrohttpd-dev)");
}

#endif
