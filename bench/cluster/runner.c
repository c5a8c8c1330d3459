/* The thread owns `task` and `result` from runner_start until `done`. A process dies with the thread that started it
 * (PR_SET_PDEATHSIG), which waits for it. */
#include "bench/cluster/runner.h"

#include "bench/commands/scale.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static pthread_t thread;
static bool running;
static atomic_bool done, together, ready, go;
static message task, result;

static void put_process(message *m, const prony_study_process *p)
{
    message_put_number(m, p->cpu_ns);
    message_put_number(m, p->refused);
    message_put(m, &p->before, sizeof p->before);
    message_put(m, &p->after, sizeof p->after);
    message_put_text(m, p->failure ? p->failure : "");
    message_put_bytes(m, p->sample ? p->sample : "", p->sample ? p->sample_bytes : 0);
}

static void put_failure(message *m, const char *failure)
{
    const prony_study_process process = {.failure = failure};
    message_put_number(m, prony_now_ns());
    message_put_number(m, 1);
    put_process(m, &process);
}

static bool runner_may_begin(void)
{
    if (!atomic_load(&together)) return true;
    atomic_store(&ready, true);
    return atomic_load(&go);
}

bool runner_ready(void)
{
    return running && atomic_load(&ready) && !atomic_load(&go);
}

void runner_go(void)
{
    atomic_store(&go, true);
}

static void *runner_run(void *argument)
{
    scale_round round = {0};
    (void)argument;
    size_t replicas = (size_t)message_take_number(&task);
    atomic_store(&together, message_take_number(&task) != 0);
    size_t count = (size_t)message_take_number(&task);
    const char **words = task.bad ? NULL : calloc(count + 1, sizeof *words);
    for (size_t i = 0; words && i < count; i++) words[i] = message_take_text(&task, NULL);
    double limit = (double)message_take_number(&task) / 1000;
    int code = words && !task.bad ? scale_run_round(&round, words, replicas, limit) : ENOMEM;
    if (code) {
        put_failure(&result, strerror(code));
    } else {
        message_put_number(&result, prony_now_ns());
        message_put_number(&result, (int64_t)replicas);
        for (size_t i = 0; i < replicas; i++) put_process(&result, &round.processes[i]);
    }
    scale_free_round(&round);
    free(words);
    message_free(&task);
    atomic_store(&done, true);
    return NULL;
}

bool runner_start(message *given)
{
    task = *given;
    *given = (message){0};
    result = (message){0};
    atomic_store(&done, false);
    atomic_store(&ready, false);
    atomic_store(&go, false);
    children_ask_before(runner_may_begin);
    running = pthread_create(&thread, NULL, runner_run, NULL) == 0;
    if (!running) message_free(&task);
    return running;
}

bool runner_busy(void)
{
    return running;
}

bool runner_result(message *out)
{
    if (!running || !atomic_load(&done)) return false;
    pthread_join(thread, NULL);
    running = false;
    *out = result;
    result = (message){0};
    return true;
}

void runner_end(void)
{
    message late = {0};
    children_end();
    for (; running; cluster_rest())
        if (runner_result(&late)) message_free(&late);
}
