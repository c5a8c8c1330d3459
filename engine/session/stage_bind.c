/* The program of one stage. */
#include "engine/rewrites/rewrite.h"
#include "engine/session/shard.h"

prony_status prn_stage_bind(prn_program **out, const prn_stage *stage, bool rewrites, prony_error *error)
{
    const prony_model *whole = stage->whole;
    const prn_bind_options bind = {.inputs = stage->inputs, .input_count = stage->input_count};
    PRN_TRY(prn_program_bind(out, whole, &whole->file->graph, NULL, NULL, &bind, error));
    if (rewrites) PRN_TRY(prn_program_rewrite(*out, error));
    return prn_program_narrow(*out, stage, error);
}
