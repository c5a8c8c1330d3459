/* --send-model: ranks whose node lacks the model's file get it from rank 0, under the same path. All ranks tell their
 * file's hash; rank 0 then broadcasts the file to those that have none. A file appears whole, by its new name, after
 * its hash was checked. A rank that cannot write keeps taking part, so that no other rank waits. */
#include "bench/cluster/pipeline.h"

#include "bench/process/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 16 << 20 };

static char failure[PRONY_ERROR_MESSAGE_BYTES];

const char *model_share_failure(void)
{
    return *failure ? failure : NULL;
}

/* False: a rank does not take part in time. The request is then left to MPI. */
static bool model_share_wait(MPI_Request *request, double end)
{
    for (int done = 0;;) {
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
        if (done) return true;
        if (interrupted() || cluster_now() > end) return false;
        cluster_rest();
    }
}

static bool broadcast(void *bytes, int size, MPI_Comm among, double end)
{
    MPI_Request request;
    return MPI_Ibcast(bytes, size, MPI_BYTE, 0, among, &request) == MPI_SUCCESS && model_share_wait(&request, end);
}

typedef struct model_copy {
    FILE *file;
    char *temporary;
    const char *path;
} model_copy;

static void copy_fails(model_copy *c, int code)
{
    if (!*failure)
        snprintf(failure, sizeof failure, "'%.900s': cannot write the sent model: %s", c->path, strerror(code));
    if (c->file) fclose(c->file);
    if (c->temporary) unlink(c->temporary);
    free(c->temporary);
    c->file = NULL;
    c->temporary = NULL;
}

static void copy_open(model_copy *c, const char *path)
{
    const size_t size = strlen(path) + 64;
    *c = (model_copy){.path = path, .temporary = malloc(size)};
    if (c->temporary) snprintf(c->temporary, size, "%s.%d.%ld.tmp", path, cluster_rank(), (long)getpid());
    const int fd = c->temporary ? open(c->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    c->file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (c->file) return;
    const int code = c->temporary ? errno : ENOMEM;
    if (fd < 0) free(c->temporary), c->temporary = NULL; /* it is not this rank's to remove */
    if (fd >= 0) close(fd);
    copy_fails(c, code);
}

static void copy_close(model_copy *c, int64_t hash)
{
    if (!c->file) return;
    const bool bad = fflush(c->file) != 0 || fsync(fileno(c->file)) != 0;
    if (fclose(c->file) != 0 || bad) {
        c->file = NULL;
        copy_fails(c, errno);
        return;
    }
    c->file = NULL;
    if (file_hash(c->temporary) != hash) {
        snprintf(failure, sizeof failure, "'%.900s' arrived damaged: its hash is not that of rank 0's file", c->path);
        copy_fails(c, EIO);
    } else if (rename(c->temporary, c->path) != 0) {
        copy_fails(c, errno);
    }
    free(c->temporary);
}

/* On rank 0 and the ranks that lack the file. */
static bool send_file(const char *path, int64_t hash, MPI_Comm among)
{
    const bool sends = cluster_rank() == 0;
    FILE *from = sends ? fopen(path, "rb") : NULL;
    char *bytes = malloc(CHUNK_BYTES);
    model_copy copy = {0};
    int64_t size = 0;
    bool fine = bytes != NULL;
    if (!sends) copy_open(&copy, path);
    do { /* a chunk of no bytes ends the file */
        const double end = cluster_now() + SILENCE_SECONDS;
        size = from && fine ? (int64_t)fread(bytes, 1, CHUNK_BYTES, from) : 0;
        fine = fine && broadcast(&size, (int)sizeof size, among, end) && size >= 0 && size <= CHUNK_BYTES;
        if (fine && size) fine = broadcast(bytes, (int)size, among, end);
        if (fine && size && copy.file && fwrite(bytes, 1, (size_t)size, copy.file) != (size_t)size)
            copy_fails(&copy, errno);
    } while (fine && size);
    if (fine && !sends) copy_close(&copy, hash);
    if (!fine && copy.file) copy_fails(&copy, ETIMEDOUT);
    if (from) fclose(from);
    free(bytes);
    return fine;
}

bool model_share(const options *o)
{
    const int ranks = cluster_size(), rank = cluster_rank();
    const double end = cluster_now() + cluster_limit(o, HELLO_SECONDS);
    MPI_Request request;
    MPI_Comm among;
    bool missing = false;
    if (!o->limits.send_model) return true;
    int64_t own = file_hash(o->arguments[0]), *all = calloc((size_t)ranks, sizeof *all);
    bool fine = all != NULL &&
                MPI_Iallgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, MPI_COMM_WORLD, &request) ==
                    MPI_SUCCESS &&
                model_share_wait(&request, end);
    if (!fine) return false; /* `all` may still be written to */
    for (int r = 1; r < ranks; r++) missing = missing || all[r] == 0;
    const int64_t hash = all[0];
    free(all);
    if (!missing || hash == 0) return true; /* without a file on rank 0, hello_check says so */
    const bool takes_part = rank == 0 || own == 0;
    if (MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, rank, &among) != MPI_SUCCESS) return false;
    if (!takes_part) return true;
    fine = send_file(o->arguments[0], hash, among);
    MPI_Comm_free(&among);
    return fine;
}
