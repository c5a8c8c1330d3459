/* Advice on a run on a device: copies, launches, half precision. Times are those of stamped runs, in which the host waits
 * for every operator; only what the device's own clock measured counts here. A gain is an upper bound. */
#include "profiler/recommend/advice.h"
#include "profiler/text/number_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Shares of the latency. Chosen without measurement. */
#define WORTH_COPIES 0.1
#define WORTH_LAUNCHES 0.05
#define WORTH_HALF 0.1
#define HALF_SAVES 0.5 /* of the bytes, and of the time of arithmetic at twice the rate */

static const prony_device_copy_row *longest_copy(const prony_device_report *d)
{
    const prony_device_copy_row *longest = NULL;
    for (size_t i = 0; i < d->copy_count; i++)
        if (!longest || d->copies[i].busy_ns > longest->busy_ns) longest = &d->copies[i];
    return longest;
}

/* Operators that take less time than their launches need to start. */
typedef struct launch_bound {
    size_t operators;
    uint64_t launches;
    double ns; /* of the launches */
} launch_bound;

static launch_bound find_launch_bound(const prony_device_report *d)
{
    launch_bound found = {0};
    for (size_t i = 0; d->has_peaks && i < d->operator_count; i++) {
        const prony_device_operator_row *o = &d->operators[i];
        const double launches = (double)o->launches * (double)d->peaks.launch_ns;
        if (o->busy_ns < 0 || (double)o->busy_ns >= launches) continue;
        found.operators++;
        found.launches += o->launches;
        found.ns += launches;
    }
    return found;
}

/* Copies and launches together against the kernels. true: advised. */
static bool advise_host(prn_adviser *a, const launch_bound *small, double latency)
{
    const prony_device_report *d = &a->report->device;
    const double around = (double)d->copy_ns + small->ns, gain = around / latency;
    prn_number_text copies, launches, kernels;
    if (gain < WORTH_COPIES || around <= (double)d->busy_ns) return false;
    prony_advice *row = prn_advise(a, "device", "latency", false, fmin(1, gain),
                                   "compare with the processor (the same command without --device)");
    prn_advise_because(
        a, row, "the device computes for %s of a run, and copies (%s) and launches of small operators (%s) take longer",
        prn_number_time(kernels, d->busy_ns, 3, " "), prn_number_time(copies, d->copy_ns, 3, " "),
        prn_number_time(launches, llround(small->ns), 3, " "));
    prn_advise_gain(row, "at most ", " less latency, if the processor computes as fast");
    return true;
}

static bool advise_copies(prn_adviser *a)
{
    const prony_device_report *d = &a->report->device;
    const prony_device_copy_row *copy = longest_copy(d);
    prn_number_text bytes;
    if (!copy || d->copy_share < WORTH_COPIES) return false;
    prony_advice *row = prn_advise(a, "device", "transfer_share", false, fmin(1, d->copy_share),
                                   "replace operators that only the processor has, so that tensors stay on the device");
    prn_advise_because(a, row, "%zu cop%s take %.1f %% of a run; the longest is %s of '%.80s', %.160s", d->copy_count,
                       d->copy_count == 1 ? "y" : "ies", d->copy_share * 100,
                       prn_number_bytes(bytes, (double)copy->bytes, 3, " "), copy->value, copy->reason);
    prn_advise_gain(row, "at most ", " less latency");
    return true;
}

static bool advise_launches(prn_adviser *a, const launch_bound *small, double latency)
{
    prn_number_text launch;
    const double gain = small->ns / latency;
    if (gain < WORTH_LAUNCHES) return false;
    prony_advice *row = prn_advise(a, "device", "throughput", false, fmin(1, gain), "use a larger batch (-b)");
    prn_advise_because(a, row, "%zu operator%s on the device compute%s for less time than a launch takes (%s)",
                       small->operators, small->operators == 1 ? "" : "s", small->operators == 1 ? "s" : "",
                       prn_number_time(launch, a->report->device.peaks.launch_ns, 3, " "));
    prn_advise_gain(row, "at most ", " less time per sample");
    return true;
}

/* Half the bytes and twice the rate, where a roof bounds an operator and the device computes in float16. */
static bool advise_half(prn_adviser *a, double latency)
{
    const prony_device_report *d = &a->report->device;
    double bound_ns = 0;
    size_t bound = 0;
    if (!d->info.fp16 || !a->report->config.precision || strcmp(a->report->config.precision, "fp32") != 0) return false;
    for (size_t i = 0; i < d->operator_count; i++) {
        const prony_device_operator_row *o = &d->operators[i];
        if (!o->bound || strcmp(o->bound, "overhead") == 0) continue;
        bound_ns += (double)o->busy_ns;
        bound++;
    }
    const double share = bound_ns / latency;
    if (share * HALF_SAVES < WORTH_HALF) return false;
    prony_advice *row = prn_advise(a, "device", "latency", false, share * HALF_SAVES,
                                   "try -p fp16, then check the accuracy (prony eval)");
    prn_advise_because(a, row, "the device computes in float16; %zu operator%s (%.1f %% of the latency) near its roofs",
                       bound, bound == 1 ? " is" : "s are", share * 100);
    prn_advise_gain(row, "at most ", " less latency, where the device has a kernel in float16");
    return true;
}

void prn_advise_device(prn_adviser *a)
{
    const prony_report *r = a->report;
    const prony_device_report *d = &r->device;
    if (!r->has_device) return;
    const double latency = r->measured && r->latency.count ? (double)r->latency.mean_ns : 0;
    if (d->busy_share < 0 || latency <= 0) {
        prn_advise_nothing(a, "device", "operators were not measured");
        return;
    }
    const launch_bound small = find_launch_bound(d);
    bool advised = advise_host(a, &small, latency);
    advised |= advise_copies(a);
    advised |= advise_launches(a, &small, latency);
    advised |= advise_half(a, latency);
    if (!advised)
        prn_advise_nothing(a, "device", "copies take %.1f %% of a run%s", d->copy_share * 100,
                           d->has_peaks ? ", launches of small operators less than a twentieth"
                                        : "; run `prony devices` once to judge operators by the device's roofs");
}
