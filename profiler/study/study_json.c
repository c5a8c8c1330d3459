/* The study as JSON, "prony.study/1", and its samples as CSV. Reads the study only. */
#include "profiler/forms/form_out.h"
#include "profiler/forms/report_json.h"
#include "profiler/study/study_io.h"

#include <math.h>
#include <string.h>

void prn_study_json_times(prn_json *j, const char *key, const int64_t *times, size_t count)
{
    prn_json_open(j, key, '[', true);
    for (size_t i = 0; i < count; i++) prn_json_int(j, NULL, times[i]);
    prn_json_close(j, ']');
}

void prn_study_json_part(prn_json *j, const char *key, const prn_study_part *part)
{
    const int64_t values[] = {part->time_ns, part->tasks,      part->members,
                              part->busy_ns, part->longest_ns, part->wake_ns};
    prn_study_json_times(j, key, values, sizeof values / sizeof values[0]);
}

static void write_pair(prn_json *j, const char *key, const double pair[2])
{
    prn_json_open(j, key, '[', true);
    for (int end = 0; end < 2; end++) prn_json_double(j, NULL, pair[end]);
    prn_json_close(j, ']');
}

static void write_strings(prn_json *j, const char *key, const char *const *strings, size_t count)
{
    prn_json_open(j, key, '[', false);
    for (size_t i = 0; i < count; i++) prn_json_string(j, NULL, strings[i]);
    prn_json_close(j, ']');
}

static void write_configuration(prn_json *j, const prn_study_configuration *c)
{
    prn_json_open(j, NULL, '{', false);
    prn_json_int(j, "intra_op_threads", c->intra_op);
    prn_json_int(j, "inter_op_threads", c->inter_op);
    if (c->batch)
        prn_json_int(j, "batch", c->batch);
    else
        prn_json_null(j, "batch");
    prn_json_string(j, "precision", c->precision);
    prn_json_uint(j, "group", c->group);
    prn_json_bool(j, "baseline", c->baseline);
    prn_json_bool(j, "again", c->again);
    prn_json_bool(j, "beyond_quota", c->beyond);
    if (c->samples) prn_json_int(j, "samples", c->samples);
    if (c->refused) prn_json_string(j, "refused", c->refused);
    if (c->operator_count) prn_json_open(j, "operators", '[', false);
    for (size_t i = 0; i < c->operator_count; i++) {
        const prn_study_operator *o = &c->operators[i];
        prn_json_open(j, NULL, '{', true);
        prn_json_string(j, "name", o->name);
        prn_json_string(j, "op", o->op);
        prn_json_string(j, "kernel", o->kernel);
        prn_json_uint(j, "flops", o->flops);
        prn_json_uint(j, "bytes", o->bytes);
        prn_json_bool(j, "on_path", o->on_path);
        prn_json_close(j, '}');
    }
    if (c->operator_count) prn_json_close(j, ']');
    prn_json_close(j, '}');
}

static void write_plan(prn_json *j, const prony_study *s)
{
    prn_json_open(j, "plan", '{', false);
    prn_json_uint(j, "seed", s->seed);
    prn_json_bool(j, "weak", s->weak);
    prn_json_int(j, "processes", s->processes);
    prn_json_int(j, "runs", s->runs);
    prn_json_double(j, "seconds", s->seconds);
    prn_json_int(j, "warmup_runs", s->warmup_runs);
    prn_json_double(j, "budget_seconds", s->budget_seconds);
    prn_json_int(j, "usable_processors", s->usable);
    write_strings(j, "arguments", s->arguments, s->argument_count);
    prn_json_open(j, "configurations", '[', false);
    for (size_t i = 0; i < s->configuration_count; i++) write_configuration(j, &s->configurations[i]);
    prn_json_close(j, ']');
    prn_json_open(j, "order", '[', true);
    for (size_t i = 0; i < s->order_count; i++) prn_json_uint(j, NULL, s->order[i]);
    prn_json_close(j, ']');
    prn_json_close(j, '}');
}

static void write_state(prn_json *j, const char *key, const prony_machine_state *state)
{
    prn_json_open(j, key, '{', true);
    prn_json_int(j, "time_ns", state->time_ns);
    if (state->frequency_hz > 0) prn_json_double(j, "frequency_hz", state->frequency_hz);
    if (!isnan(state->temperature_c)) prn_json_double(j, "temperature_c", state->temperature_c);
    if (state->throttle_events >= 0) prn_json_int(j, "throttle_events", state->throttle_events);
    if (state->total_ns) {
        prn_json_uint(j, "busy_ns", state->busy_ns);
        prn_json_uint(j, "total_ns", state->total_ns);
        prn_json_uint(j, "steal_ns", state->steal_ns);
    }
    prn_json_uint(j, "context_switches", state->context_switches);
    prn_json_close(j, '}');
}

