/* Which commands deal work to ranks, and their usage. deal_eval.c and deal_load.c do the work. */
#include "bench/cluster/deal.h"

#include <string.h>

bool deal_takes(const options *o)
{
    if (o->shard.stages) return false;
    return strcmp(o->command, "eval") == 0 || (strcmp(o->command, "bench") == 0 && o->load.scenario);
}

static int deal_check_usage(const sharded *s)
{
    const options *o = s->o;
    const bool evaluates = strcmp(o->command, "eval") == 0;
    if (o->shard.by || o->shard.cut || o->shard.micro_batch)
        return fail(o, "--shard-by, --shard-cut and --micro-batch need --shard"), EXIT_USAGE;
    if (evaluates && o->argument_count < 2) return fail(o, "eval needs MODEL and DATA"), EXIT_USAGE;
    if (evaluates && (o->accuracy.enabled || o->accuracy.against_count || o->precision.count > 1))
        return fail(o, "over ranks, eval goes without --accuracy, --against and lists of precisions"), EXIT_USAGE;
    if (!evaluates && strcmp(o->load.scenario, "offline") != 0)
        return fail(o, "over ranks, bench has the scenario offline alone, not '%s'", o->load.scenario), EXIT_USAGE;
    if (!evaluates && (o->load.with_load || o->measuring.processes > 1))
        return fail(o, "over ranks, bench --scenario offline goes without --with-load and --processes"), EXIT_USAGE;
    return EXIT_DONE;
}

static int deal_run_rank(sharded *s)
{
    static char failure[PRONY_ERROR_MESSAGE_BYTES];
    if (s->pipe.rank != 0) fail_into(failure, sizeof failure); /* rank 0 speaks for all */
    int code = shard_meet(s, deal_check_usage);
    if (code == EXIT_DONE) code = strcmp(s->o->command, "eval") == 0 ? deal_eval_run(s) : deal_load_run(s);
    if (s->pipe.rank == 0) return code;
    if (code == EXIT_FAILED && *failure && !s->pipe.lost) pipeline_fail(&s->pipe, failure);
    return shard_take_last_word(s);
}

int deal_run(const options *o, bool *together)
{
    return shard_run_ranks(o, deal_run_rank, together);
}
