/* prony-mpi: the commands of `prony` that run on the ranks of an MPI program. Processes that it starts are this program
 * again, and call nothing of MPI. */
#include "bench/cluster/deal.h"
#include "bench/cluster/shard.h"

#include "bench/process/interrupt.h"
#include "bench/process/ranges.h"

#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int print_usage(FILE *to, int status)
{
    fputs("usage: mpirun -n NODES --map-by ppr:1:node --bind-to none prony-mpi scale MODEL [options]\n"
          "       srun -N NODES --ntasks-per-node=1 --cpu-bind=none prony-mpi scale MODEL [options]\n"
          "       mpirun -n P prony-mpi run|profile|bench|eval MODEL --shard P [options]\n"
          "       mpirun -n N prony-mpi eval MODEL DATA [options]\n"
          "       mpirun -n N prony-mpi bench MODEL --scenario offline [options]\n\n"
          "  scale      MODEL      a thread-scaling study over the nodes, in one file\n"
          "  run        MODEL      one inference of a model that is cut into stages, one a rank (--shard P)\n"
          "  profile    MODEL      where time goes in such a model, and on which rank\n"
          "  bench      MODEL      its latency and throughput; or the throughput of all ranks (--scenario offline)\n"
          "  eval       MODEL DATA accuracy; the data are dealt to the ranks, or the model is cut (--shard P)\n\n"
          "The options are those of the same command of prony: prony-mpi scale --help\n",
          to);
    return status;
}

/* The rank as the launcher says it, before MPI is asked; 0: not known. */
static bool is_first_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (text && *text) return atoi(text) == 0;
    }
    return true;
}

/* Every rank reads the same command line; only the first one says what is wrong with it. Returns a descriptor for
 * restore_stream. */
static int silence_stream(FILE *stream, int fd)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC), kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    fflush(stream);
    if (nowhere < 0) return kept;
    dup2(nowhere, fd);
    close(nowhere);
    return kept;
}

static void restore_stream(FILE *stream, int fd, int kept)
{
    fflush(stream);
    if (kept < 0) return;
    dup2(kept, fd);
    close(kept);
}

static bool is_sharded(const options *o)
{
    static const char *const names[] = {"run", "profile", "bench", "eval"};
    for (size_t i = 0; o->shard.stages && i < sizeof names / sizeof *names; i++)
        if (strcmp(o->command, names[i]) == 0) return true;
    return false;
}

static bool is_known(const options *o)
{
    return strcmp(o->command, "scale") == 0 || is_sharded(o) || deal_takes(o);
}

static int prony_mpi_parse(options *o, int argc, char **argv, bool silent, bool *stop)
{
    if (!silent) return options_parse(o, argc, argv, stop);
    int out = silence_stream(stdout, STDOUT_FILENO), err = silence_stream(stderr, STDERR_FILENO);
    int status = options_parse(o, argc, argv, stop);
    if (!*stop && !is_known(o)) *stop = true, status = EXIT_USAGE;
    restore_stream(stdout, STDOUT_FILENO, out);
    restore_stream(stderr, STDERR_FILENO, err);
    return status;
}

static int prony_mpi_run_process(const options *o)
{
    interrupt_begin(o);
    return interrupt_status(command_worker(o));
}

static volatile sig_atomic_t warned;

static void note_warning(int signal)
{
    (void)signal;
    warned = 1;
}

static void catch_warning(void)
{
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = note_warning, .sa_flags = SA_RESTART}, NULL);
}

bool cluster_warned(void)
{
    return warned;
}

/* Signals are blocked before MPI makes its threads, which then leave them to interrupt_begin's. */
static int run_ranks(const options *o, int *argc, char ***argv)
{
    int level, code;
    bool together = true;
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &both, NULL);
    catch_warning();
    if (MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
        return fail(o, "MPI cannot start on this rank");
    catch_warning(); /* MPICH has taken the signal for itself */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    interrupt_begin(o);
    if (is_sharded(o))
        code = interrupt_status(shard_run(o, &together));
    else if (deal_takes(o))
        code = interrupt_status(deal_run(o, &together));
    else if (cluster_rank() == 0)
        code = interrupt_status(coordinator_run(o, &together));
    else
        code = agent_run(o, &together);
    if (together) {
        MPI_Finalize();
        return code;
    }
    code = command_end(code);
    fflush(NULL);
    if (cluster_rank() == 0) MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code);
}

int main(int argc, char **argv)
{
    options o;
    bool stop;
    command_begin();
    const bool first = is_first_rank();
    if (argc < 2) return first ? print_usage(stderr, EXIT_USAGE) : EXIT_USAGE;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return first ? print_usage(stdout, EXIT_DONE) : EXIT_DONE;
    const bool is_process = strcmp(argv[1], "worker") == 0;
    int status = prony_mpi_parse(&o, argc, argv, !first && !is_process, &stop);
    if (!stop && is_process)
        status = prony_mpi_run_process(&o);
    else if (!stop && !is_known(&o))
        status = (fail(&o, "prony-mpi has no command '%s' without --shard; run it with prony", o.command), EXIT_USAGE);
    else if (!stop && o.argument_count == 0)
        status = (fail(&o, "MODEL is missing"), EXIT_USAGE);
    else if (!stop && (status = ranges_begin(&o, first)) == EXIT_DONE)
        status = run_ranks(&o, &argc, &argv);
    options_free(&o);
    return command_end(status);
}
