/* Messages between ranks: bytes that are put and taken in order. No send or receive waits longer than its limit. */
#ifndef PRN_BENCH_CLUSTER_MESSAGE_H
#define PRN_BENCH_CLUSTER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise; message_free at the end. `bad`: out of memory, or more was taken than put. */
typedef struct message {
    char *data;
    size_t size, capacity, at;
    bool bad;
} message;

void message_put(message *m, const void *bytes, size_t size);
/* With its length, so that it may hold anything. */
void message_put_bytes(message *m, const char *bytes, size_t size);
void message_put_text(message *m, const char *text);
void message_put_number(message *m, int64_t number);
void message_take(message *m, void *bytes, size_t size);
/* Points into the message and ends with NUL; "" where the message is bad. */
const char *message_take_text(message *m, size_t *size);
int64_t message_take_number(message *m);
void message_free(message *m);

typedef enum message_tag {
    TAG_HELLO = 1,   /* to rank 0: who a rank is */
    TAG_TASK,        /* from rank 0: a process to run */
    TAG_RESULT,      /* to rank 0: what came of it */
    TAG_CALL,        /* from rank 0: measuring ends; answered by TAG_INTERRUPTED */
    TAG_ALIVE,       /* from rank 0: nothing to do yet; to rank 0: samples evaluated so far */
    TAG_STOP,        /* from rank 0: the end, with the exit status and whether all ranks end together */
    TAG_INTERRUPTED, /* to rank 0: the rank got a signal or a call, and does no more */
    TAG_PLAN,        /* from rank 0: what the stages are, and how many runs come */
    TAG_LINK,        /* between ranks: a measurement of the interconnect, and to rank 0 what it gave */
    TAG_DATA,        /* to rank 0: the samples that a rank has */
    TAG_FAILED,      /* to rank 0: why a rank cannot go on */
    TAG_READY,       /* to rank 0: the replicas of a task are ready, and wait */
    TAG_GO           /* from rank 0: they may begin */
} message_tag;

int cluster_rank(void);
int cluster_size(void);
/* Hands a message over; false after `seconds`. */
bool cluster_send(int rank, message_tag tag, const message *m, double seconds);
/* Takes a message that has arrived; false: none has. */
bool cluster_receive(int *rank, int *tag, message *m);
/* As above, with this tag alone. */
bool cluster_receive_of(int wanted, int *rank, int *tag, message *m);
/* Sleeps for a moment: MPI's own waiting would keep a processor busy beside what is measured. */
void cluster_rest(void);
/* A shorter sleep, where ranks are about to begin together. */
void cluster_rest_briefly(void);
double cluster_now(void);

#endif
