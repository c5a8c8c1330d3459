/* A study read back from its JSON. Only what was measured and planned is read: what follows from it is computed anew.
 * Nothing in the file is trusted: indices and numbers are checked before they are used.
 */
#include "profiler/report/report_read.h"
#include "profiler/study/study_io.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void prn_study_read_times(prn_json_reader *j, const prn_json_value *object, const char *key, int64_t **out,
                          size_t *count)
{
    const prn_json_value *array = prn_json_get_array(j, object, key, true, count);
    int64_t *times = prn_json_room(j, *count, sizeof *times);
    size_t i = 0;
    for (const prn_json_value *e = prn_json_first(array); array && times && e; e = prn_json_next(e), i++) {
        if (!prn_json_element_i64(j, e, key, &times[i])) break;
        if (times[i] < 0) prn_json_bad(j, key, "a time of %lld ns", (long long)times[i]);
    }
    *out = times;
    if (!array || !times || j->status != PRONY_OK) *count = 0;
}

void prn_study_take_part(prn_json_reader *j, const prn_json_value *array, prn_study_part *out)
{
    int64_t *fields[] = {&out->time_ns, &out->tasks, &out->members, &out->busy_ns, &out->longest_ns, &out->wake_ns};
    size_t i = 0;
    for (const prn_json_value *e = prn_json_first(array); e && j->status == PRONY_OK; e = prn_json_next(e), i++)
        if (i < 6) (void)prn_json_element_i64(j, e, "operators", fields[i]);
    if (i != 6 && j->status == PRONY_OK)
        prn_json_bad(j, "operators", "6 figures of an operator are expected, not %zu", i);
}

void prn_study_read_part(prn_json_reader *j, const prn_json_value *object, const char *key, prn_study_part *out)
{
    size_t count;
    const prn_json_value *array = prn_json_get_array(j, object, key, true, &count);
    if (array) prn_study_take_part(j, array, out);
}

void prn_study_read_operator(prn_json_reader *j, const prn_json_value *object, prn_study_operator *out)
{
    prn_json_get_string(j, object, "name", true, &out->name);
    prn_json_get_string(j, object, "op", true, &out->op);
    prn_json_get_string(j, object, "kernel", true, &out->kernel);
    prn_json_get_u64(j, object, "flops", true, &out->flops);
    prn_json_get_u64(j, object, "bytes", true, &out->bytes);
    prn_json_get_bool(j, object, "on_path", true, &out->on_path);
}

static void read_schema(prn_json_reader *j, const prn_json_value *root)
{
    const char *schema = NULL;
    if (!prn_json_get_string(j, root, "schema", true, &schema)) return;
    if (strcmp(schema, PRN_STUDY_SCHEMA) == 0) return;
    if (strncmp(schema, "prony.study/", 12) == 0)
        prn_json_bad(j, "schema", "\"%.60s\" is another version; this one reads " PRN_STUDY_SCHEMA, schema);
    else
        prn_json_bad(j, "schema", "\"%.60s\" is no study of Prony; " PRN_STUDY_SCHEMA " is expected", schema);
}

static void read_configuration(prn_json_reader *j, const prn_json_value *object, prn_study_configuration *c)
{
    uint64_t group = 0;
    prn_json_get_int(j, object, "intra_op_threads", true, &c->intra_op);
    prn_json_get_int(j, object, "inter_op_threads", true, &c->inter_op);
    prn_json_get_i64(j, object, "batch", false, &c->batch);
    prn_json_get_string(j, object, "precision", true, &c->precision);
    prn_json_get_u64(j, object, "group", true, &group);
    prn_json_get_bool(j, object, "baseline", true, &c->baseline);
    prn_json_get_bool(j, object, "again", true, &c->again);
    prn_json_get_bool(j, object, "beyond_quota", true, &c->beyond);
    prn_json_get_i64(j, object, "samples", false, &c->samples);
    prn_json_get_string(j, object, "refused", false, &c->refused);
    c->group = (size_t)group;
    if (j->status != PRONY_OK) return;
    if (c->intra_op < 1 || c->intra_op > 1024 || c->inter_op < 1 || c->inter_op > 1024 || c->batch < 0 ||
        c->samples < 0 || group >= PRN_STUDY_MOST_CONFIGURATIONS)
        prn_json_bad(j, "intra_op_threads", "a configuration of %d x %d threads, batch %lld, is none", c->inter_op,
                     c->intra_op, (long long)c->batch);
    size_t count = 0, i = 0;
    const prn_json_value *array = prn_json_get_array(j, object, "operators", false, &count);
    c->operators = array ? prn_json_room(j, count, sizeof *c->operators) : NULL;
    for (const prn_json_value *e = prn_json_first(array); c->operators && e; e = prn_json_next(e), i++) {
        if (!prn_json_element_is_object(j, e, "operators")) return;
        prn_study_read_operator(j, e, &c->operators[i]);
    }
    c->operator_count = c->operators ? count : 0;
}

