/* Reads a "prony.report/1" back: everything that report_json.c writes, but for what it derives (rates, ratios, bounds).
 * Writing what was read gives the same bytes. Nothing in the file is trusted: indices are checked, counts are what the
 * arrays hold. The figures are read in report_read_figures.c, the rows in
 * report_read_rows.c. */
#include "profiler/report/report_read.h"

#include <stdio.h>
#include <string.h>

#define SCHEMA "prony.report/1"

void prn_read_enter(prn_json_reader *j, const char *where)
{
    snprintf(j->where, sizeof j->where, "%s", where);
}

/* ---- what head and rows share ---- */

void prn_read_shape(prn_json_reader *j, const prn_json_value *object, prony_shape *out)
{
    size_t count;
    const prn_json_value *dims = prn_json_get_array(j, object, "shape", false, &count);
    *out = (prony_shape){.rank = -1};
    if (!dims) return;
    if (count > PRONY_MAX_RANK) {
        prn_json_bad(j, "shape", "%zu dimensions, of which there can be %d", count, PRONY_MAX_RANK);
        return;
    }
    out->rank = (int32_t)count;
    size_t d = 0;
    for (const prn_json_value *dim = prn_json_first(dims); dim; dim = prn_json_next(dim), d++) {
        out->dim[d] = -1;
        if (prn_json_is_null(dim)) continue;
        if (prn_json_element_i64(j, dim, "shape", &out->dim[d]) && out->dim[d] < 0)
            prn_json_bad(j, "shape", "a dimension below 0");
    }
}

void prn_read_type(prn_json_reader *j, const prn_json_value *object, prony_kind *kind, prony_dtype *dtype)
{
    const char *name = NULL;
    *kind = PRONY_TENSOR;
    *dtype = PRONY_UNDEFINED;
    if (prn_json_get_string(j, object, "kind", false, &name)) {
        if (strcmp(name, "sequence") == 0)
            *kind = PRONY_SEQUENCE;
        else if (strcmp(name, "optional") == 0)
            *kind = PRONY_OPTIONAL;
        else
            prn_json_bad(j, "kind", "\"%.60s\" is not known", name);
    }
    if (!prn_json_get_string(j, object, "type", false, &name)) return;
    for (int d = 1; d < PRONY_DTYPE_COUNT; d++) {
        if (strcmp(prony_dtype_name((prony_dtype)d), name) != 0) continue;
        *dtype = (prony_dtype)d;
        return;
    }
    prn_json_bad(j, "type", "\"%.60s\" is no element type", name);
}

void prn_read_counts(prn_json_reader *j, const prn_json_value *object, prony_cost *out)
{
    prn_json_get_u64(j, object, "macs", true, &out->macs);
    prn_json_get_u64(j, object, "madds", true, &out->madds);
    prn_json_get_u64(j, object, "flops", true, &out->flops);
    prn_json_get_u64(j, object, "special", true, &out->special);
    prn_json_get_u64(j, object, "int_ops", true, &out->int_ops);
    prn_json_get_u64(j, object, "bytes_read", true, &out->bytes_read);
    prn_json_get_u64(j, object, "bytes_written", true, &out->bytes_written);
    prn_json_get_u64(j, object, "parameters", true, &out->parameters);
}

void prn_read_strings(prn_json_reader *j, const prn_json_value *object, const char *key, const char *const **out,
                      size_t *out_count)
{
    size_t count, i = 0;
    const prn_json_value *array = prn_json_get_array(j, object, key, false, &count);
    const char **list = prn_json_room(j, count, sizeof *list);
    if (!list) return;
    for (const prn_json_value *e = prn_json_first(array); e; e = prn_json_next(e))
        if (!prn_json_element_string(j, e, key, &list[i++])) return;
    *out = list;
    if (out_count) *out_count = i;
}

/* ---- model ---- */

static void read_port(prn_json_reader *j, const prn_json_value *object, prony_port *port)
{
    size_t count, d = 0;
    prn_json_get_string(j, object, "name", true, &port->name);
    prn_read_type(j, object, &port->kind, &port->dtype);
    prn_read_shape(j, object, &port->shape);
    const prn_json_value *names = prn_json_get_array(j, object, "dim_names", false, &count);
    if (count > PRONY_MAX_RANK) {
        prn_json_bad(j, "dim_names", "%zu names, of which there can be %d", count, PRONY_MAX_RANK);
        return;
    }
    for (const prn_json_value *e = prn_json_first(names); e; e = prn_json_next(e), d++)
        if (!prn_json_is_null(e)) prn_json_element_string(j, e, "dim_names", &port->dim_names[d]);
}

