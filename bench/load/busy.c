/* The background load is a separate process, so that its time does not count as Prony's and the scheduler treats it
 * like any other process. It lives until its end of a pipe is closed, which the kernel does whenever the parent
 * ends. */
#define _GNU_SOURCE /* pthread_setaffinity_np */
#include "bench/load/load.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *spin(void *argument)
{
    (void)argument;
    for (;;) __asm__ volatile(""); /* without an effect, a compiler may assume that the loop ends */
    return NULL;
}

/* The child: a thread per processor, then the number of them, then it waits for the end of the pipe. */
static _Noreturn void be_busy(int from_parent, int to_parent)
{
    cpu_set_t all, one;
    int count = 0;
    if (sched_getaffinity(0, sizeof all, &all) != 0) _exit(1);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        pthread_t thread;
        pthread_attr_t attributes;
        if (!CPU_ISSET(cpu, &all)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (pthread_attr_init(&attributes) != 0) _exit(1);
        if (pthread_attr_setaffinity_np(&attributes, sizeof one, &one) != 0 ||
            pthread_create(&thread, &attributes, spin, NULL) != 0)
            _exit(1);
        pthread_attr_destroy(&attributes);
        count++;
    }
    char byte;
    if (write(to_parent, &count, sizeof count) != sizeof count) _exit(1);
    close(to_parent);
    while (read(from_parent, &byte, 1) < 0 && errno == EINTR) continue;
    _exit(0);
}

/* Returns when all threads of the child are busy: the child writes their number to the second pipe, and a missing
 * number means that it failed. be_busy does not return. After a failure the child has ended, both pipes are closed, and
 * busy_stop has nothing to do. */
int busy_start(busy *b, const options *o)
{
    int to_child[2], to_parent[2];
    int count = 0;
    *b = (busy){0};
    if (!o->load.with_load) return EXIT_DONE;
    if (pipe(to_child) != 0) return fail(o, "--with-load: %s", strerror(errno));
    if (pipe(to_parent) != 0)
        return close(to_child[0]), close(to_child[1]), fail(o, "--with-load: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        close(to_child[1]);
        close(to_parent[0]);
        be_busy(to_child[0], to_parent[1]);
    }
    close(to_child[0]);
    close(to_parent[1]);
    bool told = child > 0 && read(to_parent[0], &count, sizeof count) == sizeof count;
    close(to_parent[0]);
    *b = (busy){.child = child, .pipe = to_child[1], .threads = count};
    if (told) return EXIT_DONE;
    if (child > 0)
        busy_stop(b);
    else
        close(to_child[1]);
    b->child = 0;
    return fail(o, "--with-load: cannot start the busy threads");
}

void busy_stop(busy *b)
{
    if (b->child <= 0) return;
    kill(b->child, SIGKILL);
    while (waitpid(b->child, NULL, 0) < 0 && errno == EINTR) continue;
    close(b->pipe);
    b->child = 0;
}