static void read_arguments(prn_json_reader *j, const prn_json_value *plan, prony_study *s)
{
    size_t i = 0;
    const prn_json_value *array = prn_json_get_array(j, plan, "arguments", true, &s->argument_count);
    const char **arguments = prn_json_room(j, s->argument_count + 1, sizeof *arguments);
    for (const prn_json_value *e = prn_json_first(array); arguments && e; e = prn_json_next(e))
        if (!prn_json_element_string(j, e, "arguments", &arguments[i++])) return;
    s->arguments = arguments;
}

static void read_order(prn_json_reader *j, const prn_json_value *plan, prony_study *s)
{
    size_t i = 0;
    const prn_json_value *array = prn_json_get_array(j, plan, "order", true, &s->order_count);
    s->order = prn_json_room(j, s->order_count, sizeof *s->order);
    for (const prn_json_value *e = prn_json_first(array); s->order && e; e = prn_json_next(e), i++) {
        int64_t value = 0;
        if (!prn_json_element_i64(j, e, "order", &value)) return;
        if (value < 0 || (uint64_t)value >= s->configuration_count) {
            prn_json_bad(j, "order", "there is no configuration %lld", (long long)value);
            return;
        }
        s->order[i] = (uint32_t)value;
    }
}

static void read_plan(prn_json_reader *j, const prn_json_value *root, prony_study *s)
{
    const prn_json_value *plan = prn_json_get_object(j, root, "plan", true);
    if (!plan) return;
    prn_read_enter(j, "plan");
    prn_json_get_u64(j, plan, "seed", true, &s->seed);
    prn_json_get_bool(j, plan, "weak", true, &s->weak);
    prn_json_get_int(j, plan, "processes", true, &s->processes);
    prn_json_get_i64(j, plan, "runs", true, &s->runs);
    prn_json_get_double(j, plan, "seconds", true, &s->seconds);
    prn_json_get_i64(j, plan, "warmup_runs", true, &s->warmup_runs);
    prn_json_get_double(j, plan, "budget_seconds", true, &s->budget_seconds);
    prn_json_get_int(j, plan, "usable_processors", true, &s->usable);
    read_arguments(j, plan, s);
    size_t count = 0;
    const prn_json_value *array = prn_json_get_array(j, plan, "configurations", true, &count);
    if (j->status == PRONY_OK && (count == 0 || count > PRN_STUDY_MOST_CONFIGURATIONS))
        prn_json_bad(j, "configurations", "%zu of them; 1 to %d are possible", count, PRN_STUDY_MOST_CONFIGURATIONS);
    if (j->status == PRONY_OK && (s->processes < 1 || s->processes > PRN_STUDY_MOST_PROCESSES || s->usable < 1 ||
                                  s->runs < 0 || !(s->seconds > 0) || !(s->budget_seconds >= 0)))
        prn_json_bad(j, "processes", "a number of the plan is out of range");
    s->configurations = j->status == PRONY_OK ? prn_json_room(j, count, sizeof *s->configurations) : NULL;
    for (const prn_json_value *e = prn_json_first(array); s->configurations && e && j->status == PRONY_OK;
         e = prn_json_next(e)) {
        if (!prn_json_element_is_object(j, e, "configurations")) return;
        snprintf(j->where, sizeof j->where, "plan.configurations[%zu]", s->configuration_count);
        read_configuration(j, e, &s->configurations[s->configuration_count++]);
    }
    prn_read_enter(j, "plan");
    if (j->status == PRONY_OK) read_order(j, plan, s);
    prn_read_enter(j, "");
}

static void read_state(prn_json_reader *j, const prn_json_value *block, const char *key, prony_machine_state *out)
{
    *out = (prony_machine_state){.temperature_c = NAN, .throttle_events = -1};
    const prn_json_value *state = prn_json_get_object(j, block, key, true);
    if (!state) return;
    prn_json_get_i64(j, state, "time_ns", true, &out->time_ns);
    prn_json_get_double(j, state, "frequency_hz", false, &out->frequency_hz);
    prn_json_get_double(j, state, "temperature_c", false, &out->temperature_c);
    prn_json_get_i64(j, state, "throttle_events", false, &out->throttle_events);
    prn_json_get_u64(j, state, "busy_ns", false, &out->busy_ns);
    prn_json_get_u64(j, state, "total_ns", false, &out->total_ns);
    prn_json_get_u64(j, state, "steal_ns", false, &out->steal_ns);
    prn_json_get_u64(j, state, "context_switches", false, &out->context_switches);
}

