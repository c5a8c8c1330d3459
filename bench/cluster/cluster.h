/* prony-mpi: prony_mpi.c (the program), coordinator.c (rank 0), agent.c (every other rank), hello.c (who a rank is),
 * runner.c (a process beside the main thread), message.c (bytes over MPI). MPI is called from the main thread alone,
 * but for progress.c, whose thread takes turns with it. */
#ifndef PRN_BENCH_CLUSTER_CLUSTER_H
#define PRN_BENCH_CLUSTER_CLUSTER_H

#include "bench/cluster/message.h"
#include "bench/commands/scale.h"

/* Seconds, where --timeout does not say otherwise. */
enum {
    HELLO_SECONDS = 120,  /* until every rank has loaded the model */
    GRACE_SECONDS = 30,   /* that a rank may need beyond its process's limit */
    ALIVE_SECONDS = 5,    /* between signs of life from rank 0 */
    SILENCE_SECONDS = 120 /* without any, until a rank gives up */
};

/* `seconds`, or what --timeout says. */
double cluster_limit(const options *o, double seconds);

/* Returns true after SIGUSR1, which Slurm sends before a job's time ends (--signal=USR1@60). prony_mpi.c */
bool cluster_warned(void);

/* ---- hello.c ---- */

/* Who a rank is. Strings point into `from`. */
typedef struct hello {
    message from;
    const char *host, *version, *commit, *failure; /* failure "": the model is loaded */
    const char *description;                       /* as prony_study_node_write wrote it */
    size_t description_bytes;
    int64_t program, model; /* hashes of the files */
    bool known;
} hello;

/* 0: the file cannot be read. */
int64_t file_hash(const char *path);
/* Loads the model (which goes to *model, or is released where that is NULL) and describes this rank. */
void hello_make(message *out, const options *o, prony_model **model);
/* Takes the message over. */
void hello_read(hello *h, message *from);
/* Names every rank that cannot take part. EXIT_DONE: all can. */
int hello_check(const options *o, const hello *list, int count);

/* ---- model_share.c ---- */

/* With --send-model, on every rank: nodes without the model's file get it. False: a rank did not take part in time. */
bool model_share(const options *o);
/* Why this rank could not keep the file; NULL: it could, or needed none. */
const char *model_share_failure(void);

/* ---- the two kinds of ranks ---- */

/* Runs rank 0. *together: all ranks end by MPI_Finalize; false: the rank ends at once. */
int coordinator_run(const options *o, bool *together);
int agent_run(const options *o, bool *together);

#endif
