/* Entry point: picks the subcommand. */
#include "bench/process/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static int dispatch(const options *o)
{
    static const struct {
        const char *name;
        int (*run)(const options *o);
    } table[] = {{"inspect", command_inspect},
                 {"run", command_run},
                 {"profile", command_profile},
                 {"bench", command_bench},
                 {"eval", command_eval},
                 {"verify", command_verify},
                 {"ops", command_ops},
                 {"compare", command_compare},
                 {"check", command_check},
                 {"recommend", command_recommend},
                 {"machine", command_machine},
                 {"extract", command_extract},
                 {"quantize", command_quantize},
                 {"manual", command_manual},
                 {"completion", command_completion},
                 {"metrics", command_metrics},
                 {"scale", command_scale},
                 {"worker", command_worker},
                 {"versus", command_versus},
                 {"peer", command_peer}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, o->command) == 0) return table[i].run(o);
    return EXIT_USAGE;
}

/* A stream that the caller closed would lend its number to the next file that is opened, and messages would go there.
 * The wrong direction keeps reads and writes failing. */
static void occupy_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}

int main(int argc, char **argv)
{
    options o;
    bool stop;
    occupy_closed_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file at its size limit fails like one on a full disk, with a message */
    int status = options_parse(&o, argc, argv, &stop);
    if (!stop) {
        interrupt_begin(&o);
        status = interrupt_status(dispatch(&o));
    }
    options_free(&o);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == EXIT_DONE) {
        perror("prony: stdout");
        status = EXIT_FAILED;
    }
    return status;
}
