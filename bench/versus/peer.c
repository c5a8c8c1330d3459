/* prony peer: one process of `versus`, in which the other engine runs. It never loads the model itself, so the
 * process's memory is the other engine's. Results go to stdout, a word and a number per line. Internal: no help lists
 * it. */
#include "bench/versus/ort.h"
#include "bench/versus/versus.h"
#include "prony_analysis.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <signal.h>
#endif

enum { MOST_SAMPLES = 1 << 20, FEWEST_WARM = 3, TRACED_RUNS = 20 };

#define WARM_PART 0.2 /* share of the time, before runs count; chosen without measurement */

static int peer_failed(const options *o, const ort *peer)
{
    return fail(o, "%s", peer->error);
}

/* The model is not loaded here, so existing files tell where a name ends. */
static bool is_file(const void *context, const char *name, const char *file)
{
    (void)context, (void)name;
    return access(file, F_OK) == 0;
}

static int load_values(const options *o, ort_input *inputs, prony_value **values)
{
    prony_error error = {0};
    for (size_t i = 0; i < o->model.input_count; i++) {
        cut_name_where(&o->model.inputs[i], is_file, NULL);
        if (prony_value_load(&values[i], o->model.inputs[i].file, &error) != PRONY_OK) return report_error(o, &error);
        inputs[i] = (ort_input){o->model.inputs[i].name, values[i]};
    }
    return EXIT_DONE;
}

static int peer_save(const options *o, ort *peer)
{
    prony_error error = {0};
    for (size_t k = 0; k < peer->output_count; k++) {
        char path[4096];
        prony_value value;
        if (!ort_output(peer, k, &value)) return peer_failed(o, peer);
        snprintf(path, sizeof path, "%s/output_%zu.npy", o->files.output_dir, k);
        if (prony_value_save_npy(&value, path, &error) != PRONY_OK) return report_error(o, &error);
    }
    return EXIT_DONE;
}

static int peer_by_value(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Runs until the time or the number of runs is up; outputs are released outside of the timed part. */
static int peer_measure(const options *o, ort *peer, int64_t *samples, size_t *count)
{
    const double seconds = o->measuring.seconds;
    const int64_t begin = prony_now_ns(), warm = begin + (int64_t)(seconds * WARM_PART * 1e9);
    const int64_t end = begin + (int64_t)(seconds * (1 + WARM_PART) * 1e9);
    const size_t most = o->files.export_count   ? TRACED_RUNS
                        : o->measuring.runs > 0 ? (size_t)o->measuring.runs
                                                : MOST_SAMPLES;
    *count = 0;
    for (size_t run = 0; *count < most && *count < MOST_SAMPLES; run++) {
        const int64_t start = prony_now_ns();
        if (*count > 0 && start > end) break;
        if (!ort_run(peer)) return peer_failed(o, peer);
        const int64_t took = prony_now_ns() - start;
        ort_drop_outputs(peer);
        if (run + 1 >= FEWEST_WARM && (start >= warm || o->files.export_count)) samples[(*count)++] = took;
    }
    qsort(samples, *count, sizeof *samples, peer_by_value);
    return EXIT_DONE;
}

/* The process's own peak so far; wait4's value would include the memory of the process that started it. -1: not
 * known. */
long long peer_peak_bytes(void)
{
    char line[256];
    long long kilobytes = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && kilobytes < 0 && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %lld kB", &kilobytes) != 1) kilobytes = -1;
    if (status) fclose(status);
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

/* --trace PREFIX: the other engine writes its own profile, to a file whose name begins so. */
static int run_peer(const options *o, ort *peer, const ort_input *inputs)
{
    const char *prefix = o->files.export_count ? o->files.exports[0].file : NULL;
    int64_t *samples = malloc(MOST_SAMPLES * sizeof *samples);
    size_t count = 0;
    prony_error error = {0};
    prony_load_watch *watch = NULL;
    prony_disturbance load = {.others_share = -1};
    int code = samples ? EXIT_DONE : fail(o, "out of memory");
    const int64_t start = prony_now_ns();
    if (code == EXIT_DONE &&
        !ort_session(peer, o->arguments[0], o->threads.intra_op > 0 ? o->threads.intra_op : 1, prefix))
        code = peer_failed(o, peer);
    const int64_t ready = prony_now_ns();
    if (code == EXIT_DONE && !ort_bind(peer, inputs, o->model.input_count)) code = peer_failed(o, peer);
    if (code == EXIT_DONE && o->files.output_dir) {
        code = ort_run(peer) ? peer_save(o, peer) : peer_failed(o, peer);
        ort_drop_outputs(peer);
    } else if (code == EXIT_DONE) {
        if (prony_load_watch_begin(&watch, &error) != PRONY_OK) code = report_error(o, &error);
        if (code == EXIT_DONE) code = peer_measure(o, peer, samples, &count);
        prony_load_watch_end(watch, &load);
    }
    if (code == EXIT_DONE)
        printf("version %s\nstart_ns %lld\nruns %zu\nmedian_ns %lld\npeak_rss_bytes %lld\nload %d\nothers_ppm %lld\n",
               peer->version, (long long)(ready - start), count, (long long)(count ? samples[count / 2] : 0),
               peer_peak_bytes(), (int)load.verdict, load.others_share < 0 ? -1 : (long long)(load.others_share * 1e6));
    free(samples);
    return code;
}

int command_peer(const options *o)
{
    ort peer = {0};
    ort_input *inputs = calloc(o->model.input_count + 1, sizeof *inputs);
    prony_value **values = calloc(o->model.input_count + 1, sizeof *values);
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* without its parent no process reads the results */
#endif
    if (o->generate.enabled) {
        free(values);
        free(inputs);
        return peer_generate(o);
    }
    int code = inputs && values ? EXIT_DONE : fail(o, "out of memory");
    if (code == EXIT_DONE && !o->files.ort_lib) code = fail(o, "--ort-lib is missing");
    if (code == EXIT_DONE && !ort_open(&peer, o->files.ort_lib)) code = fail(o, "%s: %s", o->files.ort_lib, peer.error);
    if (code == EXIT_DONE) code = load_values(o, inputs, values);
    if (code == EXIT_DONE) code = run_peer(o, &peer, inputs);
    ort_close(&peer);
    for (size_t i = 0; i < o->model.input_count && values; i++) prony_value_release(values[i]);
    free(values);
    free(inputs);
    return code;
}
