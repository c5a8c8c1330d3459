/* Entry point: picks the subcommand. */
#include "bench/history/history.h"
#include "bench/process/interrupt.h"
#include "bench/process/ranges.h"

#include <string.h>

static int dispatch(const options *o)
{
    static const struct {
        const char *name;
        int (*run)(const options *o);
    } table[] = {{"inspect", command_inspect}, {"run", command_run},
                 {"profile", command_profile}, {"bench", command_bench},
                 {"eval", command_eval},       {"verify", command_verify},
                 {"ops", command_ops},         {"compare", command_compare},
                 {"check", command_check},     {"recommend", command_recommend},
                 {"machine", command_machine}, {"devices", command_devices},
                 {"extract", command_extract}, {"quantize", command_quantize},
                 {"serve", command_serve},     {"capacity", command_capacity},
                 {"manual", command_manual},   {"completion", command_completion},
                 {"metrics", command_metrics}, {"scale", command_scale},
                 {"history", command_history}, {"worker", command_worker},
                 {"versus", command_versus},   {"peer", command_peer}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, o->command) == 0) return table[i].run(o);
    return EXIT_USAGE;
}

/* A process that another one started leaves messages to it. */
static bool speaks(const options *o)
{
    return strcmp(o->command, "worker") != 0 && strcmp(o->command, "peer") != 0;
}

int main(int argc, char **argv)
{
    options o;
    bool stop;
    command_begin();
    int status = options_parse(&o, argc, argv, &stop);
    if (!stop && (o.shard.stages || o.shard.micro_batch || o.shard.cut || o.shard.by)) {
        fail(&o, "--shard and its options are those of prony-mpi: mpirun -n P prony-mpi %s MODEL --shard P", o.command);
        status = EXIT_USAGE;
    } else if (!stop && o.limits.send_model) {
        fail(&o, "--send-model sends to the ranks of prony-mpi: mpirun -n P prony-mpi %s MODEL --send-model",
             o.command);
        status = EXIT_USAGE;
    } else if (!stop && o.history.file && history_refuse(&o) != EXIT_DONE) {
        status = EXIT_USAGE;
    } else if (!stop && (status = ranges_begin(&o, speaks(&o))) == EXIT_DONE) {
        interrupt_begin(&o);
        status = interrupt_status(dispatch(&o));
        if (status == EXIT_DONE || status == EXIT_VERDICT) say_next_steps(&o);
    }
    options_free(&o);
    return command_end(status);
}
