/* What the command line says, as the options that the library takes. */
#include "bench/command.h"

#include <stdint.h>
#include <string.h>

bool forms_need_events(const options *o)
{
    if (o->output_dir && strcmp(o->command, "profile") == 0) return true;
    for (size_t i = 0; i < o->form_count; i++)
        if (o->forms[i].format == PRONY_FORMAT_HTML || o->forms[i].format == PRONY_FORMAT_SVG) return true;
    return false;
}

prony_session_options session_options(const options *o)
{
    prony_session_options s = PRONY_SESSION_OPTIONS_INIT;
    s.intra_op_threads = o->intra_op;
    s.inter_op_threads = o->inter_op;
    s.precision = o->precision;
    s.affinity = o->affinity;
    s.dims = o->dims;
    s.dim_count = o->dim_count;
    s.max_dims = o->max_dims;
    s.max_dim_count = o->max_dim_count;
    s.shapes = o->shapes;
    s.shape_count = o->shape_count;
    s.batch = o->batch;
    s.no_rewrites = o->no_rewrites;
    s.no_help = o->no_help;
    s.no_reuse = o->no_reuse;
    s.max_loop_trips = o->max_loop_trips;
    s.free_dims = PRONY_FREE_ASK;
    s.tune = o->tune ? o->fresh ? PRONY_TUNE_AGAIN : PRONY_TUNE : PRONY_TUNE_OFF;
    s.record_memory = o->memory || forms_need_events(o);
    return s;
}

prony_profile_options profile_options(const options *o)
{
    prony_profile_options p = PRONY_PROFILE_OPTIONS_INIT;
    p.warmup_runs = o->warmup;
    p.runs = o->runs;
    p.max_seconds = o->seconds;
    p.trace_threads = strcmp(o->command, "profile") == 0;
    p.count_hardware = o->counters;
    p.measure_cost = strcmp(o->command, "profile") == 0;
    if (want_progress(o)) {
        p.progress = show_progress;
        p.progress_user = (void *)(uintptr_t)o;
    }
    return p;
}

const prony_image_options *image_options(const options *o)
{
    return o->preprocess ? &o->image : NULL;
}

prony_write_options write_options(const options *o)
{
    prony_write_options w = PRONY_WRITE_OPTIONS_INIT;
    w.color = want_color(o);
    w.width = terminal_width();
    w.levels = o->levels;
    w.top = o->top;
    w.sort = o->sort;
    w.filter = o->filter;
    w.all = o->all;
    w.memory = o->memory;
    w.module_depth = o->depth;
    return w;
}