static void write_block(prn_json *j, const prony_study *s, const prn_study_block *b)
{
    prn_json_open(j, NULL, '{', false);
    prn_json_uint(j, "configuration", b->configuration);
    prn_json_int(j, "process", b->process);
    prn_json_bool(j, "again", b->again);
    write_state(j, "before", &b->before);
    write_state(j, "after", &b->after);
    prn_json_int(j, "cpu_ns", b->cpu_ns);
    if (!isnan(b->others)) prn_json_double(j, "others", b->others);
    if (!isnan(b->steal)) prn_json_double(j, "steal", b->steal);
    if (b->failure) prn_json_string(j, "failure", b->failure);
    prn_json_string(j, "disturbed", b->disturbed);
    if (!b->failure) {
        prn_json_int(j, "warmup_runs", b->warmup_runs);
        prn_json_bool(j, "warmup_detected", b->warmup_detected);
        prn_json_int(j, "involuntary_switches", b->involuntary_switches);
        prn_json_uint(j, "changes", b->changes);
    }
    prn_study_json_times(j, "samples_ns", b->samples_ns, b->sample_count);
    if (b->parts) {
        prn_json_open(j, "operators", '[', true);
        for (size_t i = 0; i < s->configurations[b->configuration].operator_count; i++)
            prn_study_json_part(j, NULL, &b->parts[i]);
        prn_json_close(j, ']');
    }
    prn_json_close(j, '}');
}