static void read_ports(prn_json_reader *j, const prn_json_value *model, const char *key, const prony_port **out,
                       size_t *out_count)
{
    size_t count, i = 0;
    prn_read_enter(j, "model");
    const prn_json_value *array = prn_json_get_array(j, model, key, true, &count);
    prony_port *ports = prn_json_room(j, count, sizeof *ports);
    if (!ports) return;
    for (const prn_json_value *e = prn_json_first(array); e && j->status == PRONY_OK; e = prn_json_next(e), i++) {
        snprintf(j->where, sizeof j->where, "model.%s[%zu]", key, i);
        if (prn_json_element_is_object(j, e, "")) read_port(j, e, &ports[i]);
    }
    *out = ports;
    *out_count = i;
}

static void read_model(prn_json_reader *j, const prn_json_value *root, prn_report_model *m)
{
    const prn_json_value *model = prn_json_get_object(j, root, "model", true);
    prn_read_enter(j, "model");
    m->producer = "";
    prn_json_get_string(j, model, "name", true, &m->name);
    prn_json_get_string(j, model, "sha256", false, &m->sha256);
    prn_json_get_u64(j, model, "file_bytes", true, &m->file_bytes);
    prn_json_get_i64(j, model, "ir_version", true, &m->ir_version);
    prn_json_get_i64(j, model, "opset", true, &m->opset);
    prn_json_get_string(j, model, "producer", false, &m->producer);
    prn_json_get_u64(j, model, "nodes", true, &m->nodes);
    prn_json_get_u64(j, model, "parameters", true, &m->parameters);
    prn_json_get_u64(j, model, "parameter_bytes", true, &m->parameter_bytes);
    read_ports(j, model, "inputs", &m->inputs, &m->input_count);
    read_ports(j, model, "outputs", &m->outputs, &m->output_count);
    prn_read_enter(j, "");
}

/* ---- configuration and system ---- */

static void read_dims(prn_json_reader *j, const prn_json_value *config, prn_report_config *c)
{
    size_t count = 0;
    const prn_json_value *object = prn_json_get_object(j, config, "dims", false);
    for (const prn_json_value *e = prn_json_first(object); e; e = prn_json_next(e)) count++;
    prony_dim *dims = prn_json_room(j, count, sizeof *dims);
    if (!dims) return;
    prn_read_enter(j, "config.dims");
    for (const prn_json_value *e = prn_json_first(object); e && j->status == PRONY_OK; e = prn_json_next(e)) {
        prony_dim *dim = &dims[c->dim_count];
        const char *name = prn_json_key(e);
        dim->name = prn_pool_strndup(j->pool, name, strlen(name));
        if (!dim->name) j->status = prn_no_memory(j->error);
        if (prn_json_element_i64(j, e, name, &dim->value)) c->dim_count++;
    }
    c->dims = dims;
}

static void read_assumed(prn_json_reader *j, const prn_json_value *config, prn_report_config *c)
{
    size_t count = 0;
    const prn_json_value *list = prn_json_get_array(j, config, "assumed_dims", false, &count);
    prony_assumed_dim *rows = list ? prn_json_room(j, count, sizeof *rows) : NULL;
    if (!rows) return;
    prn_read_enter(j, "config.assumed_dims");
    for (const prn_json_value *e = prn_json_first(list); e && j->status == PRONY_OK; e = prn_json_next(e)) {
        prony_assumed_dim *row = &rows[c->assumed_count];
        row->reason = "";
        bool named = prn_json_get_string(j, e, "name", true, &row->name);
        prn_json_get_string(j, e, "reason", false, &row->reason);
        if (named && prn_json_get_i64(j, e, "value", true, &row->value)) c->assumed_count++;
    }
    c->assumed = rows;
}

