/* This machine: measured peaks of arithmetic and memory, and its state. Conventions: prony.h. */
#ifndef PRONY_MACHINE_H
#define PRONY_MACHINE_H

#include "prony.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what this machine can do ---- */

/* Peaks are the best of several trials of a loop that does nothing else, by all threads together. */
typedef struct prony_peak_compute {
    const char *precision; /* "fp32", "fp64" */
    int threads;
    double flops_per_second; /* vector multiply-add of the widest instructions in use; a MAC is 2 */
    int trials;
    int64_t trial_ns; /* what the best trial took */
    bool doubtful;    /* measured several times, and still far below the rate that one thread's rate suggests */
} prony_peak_compute;

typedef struct prony_peak_bandwidth {
    const char *level;  /* "L1", "L2", "L3", "DRAM" */
    const char *access; /* "read", "write", "copy" */
    int threads;
    double bytes_per_second; /* bytes read plus bytes written by the program */
    uint64_t thread_bytes;   /* that each thread went over */
    int trials;
    int64_t trial_ns;
    bool doubtful;
} prony_peak_bandwidth;

/* The rate of one kind of work: FLOPs of matrix products, results of what follows, bytes that are moved; by
 * the loops that operators use, on data in the first two levels of the cache. */
typedef struct prony_work_rate {
    const char *work; /* "product", "simple", "divide", "sqrt", "exp", "log", "erf", "tanh", "sin", "pow", "move" */
    int threads;
    double per_second;
    int trials;
    int64_t trial_ns;
} prony_work_rate;

typedef struct prony_machine_info {
    const char *cpu_model, *isa, *prony_version; /* the peaks are stored under these and `processor` */
    int cores;             /* largest number of threads measured: cores usable, within the quota */
    int64_t measured_at;   /* seconds since 1970 */
    double seconds;        /* that measuring took */
    double load_avg_1min;  /* when it began; -1: not known */
    int usable_cores;      /* now, in this process */
    const char *processor; /* family, model, stepping, microcode, logical processors and a checksum */
    bool busy;             /* other processes used the machine meanwhile: the rates are too low */
} prony_machine_info;

typedef struct prony_machine prony_machine;

typedef struct prony_machine_options {
    size_t struct_size;
    int threads;    /* up to how many; 0: as many as `-x auto` */
    double seconds; /* about how long; 0: 2 s */
} prony_machine_options;
#define PRONY_MACHINE_OPTIONS_INIT PRONY_INIT(prony_machine_options)

/* Measures; nothing is kept. */
PRONY_API PRONY_MUST_USE prony_status prony_machine_measure(prony_machine **out, const prony_machine_options *options,
                                                            prony_error *error);
/* Loads the stored peaks for this processor, instruction set and version of Prony; *out is NULL if none are stored.
 * A damaged file is an error that names it. */
PRONY_API PRONY_MUST_USE prony_status prony_machine_load(prony_machine **out, prony_error *error);
/* Stores the peaks in $XDG_CACHE_HOME/prony or ~/.cache/prony, for later reports. A busy measurement does not
 * replace a quiet one of as many threads: the file then stays, and the status is PRONY_OK. */
PRONY_API PRONY_MUST_USE prony_status prony_machine_save(const prony_machine *machine, prony_error *error);
/* The file that load and save use. */
PRONY_API PRONY_MUST_USE prony_status prony_machine_path(char *path, size_t size, prony_error *error);
/* Frees the measurement and its rows. NULL is accepted. */
PRONY_API void prony_machine_release(prony_machine *machine);
/* Processor and conditions of the measurement. Owned by it. */
PRONY_API const prony_machine_info *prony_machine_get_info(const prony_machine *machine);
/* *count rows of arithmetic peaks. Owned by the measurement. */
PRONY_API const prony_peak_compute *prony_machine_compute(const prony_machine *machine, size_t *count);
/* *count rows of memory and cache bandwidth. Owned by the measurement. */
PRONY_API const prony_peak_bandwidth *prony_machine_bandwidth(const prony_machine *machine, size_t *count);
/* Rates of one thread and of the most threads. Empty if an older version stored the file. */
PRONY_API const prony_work_rate *prony_machine_work(const prony_machine *machine, size_t *count);
/* As JSON, "prony.machine/1". */
PRONY_API PRONY_MUST_USE prony_status prony_machine_write(const prony_machine *machine, prony_write_fn write,
                                                          void *user, prony_error *error);

/* The machine at a moment. */
typedef struct prony_machine_state {
    int64_t time_ns;                      /* of the monotonic clock */
    double frequency_hz;                  /* mean of the usable processors; 0: not readable */
    double temperature_c;                 /* of the hottest zone; NaN: not readable */
    int64_t throttle_events;              /* so far; -1: not readable */
    uint64_t busy_ns, total_ns, steal_ns; /* of the usable processors so far, all processes; total_ns 0: not readable */
    uint64_t context_switches;            /* of the whole system so far */
} prony_machine_state;
/* Reads the machine's state now: clock, temperature and counters of the kernel. Thread-safe. */
PRONY_API void prony_machine_state_read(prony_machine_state *out);

#ifdef __cplusplus
}
#endif
#endif
