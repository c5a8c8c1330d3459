/* The set of rules, the file of their states, and the commands that alerts run.
 *
 * A change is first written to the state file as not sent, then sent, then written as sent. A restart sends what was
 * not sent, and nothing that was; only an end of the process between sending and writing repeats an alert. */
#define _GNU_SOURCE
#include "bench/serve/alerts.h"
#include "bench/serve/text_buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RULES = 64, MOST_DELIVERIES = 128, MOST_TRIES = 3, LINE = 512 };
#define TRY_NS INT64_C(30000000000) /* a command that runs longer is ended */
#define PAUSE_NS INT64_C(2000000000)

typedef struct delivery {
    size_t rule, model;
    bool firing;
    char *json;
    pid_t process; /* 0: it does not run */
    int tries;
    int64_t at_ns; /* begin of the run, or of the next try */
} delivery;

struct alert_set {
    const options *o;
    const char *const *models;
    size_t model_count, rule_count;
    pthread_mutex_t lock; /* of the states: other threads show them */
    alert_rule rules[MOST_RULES];
    alert_state *states; /* [rules][models] */
    bool *unsent;        /* [rules][models]: the last change was not sent */
    delivery deliveries[MOST_DELIVERIES];
    size_t delivery_count;
};

static size_t alert_index(const alert_set *set, size_t rule, size_t model)
{
    return rule * set->model_count + model;
}

/* ---- the state file: "firing|ended sent|unsent SECONDS MODEL RULE" a line ---- */

static void keep_states(const alert_set *set)
{
    const char *path = set->o->serve.alert_state;
    text_buffer text = {0};
    if (!path) return;
    for (size_t r = 0; r < set->rule_count; r++)
        for (size_t m = 0; m < set->model_count; m++) {
            size_t i = alert_index(set, r, m);
            const alert_state *s = &set->states[i];
            if (s->firing || set->unsent[i])
                buffer_format(&text, "%s %s %lld %s %s\n", s->firing ? "firing" : "ended",
                              set->unsent[i] ? "unsent" : "sent", (long long)s->fired_at, set->models[m],
                              set->rules[r].text);
        }
    if (!buffer_save(&text, path, true)) fail(set->o, "--alert-state '%s': cannot write: %s", path, strerror(errno));
    buffer_free(&text);
}

static void read_state(alert_set *set, const char *line)
{
    char state[16], sent[16], model[160];
    long long fired_at;
    int used = 0;
    if (sscanf(line, "%15s %15s %lld %159s %n", state, sent, &fired_at, model, &used) < 4 || !used) return;
    for (size_t r = 0; r < set->rule_count; r++)
        for (size_t m = 0; m < set->model_count; m++) {
            size_t i = alert_index(set, r, m);
            if (strcmp(set->rules[r].text, line + used) != 0 || strcmp(set->models[m], model) != 0) continue;
            set->states[i].firing = strcmp(state, "firing") == 0;
            set->states[i].fired_at = fired_at;
            set->unsent[i] = strcmp(sent, "unsent") == 0;
        }
}

static int read_states(alert_set *set)
{
    char line[LINE];
    if (!set->o->serve.alert_state) return EXIT_DONE;
    FILE *file = fopen(set->o->serve.alert_state, "re");
    if (!file && errno == ENOENT) return EXIT_DONE;
    if (!file) return fail(set->o, "--alert-state '%s': %s", set->o->serve.alert_state, strerror(errno));
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        read_state(set, line);
    }
    fclose(file);
    return EXIT_DONE;
}

/* ---- sending ---- */

static char *alert_json(const alert_set *set, size_t rule, size_t model)
{
    const alert_state *s = &set->states[alert_index(set, rule, model)];
    text_buffer to = {0};
    char value[32] = "not known", baseline[32];
    if (s->known) alert_show(set->rules[rule].metric, s->value, value);
    alert_show(set->rules[rule].metric, s->baseline, baseline);
    buffer_format(&to, "{\"status\":\"%s\",\"model\":", s->firing ? "firing" : "resolved");
    buffer_json(&to, set->models[model], strlen(set->models[model]));
    buffer_text(&to, ",\"rule\":");
    buffer_json(&to, set->rules[rule].text, strlen(set->rules[rule].text));
    buffer_text(&to, ",\"value\":");
    buffer_json(&to, value, strlen(value));
    if (s->baseline > 0) buffer_format(&to, ",\"baseline\":\"%s\"", baseline);
    buffer_format(&to, ",\"fired_at\":%lld,\"time\":%lld}\n", (long long)s->fired_at, (long long)time(NULL));
    if (to.failed) buffer_free(&to);
    return to.data;
}

static void mark_sent(alert_set *set, size_t rule, size_t model)
{
    set->unsent[alert_index(set, rule, model)] = false;
    keep_states(set);
}

