/* prony machine: the machine's peaks. Measured once and kept; --no-cache measures again. */
#include "bench/process/interrupt.h"
#include "bench/terminal/json_file.h"
#include "bench/session/judge.h"
#include "prony_machine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATH_BYTES = 4096 };

static const char *shown_bytes(char *text, size_t size, uint64_t bytes)
{
    if (bytes >= 1 << 20)
        snprintf(text, size, "%.4g MiB", (double)bytes / (1 << 20));
    else
        snprintf(text, size, "%.4g KiB", (double)bytes / (1 << 10));
    return text;
}

static char mark(bool doubtful)
{
    return doubtful ? '!' : ' ';
}

static void print_compute(const prony_machine *machine)
{
    size_t count;
    const prony_peak_compute *rows = prony_machine_compute(machine, &count);
    printf("\ncompute     threads     GFLOP/s   best of\n");
    for (size_t i = 0; i < count; i++)
        printf("%-10s %8d %11.1f%c  %d trials of %.2f ms\n", rows[i].precision, rows[i].threads,
               rows[i].flops_per_second / 1e9, mark(rows[i].doubtful), rows[i].trials, (double)rows[i].trial_ns / 1e6);
}

static void print_rate(const prony_peak_bandwidth *rows, size_t count, const prony_peak_bandwidth *like,
                       const char *access)
{
    const prony_peak_bandwidth *found = NULL;
    for (size_t i = 0; i < count && !found; i++)
        if (strcmp(rows[i].access, access) == 0 && rows[i].threads == like->threads &&
            strcmp(rows[i].level, like->level) == 0)
            found = &rows[i];
    printf(" %10.1f%c", found ? found->bytes_per_second / 1e9 : 0, mark(found && found->doubtful));
}

static void print_bandwidth(const prony_machine *machine)
{
    char bytes[32];
    size_t count;
    const prony_peak_bandwidth *rows = prony_machine_bandwidth(machine, &count);
    printf("\nmemory      threads       read       write        copy   GB/s; each thread over\n");
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].access, "read") != 0) continue;
        printf("%-10s %8d", rows[i].level, rows[i].threads);
        print_rate(rows, count, &rows[i], "read");
        print_rate(rows, count, &rows[i], "write");
        print_rate(rows, count, &rows[i], "copy");
        printf("  %s\n", shown_bytes(bytes, sizeof bytes, rows[i].thread_bytes));
    }
}

static void print_work(const prony_machine *machine)
{
    size_t count;
    const prony_work_rate *rows = prony_machine_work(machine, &count);
    if (count) printf("\nwork        threads    G/second   best of\n");
    for (size_t i = 0; i < count; i++)
        printf("%-10s %8d %11.2f   %d trials of %.2f ms\n", rows[i].work, rows[i].threads, rows[i].per_second / 1e9,
               rows[i].trials, (double)rows[i].trial_ns / 1e6);
}

static bool any_doubtful(const prony_machine *machine)
{
    size_t count, others;
    const prony_peak_compute *compute = prony_machine_compute(machine, &count);
    const prony_peak_bandwidth *memory = prony_machine_bandwidth(machine, &others);
    for (size_t i = 0; i < count; i++)
        if (compute[i].doubtful) return true;
    for (size_t i = 0; i < others; i++)
        if (memory[i].doubtful) return true;
    return false;
}

/* `path`: the file that holds these rates; NULL: they were not saved, and the reason is said where other processes
 * disturbed the measurement. */
static void print_machine(const prony_machine *machine, const char *path)
{
    const prony_machine_info *info = prony_machine_get_info(machine);
    char when[64] = "at an unknown time";
    struct tm local;
    time_t at = (time_t)info->measured_at;
    if (localtime_r(&at, &local)) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    put_text(stdout, info->cpu_model);
    printf(", %s, up to %d thread%s\nmeasured %s in %.1f s", info->isa, info->cores, info->cores == 1 ? "" : "s", when,
           info->seconds);
    if (info->load_avg_1min >= 0) printf(" at a load of %.2f", info->load_avg_1min);
    puts(info->busy ? "\nother processes used the machine during the measurement: these rates are too low" : "");
    print_compute(machine);
    print_bandwidth(machine);
    print_work(machine);
    printf("\nEvery rate is the best of several trials by all threads together. compute:\n"
           "chains of vector multiply-add. memory: vector loads, stores or both over a\n"
           "buffer of each thread's own, bytes read plus bytes written. work: the loops of\n"
           "operators on data in the cache; FLOPs of products, results, bytes moved. They\n"
           "share the time of a fused operator among its layers.\n");
    if (any_doubtful(machine))
        printf("! measured several times, and still far below what one thread's rate suggests:\nthese cores share "
               "hardware, or other processes used them. Run prony machine\n--no-cache to measure again.\n");
    if (!path && info->busy) puts("not saved: rates of a quiet machine are saved already");
    if (path) {
        fputs("saved in ", stdout);
        put_text(stdout, path);
        putchar('\n');
    }
}

