/* Runs this program as a child process. */
#ifndef PRN_BENCH_PROCESS_CHILD_H
#define PRN_BENCH_PROCESS_CHILD_H

#include "bench/command.h"

#include <sys/resource.h>
#include <sys/types.h>

enum { CHILD_WORDS = 900 };

typedef struct child {
    pid_t pid;
    int out, err; /* reading ends; -1: closed */
    char *output; /* its stdout */
    size_t size, capacity;
    char words[CHILD_WORDS]; /* the beginning of its stderr, which names the cause */
    size_t word_count;
    int gate;    /* writing end of its stdin, open until it may begin; -1: it does not wait */
    bool waited; /* it waited for replicas of which one failed */
    bool too_much, answered;
    int status; /* from waitpid */
    struct rusage usage;
} child;

/* Starts it with arguments `words` (NULL ends them; the first is the program's name), reads its streams to their end,
 * and waits for it. Ends it if it does not answer within `limit` seconds or if the command is interrupted. 0, or the
 * errno of a failed start. child_free is needed in either case. */
int child_run(child *c, const char *const *words, double limit);
/* The same for `count` processes at once. Each one writes a byte when it is ready. Once all are ready, their stdin is
 * closed, so that they begin together. If one ends before that, the others are ended. child_free is needed for each. */
int children_run(child *list, size_t count, const char *const *words, double limit);
/* Before processes that wait for one another begin, `may_begin` is asked, every few milliseconds until it returns true.
 * It is called from the thread that runs them; NULL: they begin at once. Applies to all later calls of children_run. */
void children_ask_before(bool (*may_begin)(void));
/* true: it failed; `text` then gives the reason. */
bool child_failed(child *c, double limit, char *text, size_t size);
void child_free(child *c);
/* Ends running processes and all that start later, like an interruption. May be called from any thread. */
void children_end(void);

#endif