static void queue_delivery(alert_set *set, size_t rule, size_t model)
{
    const alert_state *s = &set->states[alert_index(set, rule, model)];
    if (!set->o->serve.alert_command) {
        mark_sent(set, rule, model);
        return;
    }
    char *json = set->delivery_count < MOST_DELIVERIES ? alert_json(set, rule, model) : NULL;
    if (!json) {
        fail(set->o, "an alert could not be queued: %s", set->rules[rule].text);
        return;
    }
    set->deliveries[set->delivery_count++] =
        (delivery){.rule = rule, .model = model, .firing = s->firing, .json = json};
}

static void say(alert_set *set, size_t rule, size_t model)
{
    const alert_state *s = &set->states[alert_index(set, rule, model)];
    char value[32] = "not known", baseline[32];
    if (s->known) alert_show(set->rules[rule].metric, s->value, value);
    alert_show(set->rules[rule].metric, s->baseline, baseline);
    fail(set->o, "alert %s: model '%s': %s (%s%s%s)", s->firing ? "fires" : "ends", set->models[model],
         set->rules[rule].text, value, s->baseline > 0 ? ", baseline " : "", s->baseline > 0 ? baseline : "");
}

/* Only the main thread changes states, so only the change takes the lock: writing the state file may last. */
void alerts_step(alert_set *set, size_t model, const alert_values *values, int64_t now_ns)
{
    bool changed[MOST_RULES] = {0}, any = false;
    if (!set) return;
    pthread_mutex_lock(&set->lock);
    for (size_t r = 0; r < set->rule_count; r++) {
        size_t i = alert_index(set, r, model);
        alert_event event = alert_step(&set->states[i], &set->rules[r], values->value[set->rules[r].metric], now_ns);
        if (event == ALERT_NOTHING) continue;
        if (event == ALERT_FIRES) set->states[i].fired_at = (int64_t)time(NULL);
        set->unsent[i] = true;
        changed[r] = any = true;
    }
    pthread_mutex_unlock(&set->lock);
    if (any) keep_states(set);
    for (size_t r = 0; r < set->rule_count; r++) {
        if (!changed[r]) continue;
        say(set, r, model);
        queue_delivery(set, r, model);
    }
}

/* ---- the command ---- */

/* Starts the shell with the JSON on its stdin: a file without a name, so that nothing waits for a reader. The command
 * gets the default signals; those of this process are blocked. */
static pid_t start_command(const char *command, const char *json)
{
    size_t size = strlen(json);
    int fd = memfd_create("alert", MFD_CLOEXEC);
    pid_t process = 0;
    if (fd < 0) return 0;
    if (write(fd, json, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0) {
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none, pipe;
        sigemptyset(&none);
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE); /* ignored by this process; an ignored signal stays ignored in a command */
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &pipe);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
        char *arguments[] = {"sh", "-c", (char *)(uintptr_t)command, NULL};
        if (posix_spawn(&process, "/bin/sh", &actions, &attributes, arguments, environ) != 0) process = 0;
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(fd);
    return process;
}

static void drop_delivery(alert_set *set)
{
    free(set->deliveries[0].json);
    memmove(set->deliveries, set->deliveries + 1, --set->delivery_count * sizeof *set->deliveries);
}

/* A try of the first delivery is over. */
static void end_try(alert_set *set, bool worked, const char *why, int64_t now_ns)
{
    delivery *d = &set->deliveries[0];
    const alert_state *s = &set->states[alert_index(set, d->rule, d->model)];
    d->process = 0;
    d->at_ns = now_ns + PAUSE_NS;
    if (!worked && ++d->tries < MOST_TRIES) return;
    if (!worked)
        fail(set->o, "--alert-command failed %d times (%s) for: %s", MOST_TRIES, why, set->rules[d->rule].text);
    else if (s->firing == d->firing) /* a newer change has a delivery of its own */
        mark_sent(set, d->rule, d->model);
    drop_delivery(set);
}

