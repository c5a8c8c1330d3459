/* The self-description of a rank before the measurement. Ranks of one study have the same program and the same model,
 * byte for byte: hashes of the files are compared, since versions do not tell two builds apart. */
#include "bench/cluster/cluster.h"

#include "bench/session/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FNV-1a, 64 bits: distinguishes files, but does not resist forgery. 0: the file cannot be read. */
int64_t file_hash(const char *path)
{
    uint64_t hash = 0xcbf29ce484222325u;
    static unsigned char bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    for (size_t count; (count = fread(bytes, 1, sizeof bytes, file)) > 0;)
        for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    bool failed = ferror(file);
    fclose(file);
    return failed ? 0 : (int64_t)hash;
}

static int put_description(void *user, const char *data, size_t size)
{
    message_put(user, data, size);
    return ((message *)user)->bad ? -1 : 0;
}

void hello_make(message *out, const options *o, prony_model **model)
{
    prony_error error = {0};
    prony_model *own = NULL;
    message description = {0};
    char host[256] = "";
    const prony_session_options session = scale_session_options(o);
    prony_status status = load_model(o, &own, o->arguments[0], &error);
    if (status == PRONY_OK) status = prony_study_node_write(own, &session, put_description, &description, &error);
    if (gethostname(host, sizeof host - 1) != 0 || !*host) snprintf(host, sizeof host, "unknown host");
    message_put_text(out, host);
    message_put_text(out, prony_version());
    message_put_text(out, prony_build_info()->git_commit);
    if (model_share_failure()) {
        status = PRONY_IO_ERROR;
        snprintf(error.message, sizeof error.message, "%s", model_share_failure());
    }
    message_put_text(out, status == PRONY_OK ? "" : *error.message ? error.message : prony_status_text(status));
    message_put_number(out, file_hash("/proc/self/exe"));
    message_put_number(out, file_hash(o->arguments[0]));
    message_put_bytes(out, description.data ? description.data : "", description.size);
    message_free(&description);
    if (model)
        *model = own;
    else
        prony_model_release(own);
}

void hello_read(hello *h, message *from)
{
    h->from = *from;
    *from = (message){0};
    h->host = message_take_text(&h->from, NULL);
    h->version = message_take_text(&h->from, NULL);
    h->commit = message_take_text(&h->from, NULL);
    h->failure = message_take_text(&h->from, NULL);
    h->program = message_take_number(&h->from);
    h->model = message_take_number(&h->from);
    h->description = message_take_text(&h->from, &h->description_bytes);
    h->known = !h->from.bad;
}

int hello_check(const options *o, const hello *list, int count)
{
    int code = EXIT_DONE;
    for (int rank = 0; rank < count; rank++) {
        const hello *h = &list[rank];
        if (!h->known)
            code = fail(o, "rank %d did not answer within %.0f s (--timeout)", rank, cluster_limit(o, HELLO_SECONDS));
        else if (h->program != list[0].program)
            code = fail(o,
                        "rank %d (%s) runs another build of prony-mpi: %s %s, program hash %016llx; rank 0 (%s): %s "
                        "%s, %016llx",
                        rank, h->host, h->version, *h->commit ? h->commit : "(commit unknown)",
                        (unsigned long long)h->program, list[0].host, list[0].version,
                        *list[0].commit ? list[0].commit : "(commit unknown)", (unsigned long long)list[0].program);
        else if (*h->failure && (rank == 0 || !*list[0].failure || strcmp(h->failure, list[0].failure) != 0))
            code = rank == 0 && count == 1 ? fail(o, "%s", h->failure)
                                           : fail(o, "rank %d (%s): %s", rank, h->host, h->failure);
        else if (!*h->failure && !*list[0].failure && h->model != list[0].model)
            code = fail(o, "rank %d (%s) has another model file: '%s' has hash %016llx, but %016llx on rank 0 (%s)",
                        rank, h->host, o->arguments[0], (unsigned long long)h->model, (unsigned long long)list[0].model,
                        list[0].host);
    }
    for (int rank = 0; rank < count; rank++)
        if (*list[0].failure) code = EXIT_FAILED;
    return code;
}