static void read_config(prn_json_reader *j, const prn_json_value *root, prn_report_config *c)
{
    const prn_json_value *config = prn_json_get_object(j, root, "config", true);
    prn_read_enter(j, "config");
    *c = (prn_report_config){.affinity = "", .affinity_used = "", .affinity_failure = "", .batch = -1, .warmup_runs = -1, .runs = -1, .reuse = true};
    prn_json_get_int(j, config, "intra_op_threads", false, &c->intra_op_threads);
    prn_json_get_int(j, config, "inter_op_threads", false, &c->inter_op_threads);
    prn_json_get_string(j, config, "inter_op_reason", false, &c->inter_op_reason);
    prn_json_get_string(j, config, "affinity", false, &c->affinity);
    prn_json_get_string(j, config, "affinity_used", false, &c->affinity_used);
    prn_json_get_string(j, config, "affinity_failure", false, &c->affinity_failure);
    prn_json_get_i64(j, config, "batch", false, &c->batch);
    prn_json_get_string(j, config, "precision", false, &c->precision);
    prn_json_get_i64(j, config, "warmup_runs", false, &c->warmup_runs);
    prn_json_get_i64(j, config, "runs", false, &c->runs);
    c->seed_known = prn_json_get_u64(j, config, "seed", false, &c->seed);
    prn_json_get_string(j, config, "count_preset", false, &c->count_preset);
    prn_json_get_bool(j, config, "rewrites", true, &c->rewrites);
    prn_json_get_bool(j, config, "reuse", false, &c->reuse); /* older reports have none */
    prn_json_get_int(j, config, "background_threads", false, &c->background_threads);
    read_dims(j, config, c);
    read_assumed(j, config, c);
    prn_read_enter(j, "");
}

static void read_text(prn_json_reader *j, const prn_json_value *object, const char *key, char *out, size_t size)
{
    const char *text = NULL;
    if (prn_json_get_string(j, object, key, false, &text)) snprintf(out, size, "%s", text);
}

static void read_caches(prn_json_reader *j, const prn_json_value *system, prn_machine *m)
{
    size_t count;
    const prn_json_value *array = prn_json_get_array(j, system, "caches", false, &count);
    for (const prn_json_value *e = prn_json_first(array); e && j->status == PRONY_OK; e = prn_json_next(e)) {
        if (m->cache_count == (int)(sizeof m->caches / sizeof m->caches[0])) break;
        snprintf(j->where, sizeof j->where, "system.caches[%d]", m->cache_count);
        prn_cache_level *cache = &m->caches[m->cache_count++];
        if (!prn_json_element_is_object(j, e, "")) break;
        prn_json_get_int(j, e, "level", true, &cache->level);
        read_text(j, e, "type", cache->type, sizeof cache->type);
        prn_json_get_u64(j, e, "bytes", true, &cache->bytes);
        prn_json_get_int(j, e, "shared_by", false, &cache->shared_by);
    }
    prn_read_enter(j, "system");
}

/* {"onednn": "2.6.3", "openblas": "0.3.21"} -> "onednn 2.6.3, openblas 0.3.21" */
static void read_libraries(prn_json_reader *j, const prn_json_value *system, prn_report_system *s)
{
    const char *list = "";
    const prn_json_value *object = prn_json_get_object(j, system, "libraries", false);
    for (const prn_json_value *e = prn_json_first(object); e; e = prn_json_next(e)) {
        const char *version = NULL;
        if (!prn_json_element_string(j, e, "libraries", &version)) return;
        list = prn_pool_printf(j->pool, "%s%s%s %s", list, *list ? ", " : "", prn_json_key(e), version);
        if (!list) {
            j->status = prn_no_memory(j->error);
            return;
        }
    }
    s->libraries = list;
}

static void read_roof_rows(prn_json_reader *j, const prn_json_value *object, prn_report_roof *roof)
{
    size_t count, i = 0;
    prn_read_enter(j, "roof");
    prn_json_get_string(j, object, "method", false, &roof->method);
    const prn_json_value *array = prn_json_get_array(j, object, "compute", true, &count);
    prn_roof_compute *compute = prn_json_room(j, count, sizeof *compute);
    for (const prn_json_value *e = prn_json_first(array); compute && e; e = prn_json_next(e), i++) {
        if (!prn_json_element_is_object(j, e, "compute")) return;
        prn_json_get_string(j, e, "precision", true, &compute[i].precision);
        prn_json_get_int(j, e, "threads", true, &compute[i].threads);
        prn_json_get_double(j, e, "flops_per_second", true, &compute[i].flops_per_second);
    }
    roof->compute = compute;
    roof->compute_count = i;
    i = 0;
    array = prn_json_get_array(j, object, "memory", true, &count);
    prn_roof_memory *memory = prn_json_room(j, count, sizeof *memory);
    for (const prn_json_value *e = prn_json_first(array); memory && e; e = prn_json_next(e), i++) {
        if (!prn_json_element_is_object(j, e, "memory")) return;
        prn_json_get_string(j, e, "level", true, &memory[i].level);
        prn_json_get_int(j, e, "threads", true, &memory[i].threads);
        prn_json_get_double(j, e, "bytes_per_second", true, &memory[i].bytes_per_second);
    }
    roof->memory = memory;
    roof->memory_count = i;
    i = 0;
    array = prn_json_get_array(j, object, "work", false, &count);
    prn_roof_work *work = prn_json_room(j, count, sizeof *work);
    for (const prn_json_value *e = prn_json_first(array); work && e; e = prn_json_next(e), i++) {
        if (!prn_json_element_is_object(j, e, "work")) return;
        prn_json_get_string(j, e, "work", true, &work[i].work);
        prn_json_get_int(j, e, "threads", true, &work[i].threads);
        prn_json_get_double(j, e, "per_second", true, &work[i].per_second);
    }
    roof->work = work;
    roof->work_count = i;
}