/* One command at a time, so that a rule's alerts arrive in order. */
void alerts_deliver(alert_set *set, int64_t now_ns)
{
    if (!set || !set->delivery_count) return;
    delivery *d = &set->deliveries[0];
    if (!d->process) {
        if (now_ns < d->at_ns) return;
        d->process = start_command(set->o->serve.alert_command, d->json);
        d->at_ns = now_ns;
        if (!d->process) end_try(set, false, "it cannot be started", now_ns);
        return;
    }
    int status;
    pid_t ended = waitpid(d->process, &status, WNOHANG);
    if (ended == 0 && now_ns - d->at_ns < TRY_NS) return;
    if (ended == 0) {
        kill(-d->process, SIGKILL);
        waitpid(d->process, &status, 0);
        end_try(set, false, "it ran for 30 s", now_ns);
        return;
    }
    char why[64];
    snprintf(why, sizeof why, "status %d", ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    end_try(set, ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0, why, now_ns);
}

/* ---- the set ---- */

static int add_rule(alert_set *set, const char *text, const char *from)
{
    char message[ALERT_MESSAGE];
    if (set->rule_count == MOST_RULES) return fail(set->o, "%s: more than %d rules", from, MOST_RULES);
    if (alert_parse(&set->rules[set->rule_count], text, message)) return set->rule_count++, EXIT_DONE;
    fail(set->o, "%s %s", from, message);
    return EXIT_USAGE;
}

static int read_rules(alert_set *set)
{
    char line[LINE];
    const char *path = set->o->serve.alert_file;
    int code = EXIT_DONE;
    if (!path) return EXIT_DONE;
    FILE *file = fopen(path, "re");
    if (!file) return fail(set->o, "--alert-file '%s': %s", path, strerror(errno));
    while (code == EXIT_DONE && fgets(line, sizeof line, file)) {
        line[strcspn(line, "#\n")] = '\0';
        if (line[strspn(line, " \t\r")]) code = add_rule(set, line, path);
    }
    fclose(file);
    return code;
}

int alerts_create(alert_set **out, const options *o, const char *const *models, size_t model_count)
{
    if (!o->serve.alert_count && !o->serve.alert_file) return EXIT_DONE;
    alert_set *set = calloc(1, sizeof *set);
    if (!set) return fail(o, "out of memory");
    *set = (alert_set){.lock = PTHREAD_MUTEX_INITIALIZER, .o = o, .models = models, .model_count = model_count};
    int code = EXIT_DONE;
    for (size_t i = 0; code == EXIT_DONE && i < o->serve.alert_count; i++)
        code = add_rule(set, o->serve.alerts[i], "--alert");
    if (code == EXIT_DONE) code = read_rules(set);
    set->states = calloc(set->rule_count * model_count + 1, sizeof *set->states);
    set->unsent = calloc(set->rule_count * model_count + 1, sizeof *set->unsent);
    if (code == EXIT_DONE && (!set->states || !set->unsent)) code = fail(o, "out of memory");
    if (code == EXIT_DONE) code = read_states(set);
    for (size_t i = 0; code == EXIT_DONE && i < set->rule_count * model_count; i++)
        if (set->unsent[i]) queue_delivery(set, i / model_count, i % model_count);
    *out = set;
    return code;
}

void alerts_free(alert_set *set)
{
    if (!set) return;
    for (int64_t end_ns = prony_now_ns() + TRY_NS; set->delivery_count && prony_now_ns() < end_ns;) {
        alerts_deliver(set, prony_now_ns());
        if (set->delivery_count && set->deliveries[0].tries) break; /* tries again after a restart */
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    while (set->delivery_count) drop_delivery(set);
    free(set->states);
    free(set->unsent);
    pthread_mutex_destroy(&set->lock);
    free(set);
}

bool alerts_drift(const alert_set *set)
{
    bool drift = false;
    for (size_t r = 0; set && r < set->rule_count; r++) drift = drift || set->rules[r].drift > 0;
    return drift;
}

void alerts_compare_with(alert_set *set, size_t model, const prony_history *past, const prony_history_run *like)
{
    for (size_t r = 0; r < set->rule_count; r++) {
        const alert_rule *rule = &set->rules[r];
        size_t sessions;
        if (rule->drift == 0) continue;
        double baseline = alert_baseline(past, like, alert_history_metric(rule->metric), &sessions);
        pthread_mutex_lock(&set->lock);
        set->states[alert_index(set, r, model)].baseline = baseline;
        pthread_mutex_unlock(&set->lock);
        if (baseline == 0)
            fail(set->o,
                 "alert '%s': model '%s': the history has %zu of %d sessions of this file, machine and configuration",
                 rule->text, set->models[model], sessions, ALERT_LEAST_SESSIONS);
    }
}

size_t alerts_firing(alert_set *set)
{
    size_t count = 0;
    pthread_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->rule_count * set->model_count; i++) count += set->states[i].firing;
    pthread_mutex_unlock(&set->lock);
    return count;
}

void alerts_put(alert_set *set, text_buffer *to)
{
    bool first = true;
    if (!set) return;
    pthread_mutex_lock(&set->lock);
    for (size_t r = 0; r < set->rule_count; r++)
        for (size_t m = 0; m < set->model_count; m++) {
            const alert_state *s = &set->states[alert_index(set, r, m)];
            char value[32] = "not known";
            if (s->known) alert_show(set->rules[r].metric, s->value, value);
            buffer_text(to, first ? "{\"model\":" : ",{\"model\":");
            buffer_json(to, set->models[m], strlen(set->models[m]));
            buffer_text(to, ",\"rule\":");
            buffer_json(to, set->rules[r].text, strlen(set->rules[r].text));
            buffer_text(to, ",\"value\":");
            buffer_json(to, value, strlen(value));
            buffer_format(to, ",\"firing\":%s,\"fired_at\":%lld}", s->firing ? "true" : "false",
                          (long long)s->fired_at);
            first = false;
        }
    pthread_mutex_unlock(&set->lock);
}