static void write_results(prn_json *j, const prony_study *s)
{
    prn_json_open(j, "results", '[', false);
    for (size_t i = 0; i < s->configuration_count; i++) {
        const prony_study_result *r = &s->results[i];
        prn_json_open(j, NULL, '{', false);
        prn_json_uint(j, "configuration", i);
        prn_json_uint(j, "processes", r->processes);
        prn_json_double(j, "median_ns", r->processes ? r->median_ns : NAN);
        write_pair(j, "ci95", r->ci95_ns);
        prn_json_double(j, "samples_per_second", r->processes ? r->samples_per_second : NAN);
        prn_json_double(j, "speedup", r->speedup);
        write_pair(j, "speedup_ci95", r->speedup_ci95);
        prn_json_double(j, "efficiency", r->efficiency);
        write_pair(j, "efficiency_ci95", r->efficiency_ci95);
        prn_json_double(j, "karp_flatt", r->karp_flatt);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

static void write_fit(prn_json *j, const prn_study_fit *f)
{
    const prn_law_fit *fit = &f->fit;
    prn_json_open(j, NULL, '{', false);
    prn_json_uint(j, "group", f->group);
    prn_json_string(j, "over", f->inter ? "inter_op_threads" : "intra_op_threads");
    prn_json_string(j, "reason", fit->known ? NULL : f->reason);
    if (fit->known) {
        prn_json_double(j, "scale", fit->scale);
        prn_json_double(j, "alpha", fit->alpha);
        write_pair(j, "alpha_ci95", fit->alpha_ci95);
        if (f->law == PRN_LAW_USL) {
            prn_json_double(j, "beta", fit->beta);
            write_pair(j, "beta_ci95", fit->beta_ci95);
            prn_json_double(j, "peak", fit->peak);
            write_pair(j, "peak_ci95", fit->peak_ci95);
        }
        prn_json_double(j, "limit", fit->limit);
        prn_json_double(j, "residual", fit->rms);
    }
    prn_json_close(j, '}');
}

static void write_fits(prn_json *j, const prony_study *s)
{
    static const struct {
        prn_law law;
        const char *key;
    } laws[] = {{PRN_LAW_AMDAHL, "amdahl"}, {PRN_LAW_USL, "usl"}, {PRN_LAW_GUSTAFSON, "gustafson"}};
    prn_json_open(j, "fits", '{', false);
    for (size_t l = 0; l < 3; l++) {
        prn_json_open(j, laws[l].key, '[', false);
        for (size_t i = 0; i < s->fit_count; i++)
            if (s->fits[i].law == laws[l].law) write_fit(j, &s->fits[i]);
        prn_json_close(j, ']');
    }
    prn_json_close(j, '}');
}

static void write_losses(prn_json *j, const prony_study *s)
{
    prn_json_open(j, "operators", '[', false);
    for (size_t i = 0; i < s->loss_count; i++) {
        const prn_study_loss *l = &s->losses[i];
        const prn_study_operator *o = &s->configurations[l->configuration].operators[l->operator];
        prn_json_open(j, NULL, '{', true);
        prn_json_uint(j, "configuration", l->configuration);
        prn_json_uint(j, "index", l->operator);
        prn_json_string(j, "name", o->name);
        prn_json_string(j, "op", o->op);
        prn_json_double(j, "time_ns", l->time_ns);
        prn_json_double(j, "serial_ns", l->serial_ns);
        prn_json_double(j, "lost_ns", l->lost_ns);
        prn_json_double(j, "efficiency", l->efficiency);
        prn_json_string(j, "reason", l->reason);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
    prn_json_open(j, "limits", '[', false);
    for (size_t i = 0; i < s->limit_count; i++) {
        prn_json_open(j, NULL, '{', true);
        prn_json_uint(j, "group", s->limits[i].group);
        prn_json_int(j, "processors", s->limits[i].processors);
        prn_json_double(j, "speedup", s->limits[i].speedup);
        prn_json_string(j, "why", s->limits[i].why);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
}

static void write_quality(prn_json *j, const prn_study_quality *q)
{
    prn_json_open(j, "quality", '{', false);
    prn_json_string(j, "verdict", q->verdict);
    prn_json_string(j, "aa", q->aa);
    prn_json_double(j, "aa_ratio", q->aa_ratio);
    write_pair(j, "aa_ci95", q->aa_ci95);
    prn_json_uint(j, "blocks", q->blocks);
    prn_json_uint(j, "disturbed_blocks", q->disturbed);
    prn_json_uint(j, "failed_blocks", q->failed);
    prn_json_double(j, "widest", q->widest);
    write_strings(j, "notes", q->notes, q->note_count);
    prn_json_close(j, '}');
}

static void write_comparison(prn_json *j, const prony_study *s)
{
    prn_json_open(j, "comparison", '[', false);
    for (size_t i = 0; i < s->difference_count; i++) {
        const prn_study_difference *d = &s->differences[i];
        prn_json_open(j, NULL, '{', true);
        prn_json_uint(j, "configuration", d->configuration);
        if (!isnan(d->within)) prn_json_double(j, "same_within", d->within);
        prn_json_string(j, "verdict", d->verdict);
        prn_json_double(j, "effect", d->ratio);
        write_pair(j, "interval", d->interval);
        prn_json_double(j, "p", d->p);
        prn_json_double(j, "earlier_median_ns", d->earlier_ns);
        prn_json_string(j, "why", d->why);
        prn_json_close(j, '}');
    }
    prn_json_close(j, ']');
    write_strings(j, "manifest_differences", s->manifest_differences, s->manifest_difference_count);
}

prony_status prn_study_write_json(const prony_study *s, const prony_write_options *options, prony_write_fn write,
                                  void *user, prony_error *error)
{
    (void)options;
    prn_pool pool = {0};
    prn_json *j = prn_alloc(sizeof *j);
    if (!j) return prn_no_memory(error);
    prn_json_begin(j, write, user, error);
    prn_json_open(j, NULL, '{', false);
    prn_json_string(j, "schema", PRN_STUDY_SCHEMA);
    prn_json_open(j, "manifest", '{', false);
    prn_json_manifest(j, s->manifest);
    prn_json_roof(j, s->manifest);
    prn_json_close(j, '}');
    write_plan(j, s);
    prn_json_open(j, "blocks", '[', false);
    for (size_t i = 0; i < s->block_count; i++) write_block(j, s, &s->blocks[i]);
    prn_json_close(j, ']');
    if (s->analysed) {
        write_results(j, s);
        write_fits(j, s);
        write_losses(j, s);
        write_quality(j, &s->quality);
        prn_json_string(j, "statement", prn_study_statement(s, &pool));
    }
    if (s->compared) write_comparison(j, s);
    prn_json_close(j, '}');
    prony_status status = prn_json_end(j);
    prn_pool_release(&pool);
    prn_free(j);
    return status;
}

/* ---- CSV ---- */

prony_status prn_study_write_csv(const prony_study *s, const prony_write_options *options, prony_write_fn write,
                                 void *user, prony_error *error)
{
    (void)options;
    prn_out out;
    prn_out_begin(&out, write, user, error);
    prn_out_text(&out,
                 "block,configuration,intra_op_threads,inter_op_threads,batch,precision,baseline,again,beyond_quota,"
                 "process,disturbed,run,latency_ns\n");
    for (size_t i = 0; i < s->block_count; i++) {
        const prn_study_block *b = &s->blocks[i];
        const prn_study_configuration *c = &s->configurations[b->configuration];
        for (size_t k = 0; k < b->sample_count; k++) {
            prn_out_format(&out, "%zu,%zu,%d,%d,%lld,%s,%d,%d,%d,%d,%s,%zu,%lld\n", i, b->configuration, c->intra_op,
                           c->inter_op, (long long)c->samples, c->precision, c->baseline, c->again, c->beyond,
                           b->process, b->disturbed ? b->disturbed : "", k, (long long)b->samples_ns[k]);
        }
    }
    return prn_out_end(&out);
}
