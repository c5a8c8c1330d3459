/* The options of the library, as the command line sets them. */
#include "bench/command.h"

#include <stdint.h>
#include <string.h>

bool forms_need_events(const options *o)
{
    if (o->files.output_dir && strcmp(o->command, "profile") == 0) return true;
    for (size_t i = 0; i < o->files.export_count; i++)
        if (o->files.exports[i].format == PRONY_FORMAT_HTML || o->files.exports[i].format == PRONY_FORMAT_SVG)
            return true;
    return false;
}

static prony_device_split device_split_of(const char *mode)
{
    if (mode && strcmp(mode, "memory") == 0) return PRONY_DEVICE_SPLIT_MEMORY;
    return mode && strcmp(mode, "none") == 0 ? PRONY_DEVICE_SPLIT_NONE : PRONY_DEVICE_SPLIT_AUTO;
}

prony_session_options session_options(const options *o)
{
    prony_session_options s = PRONY_SESSION_OPTIONS_INIT;
    s.intra_op_threads = o->threads.intra_op;
    s.inter_op_threads = o->threads.inter_op;
    s.precision = o->precision.name;
    s.device = o->plan.device;
    s.device_memory_limit_bytes = (uint64_t)o->plan.device_bytes;
    s.device_split = device_split_of(o->plan.device_split);
    s.affinity = o->threads.affinity;
    s.dims = o->model.dims;
    s.dim_count = o->model.dim_count;
    s.max_dims = o->model.max_dims;
    s.max_dim_count = o->model.max_dim_count;
    s.shapes = o->model.shapes;
    s.shape_count = o->model.shape_count;
    s.batch = o->model.batch;
    s.no_rewrites = o->plan.no_rewrites;
    s.no_work_stealing = o->threads.no_work_stealing;
    s.no_reuse = o->plan.no_reuse;
    s.max_loop_trips = o->limits.max_loop_trips;
    s.free_dims = PRONY_FREE_ASK;
    s.tune = o->plan.tune ? o->plan.no_cache ? PRONY_TUNE_NO_CACHE : PRONY_TUNE : PRONY_TUNE_OFF;
    s.record_memory = o->shown.memory || forms_need_events(o);
    return s;
}

prony_profile_options profile_options(const options *o)
{
    prony_profile_options p = PRONY_PROFILE_OPTIONS_INIT;
    p.warmup_runs = o->measuring.warmup;
    p.runs = o->measuring.runs;
    p.max_seconds = o->measuring.seconds;
    p.trace_threads = strcmp(o->command, "profile") == 0;
    p.count_hardware = o->measuring.counters;
    p.measure_cost = strcmp(o->command, "profile") == 0;
    if (want_progress(o)) {
        p.progress = show_progress;
        p.progress_user = (void *)(uintptr_t)o;
    }
    return p;
}

const prony_image_options *image_options(const options *o)
{
    return o->model.preprocess ? &o->model.image : NULL;
}

prony_write_options write_options(const options *o)
{
    prony_write_options w = PRONY_WRITE_OPTIONS_INIT;
    w.color = want_color(o);
    w.width = terminal_width();
    w.levels = o->shown.levels;
    w.top = o->shown.top;
    w.sort = o->shown.sort;
    w.filter = o->shown.filter;
    w.all = o->shown.all;
    w.whole_names = want_whole_names();
    w.memory = o->shown.memory;
    w.module_depth = o->shown.depth;
    return w;
}