/* true: measured on a quiet machine. Rates of a busy machine are replaced by the next quiet measurement. */
static bool was_quiet(const options *o, const prony_machine_info *info)
{
    if (!info->busy) return true;
    if (!o->terminal.quiet) fputs("the saved rates come from a busy machine; measuring again\n", stderr);
    return false;
}

/* true: the file has work rates; older versions did not measure them. */
static bool has_work(const options *o, const prony_machine *machine)
{
    size_t count;
    if (prony_machine_work(machine, &count) && count) return true;
    if (!o->terminal.quiet) fputs("the saved rates lack kinds of work; measuring again\n", stderr);
    return false;
}

/* true: the kept peaks reach the requested threads, or those usable now. */
static bool reaches(const options *o, const prony_machine_info *info)
{
    int wanted = o->threads.intra_op ? o->threads.intra_op : info->usable_cores;
    if (info->cores >= wanted) return true;
    if (!o->terminal.quiet)
        fprintf(stderr, "the saved rates cover %d of %d threads; measuring again\n", info->cores, wanted);
    return false;
}

/* Loads the kept peaks; if they are incomplete, says why and leaves NULL. */
static void machine_command_load(const options *o, prony_machine **machine)
{
    prony_error error = {0};
    if (prony_machine_load(machine, &error) != PRONY_OK) {
        *machine = NULL;
        if (!o->terminal.quiet) {
            put_text(stderr, error.message);
            fputs("; measuring again\n", stderr);
        }
    }
}

/* true: the file holds these rates. A busy measurement does not replace a quiet one. */
static bool machine_command_is_kept(const prony_machine *machine)
{
    prony_machine *kept = NULL;
    bool same = prony_machine_load(&kept, NULL) == PRONY_OK && kept &&
                prony_machine_get_info(kept)->busy == prony_machine_get_info(machine)->busy;
    prony_machine_release(kept);
    return same;
}

static int machine_command_measure(const options *o, prony_machine **machine)
{
    prony_error error = {0};
    prony_machine_options m = PRONY_MACHINE_OPTIONS_INIT;
    m.threads = o->threads.intra_op;
    m.seconds = o->measuring.seconds;
    if (want_progress(o)) show_progress_text("measuring ...");
    interrupt_at_once(true);
    prony_status status = prony_machine_measure(machine, &m, &error);
    interrupt_at_once(false);
    clear_progress();
    if (status != PRONY_OK) return report_error(o, &error);
    if (prony_machine_save(*machine, &error) == PRONY_OK) return EXIT_DONE;
    return report_error(o, &error);
}

int command_machine(const options *o)
{
    prony_error error = {0};
    char path[PATH_BYTES];
    prony_machine *machine = NULL;
    int code = EXIT_DONE;
    if (!o->plan.no_cache) machine_command_load(o, &machine);
    if (machine && (!was_quiet(o, prony_machine_get_info(machine)) || !reaches(o, prony_machine_get_info(machine)) ||
                    !has_work(o, machine))) {
        prony_machine_release(machine);
        machine = NULL;
    }
    if (!machine) code = machine_command_measure(o, &machine);
    if (!machine) return code;
    bool known = prony_machine_path(path, sizeof path, &error) == PRONY_OK && code == EXIT_DONE;
    known = known && machine_command_is_kept(machine);
    if (!o->terminal.quiet && !stdout_taken(o)) print_machine(machine, known ? path : NULL);
    json_file json;
    int opened = json_open(&json, o);
    if (opened == EXIT_DONE && json.stream &&
        prony_machine_write(machine, write_to_stream, json.stream, &error) != PRONY_OK)
        code = report_error(o, &error);
    prony_machine_release(machine);
    return opened == EXIT_DONE ? json_close(&json, o, code) : opened;
}
