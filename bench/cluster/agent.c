/* A rank other than 0: runs the processes that rank 0 hands out, one after the other, and sends what came of them. Its
 * messages to the user go through rank 0, so that each appears once. */
#include "bench/cluster/cluster.h"
#include "bench/cluster/runner.h"

#include "bench/process/interrupt.h"

#include <signal.h>
#include <unistd.h>

double cluster_limit(const options *o, double seconds)
{
    return o->limits.timeout > 0 ? o->limits.timeout : seconds;
}

static int obey_stop(message *m, bool *together)
{
    int code = (int)message_take_number(m);
    *together = message_take_number(m) != 0;
    message_free(m);
    runner_end();
    return code;
}

/* Until rank 0 says stop. A rank that hears nothing for too long ends by itself: rank 0 is gone. */
int agent_run(const options *o, bool *together)
{
    message m = {0};
    bool told = false, called = false, said_ready = false;
    const double limit = cluster_limit(o, GRACE_SECONDS);
    *together = false;
    if (!model_share(o)) return EXIT_FAILED;
    hello_make(&m, o, NULL);
    bool sent = cluster_send(0, TAG_HELLO, &m, cluster_limit(o, HELLO_SECONDS));
    message_free(&m);
    if (!sent) return EXIT_FAILED;
    double heard = cluster_now(), ended = 0;
    for (;; runner_ready() ? cluster_rest_briefly() : cluster_rest()) {
        int rank, tag;
        if (runner_ready() && !said_ready) said_ready = cluster_send(0, TAG_READY, NULL, limit);
        if ((interrupted() || called) && !told) {
            (void)cluster_send(0, TAG_INTERRUPTED, NULL, 1);
            told = true;
            ended = cluster_now();
        }
        if (runner_result(&m)) {
            if (!told && !interrupted()) (void)cluster_send(0, TAG_RESULT, &m, limit);
            message_free(&m);
            heard = cluster_now();
        }
        while (cluster_receive(&rank, &tag, &m)) {
            heard = cluster_now();
            if (tag == TAG_STOP) return obey_stop(&m, together);
            if (tag == TAG_CALL) children_end(), called = true;
            if (tag == TAG_GO) runner_go();
            if (tag == TAG_TASK) said_ready = false;
            if (tag == TAG_TASK && !called && !interrupted() && !runner_start(&m)) kill(getpid(), SIGTERM);
            message_free(&m);
        }
        if (told && cluster_now() > ended + limit) return EXIT_FAILED;
        if (!runner_busy() && cluster_now() > heard + cluster_limit(o, SILENCE_SECONDS) + ALIVE_SECONDS) {
            if (cluster_rank() == 1)
                fail(o, "rank 0 is silent for %.0f s, so this rank ends; continue with --resume",
                     cluster_now() - heard);
            return EXIT_FAILED;
        }
    }
}
