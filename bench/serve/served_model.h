/* A model of the service: its file, the batcher that serves it now, and the change to a new file.
 *
 * A version is a loaded file with its batcher. Requests retain the version that they were parsed for. The last release
 * puts a version on the model's list of retired ones, which only the main thread frees: a batcher cannot be released by
 * its own threads. */
#ifndef PRN_BENCH_SERVE_SERVED_MODEL_H
#define PRN_BENCH_SERVE_SERVED_MODEL_H

#include "bench/command.h"
#include "bench/serve/infer_request.h"
#include "bench/serve/service_stats.h"
#include "prony_history.h"

#include <pthread.h>
#include <sys/stat.h>

enum { SERVED_NAME = 128, SERVED_MESSAGE = 1200 };

typedef struct file_identity {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
} file_identity;

typedef struct model_version {
    struct model_version *next; /* retired */
    struct served_model *slot;
    int references;
    char text[24]; /* "1" */
    prony_model *model;
    prony_batcher *batcher;
    const prony_value_info **infos; /* [inputs, outputs] */
    infer_signature signature;
    prony_batch_trial trial;
    stats_totals totals;
    prony_history *described; /* one run without values; NULL: no --history */
    int64_t served_ns;        /* since */
    bool kept;                /* its run is in the slot's history */
} model_version;

typedef struct served_model {
    char name[SERVED_NAME];
    const char *path;
    const options *o;
    service_stats *stats;
    prony_history *history; /* of all models: a run for each version; the main thread's. NULL: no --history */
    pthread_mutex_t lock;   /* of what follows */
    model_version *current, *retired;
    unsigned versions;
    size_t live;                /* versions that are not freed */
    file_identity loaded, seen; /* of the file: as it was loaded, at the last look */
    bool reloading;
    char failure[SERVED_MESSAGE]; /* why the newest file was refused; "": it was not */
} served_model;

/* Loads the file and starts its batcher. EXIT_DONE, or an exit status after a message. */
int served_open(served_model *slot, const options *o, const char *path, const char *name, prony_history *history);
/* Drops requests that wait, waits for runs until `end_ns`, and frees everything. false: a run goes on, and the model is
 * in use. */
bool served_close(served_model *slot, int64_t end_ns);
/* Retains the present version. */
model_version *served_get(served_model *slot);
void served_put(model_version *version);
/* Looks at the file; loads a replaced one on a thread of its own and serves it from then on. Call it once per
 * second. */
void served_look(served_model *slot);
/* Frees versions that no request uses any more, and keeps their runs. Main thread. */
void served_reap(served_model *slot);
/* The end of the service: keeps the present version's run. Main thread. */
void served_keep(served_model *slot);

/* ---- served_history.c: runs for --history; without it they do nothing ---- */

/* Model, machine and configuration of a version that has just been loaded. */
prony_status version_describe(model_version *version, prony_error *error);
/* Adds the version's latencies to the slot's history, once. A version without an answered request has no run. */
void version_keep(model_version *version);

#endif
