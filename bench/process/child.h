/* This program again, as a process of its own. */
#ifndef PRN_BENCH_PROCESS_CHILD_H
#define PRN_BENCH_PROCESS_CHILD_H

#include "bench/command.h"

#include <sys/resource.h>
#include <sys/types.h>

enum { CHILD_WORDS = 900 };

typedef struct child {
    pid_t pid;
    int out, err; /* reading ends; -1: closed */
    char *output; /* what it wrote to stdout */
    size_t size, capacity;
    char words[CHILD_WORDS]; /* the first of what it said on stderr: they name the cause */
    size_t word_count;
    int gate;    /* writing end of its stdin, until it may begin; -1: it does not wait */
    bool waited; /* for other replicas, one of which failed */
    bool too_much, answered;
    int status; /* as waitpid has it */
    struct rusage usage;
} child;

/* Starts it with `words` (NULL ends them; the first is the program's name), listens until it has closed its streams,
 * and waits for its end. One that does not answer within `limit` seconds, and any when the command is interrupted, is
 * ended. 0, or the errno of what kept it from starting. child_free is needed in either case. */
int child_run(child *c, const char *const *words, double limit);
/* The same of `count` processes at once. Each one writes a byte when it is ready; once all are, their stdin closes, so
 * that they begin together. Where one ends before that, the others are ended. child_free is needed for each. */
int children_run(child *list, size_t count, const char *const *words, double limit);
/* Whether it did not do what it was to do; `text` then says why. */
bool child_failed(child *c, double limit, char *text, size_t size);
void child_free(child *c);
/* Ends the processes that run, and each one that starts later, as an interruption does. From any thread. */
void children_end(void);

#endif
