/* Watches other processes: their share of the processors while the caller measures. */
#include "base/os/disturbance.h"
#include "prony_analysis.h"

#include "base/memory/alloc.h"

struct prony_load_watch {
    prn_load_state before;
};

prony_status prony_load_watch_begin(prony_load_watch **out, prony_error *error)
{
    if (!out) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_load_watch_begin: an argument is NULL");
    *out = prn_alloc(sizeof **out);
    if (!*out) return prn_no_memory(error);
    prn_load_state_read(&(*out)->before, NULL);
    return PRONY_OK;
}

void prony_load_watch_end(prony_load_watch *watch, prony_disturbance *out)
{
    prn_load_state after;
    prn_disturbance d;
    if (!watch) return;
    if (out) {
        prn_load_state_read(&after, NULL);
        prn_disturbance_between(&d, &watch->before, &after);
        *out = (prony_disturbance){d.others, d.steal, d.waited, d.involuntary_switches, (prony_load)d.verdict, ""};
        (void)prn_disturbance_text(&d, out->text, sizeof out->text);
    }
    prn_free(watch);
}
