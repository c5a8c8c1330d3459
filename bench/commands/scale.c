/* prony scale MODEL: measures a study block by block on this machine. */
#include "bench/process/interrupt.h"
#include "bench/commands/scale.h"

static int scale_command_measure(scale_job *job)
{
    prony_study_task task;
    int code = EXIT_DONE;
    while (code == EXIT_DONE && !interrupted() && prony_study_next(job->study, &task)) {
        scale_say_progress(job);
        code = scale_run_task(job->o, job->study, &task, scale_limit(job->o, &task));
        if (code == EXIT_DONE && !interrupted()) scale_save_in_turn(job);
    }
    clear_progress();
    return code;
}

int command_scale(const options *o)
{
    prony_error error = {0};
    scale_job job = {.o = o};
    int code = scale_check(o);
    if (code == EXIT_DONE && load_model(o, &job.model, o->arguments[0], &error) != PRONY_OK)
        code = report_error(o, &error);
    if (code == EXIT_DONE) code = scale_open(&job);
    if (code == EXIT_DONE && prony_study_node_count(job.study))
        code = fail(o, "'%s' is a study over %zu nodes: prony-mpi scale --resume goes on with it", o->files.json,
                    prony_study_node_count(job.study));
    if (code == EXIT_DONE) code = scale_command_measure(&job);
    if (code == EXIT_DONE) code = scale_finish(&job);
    scale_release(&job);
    return code;
}
