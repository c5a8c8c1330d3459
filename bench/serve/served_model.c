#include "bench/serve/served_model.h"
#include "bench/process/interrupt.h"
#include "bench/serve/datatypes.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool read_identity(const char *path, file_identity *out)
{
    struct stat info;
    if (stat(path, &info) != 0) return false;
    *out = (file_identity){info.st_dev, info.st_ino, info.st_size, info.st_mtim};
    return true;
}

static bool same_identity(const file_identity *a, const file_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec;
}

static void version_free(model_version *v)
{
    if (!v) return;
    prony_batcher_release(v->batcher);
    prony_history_release(v->described);
    prony_model_release(v->model);
    free(v->infos);
    free(v);
}

/* The protocol carries tensors alone. */
static prony_status check_tensors(const model_version *v, prony_error *error)
{
    for (size_t i = 0; i < v->signature.input_count + v->signature.output_count; i++) {
        if (v->infos[i]->kind == PRONY_TENSOR) continue;
        error->status = PRONY_UNSUPPORTED;
        snprintf(error->message, sizeof error->message,
                 "%.200s: %s '%.200s' is a sequence or an optional value; the Open Inference Protocol has tensors only",
                 v->slot->path, i < v->signature.input_count ? "input" : "output", v->infos[i]->name);
        return error->status;
    }
    return PRONY_OK;
}

static void take_sample(void *user, const prony_sample *sample)
{
    stats_add_sample(user, sample);
}

static prony_status start_batcher(model_version *v, prony_error *error)
{
    const options *o = v->slot->o;
    prony_session_options session = session_options(o);
    prony_batcher_options b = PRONY_BATCHER_OPTIONS_INIT;
    b.sessions = o->load.streams ? (int)o->load.streams : 1;
    b.max_batch = o->load.max_batch;
    b.max_wait_ns = o->load.batch_window_ns > 0 ? o->load.batch_window_ns : 0;
    b.max_queue = (size_t)o->serve.max_queue;
    prony_status status = prony_batcher_create(&v->batcher, v->model, &session, &b, error);
    if (status != PRONY_OK) return status;
    v->trial = prony_batcher_trial(v->batcher);
    if (!o->serve.profile_every) return PRONY_OK;
    prony_monitor_options monitor = PRONY_MONITOR_OPTIONS_INIT;
    monitor.every = (uint64_t)o->serve.profile_every;
    monitor.sample = take_sample;
    monitor.user = v->slot->stats;
    return prony_batcher_monitor(v->batcher, &monitor, error);
}

/* Loads the slot's file as one more version. */
static prony_status version_load(model_version **out, served_model *slot, unsigned number, prony_error *error)
{
    model_version *v = calloc(1, sizeof *v);
    prony_model_options options = PRONY_MODEL_OPTIONS_INIT;
    options.copy = slot->o->limits.copy_model;
    options.data_folder = slot->o->files.data_folder;
    if (!v) return error->status = PRONY_OUT_OF_MEMORY;
    v->slot = slot;
    v->references = 1;
    snprintf(v->text, sizeof v->text, "%u", number);
    prony_status status = prony_model_load(&v->model, slot->path, &options, error);
    if (status == PRONY_OK) {
        size_t inputs = prony_model_input_count(v->model), outputs = prony_model_output_count(v->model);
        v->infos = calloc(inputs + outputs + 1, sizeof *v->infos);
        if (!v->infos) status = error->status = PRONY_OUT_OF_MEMORY;
        for (size_t i = 0; v->infos && i < inputs; i++) v->infos[i] = prony_model_input(v->model, i);
        for (size_t i = 0; v->infos && i < outputs; i++) v->infos[inputs + i] = prony_model_output(v->model, i);
        v->signature = (infer_signature){slot->name, v->infos, v->infos + inputs, inputs, outputs};
    }
    if (status == PRONY_OK) status = check_tensors(v, error);
    if (status == PRONY_OK) status = start_batcher(v, error);
    if (status == PRONY_OK) status = version_describe(v, error);
    if (status == PRONY_OK)
        *out = v;
    else
        version_free(v);
    return status;
}

int served_open(served_model *slot, const options *o, const char *path, const char *name, prony_history *history)
{
    prony_error error = {0};
    *slot = (served_model){.path = path, .o = o, .history = history, .versions = 1};
    snprintf(slot->name, sizeof slot->name, "%s", name);
    pthread_mutex_init(&slot->lock, NULL);
    slot->stats = stats_create();
    if (!slot->stats) return fail(o, "out of memory");
    read_identity(path, &slot->loaded);
    slot->seen = slot->loaded;
    interrupt_at_once(true);
    prony_status status = version_load(&slot->current, slot, 1, &error);
    interrupt_at_once(false);
    slot->live = status == PRONY_OK;
    return status == PRONY_OK ? EXIT_DONE : report_error(o, &error);
}