static void read_roof(prn_json_reader *j, const prn_json_value *root, prony_report *r)
{
    const prn_json_value *roof = prn_json_get_object(j, root, "roof", false);
    r->has_roof = roof != NULL;
    if (roof) read_roof_rows(j, roof, &r->roof);
    prn_read_enter(j, "");
}

static void read_system(prn_json_reader *j, const prn_json_value *root, prn_report_system *s)
{
    prn_machine *m = &s->machine;
    const prn_json_value *system = prn_json_get_object(j, root, "system", true);
    prn_read_enter(j, "system");
    m->load_avg_1min = -1;
    read_text(j, system, "host_name", m->host_name, sizeof m->host_name);
    read_text(j, system, "os", m->os, sizeof m->os);
    read_text(j, system, "os_release", m->os_release, sizeof m->os_release);
    read_text(j, system, "cpu_model", m->cpu_model, sizeof m->cpu_model);
    read_text(j, system, "governor", m->governor, sizeof m->governor);
    prn_read_strings(j, system, "isa", &s->isa, NULL);
    prn_json_get_string(j, system, "isa_used", false, &s->isa_used);
    prn_json_get_int(j, system, "cpu_count", false, &m->cpu_count);
    prn_json_get_int(j, system, "usable_cpus", false, &m->mask_count);
    prn_json_get_int(j, system, "physical_cores", false, &m->physical_cores);
    prn_json_get_double(j, system, "quota_cpus", false, &m->quota_cpus);
    prn_json_get_u64(j, system, "total_memory_bytes", false, &m->total_memory_bytes);
    prn_json_get_double(j, system, "load_avg_1min", false, &m->load_avg_1min);
    prn_json_get_string(j, system, "prony_version", false, &s->prony_version);
    prn_json_get_string(j, system, "git_commit", false, &s->git_commit);
    prn_json_get_string(j, system, "compiler", false, &s->compiler);
    prn_json_get_string(j, system, "compiler_flags", false, &s->compiler_flags);
    read_libraries(j, system, s);
    read_caches(j, system, m);
    prn_read_enter(j, "");
}

/* ---- the whole ---- */

static void read_schema(prn_json_reader *j, const prn_json_value *root)
{
    const char *schema = NULL;
    if (!prn_json_get_string(j, root, "schema", true, &schema)) return;
    if (strcmp(schema, SCHEMA) == 0) return;
    if (strncmp(schema, "prony.report/", 13) == 0)
        prn_json_bad(j, "schema", "\"%.60s\" is another version; this one reads " SCHEMA, schema);
    else
        prn_json_bad(j, "schema", "\"%.60s\" is no report of Prony; " SCHEMA " is expected", schema);
}

static void release(prony_report *report)
{
    prn_pool_release(&report->pool);
    prn_free(report);
}

void prn_read_manifest(prn_report_reader *reader, const prn_json_value *object)
{
    read_model(&reader->json, object, &reader->report->model);
    read_config(&reader->json, object, &reader->report->config);
    read_system(&reader->json, object, &reader->report->system);
    read_roof(&reader->json, object, reader->report);
}

prony_status prn_report_read(prony_report **out, const char *file, const char *text, size_t size, prony_error *error)
{
    prn_json_value *root = NULL;
    PRN_TRY(prn_json_document_parse(&root, file, text, size, error));
    prony_report *report = prn_calloc(1, sizeof *report);
    if (!report) {
        prn_json_document_release(root);
        return prn_no_memory(error);
    }
    prn_report_reader reader = {.json = {.pool = &report->pool, .file = file, .error = error}, .report = report};
    prn_json_reader *j = &reader.json;
    read_schema(j, root);
    prn_read_manifest(&reader, root);
    prn_read_figures(&reader, root);
    prn_read_rows(&reader, root);
    prn_json_document_release(root);
    if (j->status != PRONY_OK) {
        release(report);
        return j->status;
    }
    *out = report;
    return PRONY_OK;
}