static void read_parts(prn_json_reader *j, const prn_json_value *object, const prony_study *s, prn_study_block *b)
{
    size_t count = 0, i = 0;
    const prn_json_value *array = prn_json_get_array(j, object, "operators", false, &count);
    if (!array) return;
    if (count != s->configurations[b->configuration].operator_count) {
        prn_json_bad(j, "operators", "%zu of them; the configuration has %zu", count,
                     s->configurations[b->configuration].operator_count);
        return;
    }
    b->parts = prn_json_room(j, count, sizeof *b->parts);
    for (const prn_json_value *e = prn_json_first(array); b->parts && e && j->status == PRONY_OK;
         e = prn_json_next(e), i++)
        prn_study_take_part(j, e, &b->parts[i]);
}

static void read_block(prn_json_reader *j, const prn_json_value *object, const prony_study *s, prn_study_block *b)
{
    uint64_t configuration = 0;
    prn_json_get_u64(j, object, "configuration", true, &configuration);
    prn_json_get_int(j, object, "process", true, &b->process);
    prn_json_get_bool(j, object, "again", true, &b->again);
    if (j->status == PRONY_OK && configuration >= s->configuration_count) {
        prn_json_bad(j, "configuration", "there is none of number %llu", (unsigned long long)configuration);
        return;
    }
    b->configuration = (size_t)configuration;
    read_state(j, object, "before", &b->before);
    read_state(j, object, "after", &b->after);
    prn_json_get_i64(j, object, "cpu_ns", true, &b->cpu_ns);
    prn_json_get_string(j, object, "failure", false, &b->failure);
    prn_json_get_i64(j, object, "warmup_runs", false, &b->warmup_runs);
    prn_json_get_bool(j, object, "warmup_detected", false, &b->warmup_detected);
    prn_json_get_i64(j, object, "involuntary_switches", false, &b->involuntary_switches);
    prn_study_read_times(j, object, "samples_ns", &b->samples_ns, &b->sample_count);
    if (j->status == PRONY_OK && !b->failure && b->sample_count == 0)
        prn_json_bad(j, "samples_ns", "a block without samples says why it failed");
    if (j->status == PRONY_OK) read_parts(j, object, s, b);
    if (j->status == PRONY_OK) prn_study_judge_block(b);
}

static void read_blocks(prn_json_reader *j, const prn_json_value *root, prony_study *s)
{
    size_t count = 0;
    const prn_json_value *array = prn_json_get_array(j, root, "blocks", true, &count);
    for (const prn_json_value *e = prn_json_first(array); e && j->status == PRONY_OK; e = prn_json_next(e)) {
        snprintf(j->where, sizeof j->where, "blocks[%zu]", s->block_count);
        if (!prn_json_element_is_object(j, e, "blocks")) return;
        if (!PRN_GROW(s->blocks, s->block_capacity, s->block_count + 1)) {
            j->status = prn_no_memory(j->error);
            return;
        }
        s->blocks[s->block_count] = (prn_study_block){0};
        read_block(j, e, s, &s->blocks[s->block_count++]);
    }
    prn_read_enter(j, "");
}

prony_status prn_study_read(prony_study **out, const char *file, const char *text, size_t size, prony_error *error)
{
    prn_json_value *root = NULL;
    PRN_TRY(prn_json_document_parse(&root, file, text, size, error));
    prony_study *s = prn_calloc(1, sizeof *s);
    if (s) s->manifest = prn_calloc(1, sizeof *s->manifest);
    if (!s || !s->manifest) {
        prn_json_document_release(root);
        prn_free(s);
        return prn_no_memory(error);
    }
    prn_json_reader j = {.pool = &s->pool, .file = file, .error = error};
    read_schema(&j, root);
    const prn_json_value *manifest = prn_json_get_object(&j, root, "manifest", true);
    prn_report_reader reader = {.json = {.pool = &s->manifest->pool, .file = file, .error = error},
                                .report = s->manifest};
    if (manifest && j.status == PRONY_OK) {
        prn_read_manifest(&reader, manifest);
        j.status = reader.json.status;
    }
    if (j.status == PRONY_OK) read_plan(&j, root, s);
    if (j.status == PRONY_OK) read_blocks(&j, root, s);
    prn_json_document_release(root);
    if (j.status == PRONY_OK)
        *out = s;
    else
        prony_study_release(s);
    return j.status;
}