bool served_close(served_model *slot, int64_t end_ns)
{
    model_version *current = slot->current;
    bool busy = true;
    while (busy) { /* a file that is being loaded, runs of requests that were answered already */
        pthread_mutex_lock(&slot->lock);
        if (!slot->reloading) {
            current = slot->current;
            slot->current = NULL;
        }
        pthread_mutex_unlock(&slot->lock);
        if (current && !slot->current) {
            prony_batcher_close(current->batcher, true);
            served_put(current);
            current = NULL;
        }
        served_reap(slot);
        pthread_mutex_lock(&slot->lock);
        busy = slot->reloading || slot->live;
        pthread_mutex_unlock(&slot->lock);
        if (busy && prony_now_ns() > end_ns) return false;
        if (busy) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    stats_free(slot->stats);
    pthread_mutex_destroy(&slot->lock);
    return true;
}

model_version *served_get(served_model *slot)
{
    pthread_mutex_lock(&slot->lock);
    model_version *v = slot->current;
    v->references++;
    pthread_mutex_unlock(&slot->lock);
    return v;
}

void served_put(model_version *v)
{
    served_model *slot = v->slot;
    pthread_mutex_lock(&slot->lock);
    if (--v->references == 0) {
        v->next = slot->retired;
        slot->retired = v;
    }
    pthread_mutex_unlock(&slot->lock);
}

void served_reap(served_model *slot)
{
    pthread_mutex_lock(&slot->lock);
    model_version *v = slot->retired;
    slot->retired = NULL;
    pthread_mutex_unlock(&slot->lock);
    while (v) {
        model_version *next = v->next;
        version_keep(v);
        version_free(v);
        v = next;
        pthread_mutex_lock(&slot->lock);
        slot->live--;
        pthread_mutex_unlock(&slot->lock);
    }
}

void served_keep(served_model *slot)
{
    served_reap(slot);
    model_version *v = served_get(slot);
    version_keep(v);
    served_put(v);
}

/* ---- a replaced file ---- */

/* The thread that loads a replaced file. The old version serves until the new one is complete, and goes when its last
 * request ends. slot->reloading is cleared last. No other reload begins until then, so slot->versions and slot->failure
 * are read here without the lock. */
static void *reload(void *argument)
{
    served_model *slot = argument;
    model_version *fresh = NULL, *old = NULL;
    prony_error error = {0};
    file_identity identity = {0};
    bool there = read_identity(slot->path, &identity);
    prony_status status = there ? version_load(&fresh, slot, slot->versions + 1, &error) : PRONY_IO_ERROR;
    pthread_mutex_lock(&slot->lock);
    slot->loaded = identity; /* a file that cannot be served is not tried again until it changes */
    *slot->failure = '\0';
    if (status == PRONY_OK) {
        old = slot->current;
        slot->current = fresh;
        slot->versions++;
        slot->live++;
    } else {
        snprintf(slot->failure, sizeof slot->failure, "%s", *error.message ? error.message : prony_status_text(status));
    }
    pthread_mutex_unlock(&slot->lock);
    if (old) served_put(old);
    stats_add_reload(slot->stats, status == PRONY_OK);
    if (status == PRONY_OK)
        fail(slot->o, "model '%s': version %u is served now: %s was replaced", slot->name, slot->versions, slot->path);
    else
        fail(slot->o, "model '%s': the new file cannot be served, version %u stays: %s", slot->name, slot->versions,
             slot->failure);
    pthread_mutex_lock(&slot->lock);
    slot->reloading = false;
    pthread_mutex_unlock(&slot->lock);
    return NULL;
}

/* A file counts as replaced when it looked the same twice, so that one that is still being written is not read. */
void served_look(served_model *slot)
{
    file_identity now;
    pthread_t thread;
    pthread_attr_t attributes;
    if (!read_identity(slot->path, &now)) return;
    pthread_mutex_lock(&slot->lock);
    bool stable = same_identity(&now, &slot->seen), changed = !same_identity(&now, &slot->loaded);
    bool start = stable && changed && !slot->reloading;
    slot->seen = now;
    slot->reloading = slot->reloading || start;
    pthread_mutex_unlock(&slot->lock);
    if (!start) return;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, reload, slot) != 0) {
        pthread_mutex_lock(&slot->lock);
        slot->reloading = false;
        pthread_mutex_unlock(&slot->lock);
    }
    pthread_attr_destroy(&attributes);
}
