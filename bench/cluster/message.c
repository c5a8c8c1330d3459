/* Bytes, and MPI under them: non-blocking calls, asked again after a short sleep. */
#include "bench/cluster/message.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REST_MS = 10, RECEIVE_SECONDS = 30 };

void message_put(message *m, const void *bytes, size_t size)
{
    if (m->size + size > m->capacity) {
        size_t capacity = 2 * (m->size + size) + 256;
        char *data = m->bad ? NULL : realloc(m->data, capacity);
        if (!data) {
            m->bad = true;
            return;
        }
        m->data = data;
        m->capacity = capacity;
    }
    if (size) memcpy(m->data + m->size, bytes, size);
    m->size += size;
}

void message_put_bytes(message *m, const char *bytes, size_t size)
{
    message_put_number(m, (int64_t)size);
    message_put(m, bytes, size);
    message_put(m, "", 1);
}

void message_put_text(message *m, const char *text)
{
    message_put_bytes(m, text, strlen(text));
}

void message_put_number(message *m, int64_t number)
{
    message_put(m, &number, sizeof number);
}

void message_take(message *m, void *bytes, size_t size)
{
    memset(bytes, 0, size);
    if (m->bad || size > m->size - m->at) {
        m->bad = true;
        return;
    }
    memcpy(bytes, m->data + m->at, size);
    m->at += size;
}

const char *message_take_text(message *m, size_t *size)
{
    int64_t length = message_take_number(m);
    const char *text = m->data + m->at;
    if (size) *size = 0;
    if (m->bad || length < 0 || (uint64_t)length >= m->size - m->at || text[length] != '\0') {
        m->bad = true;
        return "";
    }
    m->at += (size_t)length + 1;
    if (size) *size = (size_t)length;
    return text;
}

int64_t message_take_number(message *m)
{
    int64_t number;
    message_take(m, &number, sizeof number);
    return number;
}

void message_free(message *m)
{
    free(m->data);
    *m = (message){0};
}

/* ---- MPI ---- */

int cluster_rank(void)
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int cluster_size(void)
{
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

double cluster_now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

void cluster_rest(void)
{
    nanosleep(&(struct timespec){0, REST_MS * 1000000L}, NULL);
}

void cluster_rest_briefly(void)
{
    nanosleep(&(struct timespec){0, 200000L}, NULL);
}

/* A request that does not end in time is left to MPI, with the bytes that it may still read or write. */
static bool wait_for(MPI_Request *request, double seconds)
{
    const double end = cluster_now() + seconds;
    for (;;) {
        int done = 0;
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
        if (done) return true;
        if (cluster_now() > end) return false;
        cluster_rest();
    }
}

bool cluster_send(int rank, message_tag tag, const message *m, double seconds)
{
    MPI_Request request;
    static const char nothing[1] = "";
    if (m && (m->bad || m->size > INT_MAX)) return false;
    const size_t size = m ? m->size : 0;
    char *copy = malloc(size + 1);
    if (!copy) return false;
    memcpy(copy, size ? m->data : nothing, size ? size : 1);
    bool sent = MPI_Isend(copy, (int)size, MPI_BYTE, rank, (int)tag, MPI_COMM_WORLD, &request) == MPI_SUCCESS &&
                wait_for(&request, seconds);
    if (sent) free(copy);
    return sent;
}

bool cluster_receive_of(int wanted, int *rank, int *tag, message *m)
{
    int there = 0, size = 0;
    MPI_Status status;
    MPI_Request request;
    *m = (message){0};
    if (MPI_Iprobe(MPI_ANY_SOURCE, wanted, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS || !there) return false;
    if (MPI_Get_count(&status, MPI_BYTE, &size) != MPI_SUCCESS || size < 0) return false;
    char *data = malloc((size_t)size + 1);
    if (!data) return false;
    *rank = status.MPI_SOURCE;
    *tag = status.MPI_TAG;
    if (MPI_Irecv(data, size, MPI_BYTE, *rank, *tag, MPI_COMM_WORLD, &request) != MPI_SUCCESS ||
        !wait_for(&request, RECEIVE_SECONDS))
        return false; /* the sender is gone in the middle of it */
    *m = (message){.data = data, .size = (size_t)size, .capacity = (size_t)size + 1};
    return true;
}

bool cluster_receive(int *rank, int *tag, message *m)
{
    return cluster_receive_of(MPI_ANY_TAG, rank, tag, m);
}
