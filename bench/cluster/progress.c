/* A thread that calls MPI while the stage computes, so that messages move meanwhile: MPI moves a large message only
 * inside of its calls, and over TCP every part of one. The main thread calls MPI only between pipeline_progress_end and
 * pipeline_progress_begin, and this thread only between begin and end, so that two threads never call it at once
 * (MPI_THREAD_SERIALIZED). It sleeps while no message is outstanding. */
#include "bench/cluster/pipeline.h"

#include <sys/prctl.h>
#include <time.h>

/* Between calls: a message of 1 Gbit/s then needs buffers of 25 kB. A call with nothing to do takes 1 to 3 us. */
#define PROGRESS_NS 200000
#define TIMER_SLACK_NS 1000UL /* in place of 50 us, by which Linux lets sleeps end late */

static void *progress_run(void *argument)
{
    pipeline *p = argument;
    progress *g = &p->progress;
    (void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    pthread_mutex_lock(&g->lock);
    while (!g->ends) {
        if (!g->computes || !pipeline_outstanding(p)) {
            g->asleep = true;
            pthread_cond_wait(&g->wake, &g->lock);
            g->asleep = false;
            continue;
        }
        pthread_mutex_unlock(&g->lock);
        nanosleep(&(struct timespec){0, PROGRESS_NS}, NULL);
        pthread_mutex_lock(&g->lock);
        if (g->computes && !g->ends) (void)pipeline_advance(p);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

bool pipeline_progress_start(pipeline *p)
{
    progress *g = &p->progress;
    int level = MPI_THREAD_SINGLE;
    (void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS); /* of the pauses in which this thread waits for messages */
    if (p->ranks < 2 || MPI_Query_thread(&level) != MPI_SUCCESS || level < MPI_THREAD_SERIALIZED) return false;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->wake, NULL);
    g->runs = pthread_create(&g->thread, NULL, progress_run, p) == 0;
    return g->runs;
}

void pipeline_progress_begin(pipeline *p)
{
    progress *g = &p->progress;
    if (!g->runs) return;
    pthread_mutex_lock(&g->lock);
    g->computes = true;
    if (g->asleep && pipeline_outstanding(p)) pthread_cond_signal(&g->wake);
    pthread_mutex_unlock(&g->lock);
}

void pipeline_progress_end(pipeline *p)
{
    progress *g = &p->progress;
    if (!g->runs) return;
    pthread_mutex_lock(&g->lock);
    g->computes = false;
    pthread_mutex_unlock(&g->lock);
}

void pipeline_progress_stop(pipeline *p)
{
    progress *g = &p->progress;
    if (!g->runs) return;
    pthread_mutex_lock(&g->lock);
    g->computes = false;
    g->ends = true;
    pthread_cond_signal(&g->wake);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->thread, NULL);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->wake);
    *g = (progress){0};
}
