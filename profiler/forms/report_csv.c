/* One level of the report as CSV (RFC 4180: CRLF, quotes doubled, a header line). Data, so all rows in the model's
 * order, whatever the tables on the terminal show; but opened in spreadsheets, so no name is a formula (put_text).
 * Columns that nothing measured are left out; an empty field says that this row has no such value. Names of columns are
 * keys of the JSON report. Reads the report only.
 */
#include "profiler/forms/form_out.h"
#include "profiler/report/report.h"
#include "profiler/report/work.h"

#include "base/shape.h"

#include <inttypes.h>
#include <string.h>

typedef struct csv {
    prn_out out;
    bool line_begun;
} csv;

static void field(csv *c)
{
    if (c->line_begun) prn_out_text(&c->out, ",");
    c->line_begun = true;
}

static void end_line(csv *c)
{
    prn_out_text(&c->out, "\r\n");
    c->line_begun = false;
}

/* Text of the model's: a spreadsheet takes what begins with one of these for a formula, and runs it. Semicolons part
 * fields where the comma is decimal. */
static void put_text(csv *c, const char *text)
{
    field(c);
    if (!text) return;
    const bool formula = *text && strchr("=+-@\t\r", *text),
               quoted = formula || *text == ' ' || strpbrk(text, "\",;\r\n\t");
    if (quoted) prn_out_text(&c->out, formula ? "\"'" : "\"");
    prn_out_printable(&c->out, text, strlen(text), '"', "\"\"");
    if (quoted) prn_out_text(&c->out, "\"");
}

static void put_uint(csv *c, uint64_t value)
{
    field(c);
    prn_out_format(&c->out, "%" PRIu64, value);
}

static void put_int(csv *c, int64_t value)
{
    field(c);
    prn_out_format(&c->out, "%" PRId64, value);
}

static void put_double(csv *c, double value)
{
    field(c);
    prn_out_double(&c->out, value);
}

static void put_ratio(csv *c, double over, double under)
{
    field(c);
    if (under > 0) prn_out_double(&c->out, over / under);
}

static void put_bool(csv *c, bool value)
{
    field(c);
    prn_out_text(&c->out, value ? "True" : "False");
}

static void put_header(csv *c, const char *names)
{
    field(c);
    prn_out_text(&c->out, names);
}

static void put_type(csv *c, const prony_value *const *values, size_t count)
{
    put_text(c, count && values[0] ? prony_dtype_name(values[0]->dtype) : NULL);
}

/* "1x64x56x56", "scalar", "?" where unknown, "none" where an input is left out; several values are parted by blanks. */
static void put_shapes(csv *c, const prony_value *const *values, size_t count)
{
    field(c);
    for (size_t i = 0; i < count; i++) {
        if (i) prn_out_text(&c->out, " ");
        const prony_shape *shape = values[i] ? &values[i]->shape : NULL;
        if (!shape)
            prn_out_text(&c->out, "none");
        else if (shape->rank < 0 || shape->rank > PRONY_MAX_RANK)
            prn_out_text(&c->out, "?");
        else if (shape->rank == 0)
            prn_out_text(&c->out, "scalar");
        for (int d = 0; shape && d < shape->rank && d < PRONY_MAX_RANK; d++) {
            if (d) prn_out_text(&c->out, "x");
            if (shape->dim[d] >= 0)
                prn_out_format(&c->out, "%" PRId64, shape->dim[d]);
            else
                prn_out_text(&c->out, "?");
        }
    }
}

static void put_counts(csv *c, const prony_cost *cost)
{
    put_uint(c, cost->macs);
    put_uint(c, cost->madds);
    put_uint(c, cost->flops);
    put_uint(c, cost->special);
    put_uint(c, cost->int_ops);
    put_uint(c, cost->bytes_read);
    put_uint(c, cost->bytes_written);
    put_uint(c, cost->parameters);
}

#define COUNT_COLUMNS "macs,madds,flops,special,int_ops,bytes_read,bytes_written,parameters"
#define TIME_COLUMNS "time_mean_ns,time_median_ns,time_min_ns,time_max_ns,time_std_ns,share"

static void put_time(csv *c, bool measured, const prony_time_stats *t, double share)
{
    const int64_t fields[] = {t->mean_ns, t->median_ns, t->min_ns, t->max_ns, t->std_ns};
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
        if (measured)
            put_int(c, fields[f]);
        else
            field(c);
    }
    if (measured)
        put_double(c, share);
    else
        field(c);
}

static const char *module_name(const char *path)
{
    return path && *path ? path : "__root__";
}

static void write_layers(csv *c, const prony_report *r)
{
    bool stamped = prn_report_stamped(r);
    put_header(c, "index,name,module,op,folded,dynamic,type,input_shapes,output_shapes," COUNT_COLUMNS ",memory_bytes");
    if (stamped) put_header(c, TIME_COLUMNS ",time_attributed");
    if (r->operator_count) put_header(c, "operator,kernel");
    if (stamped) put_header(c, "time_kind,operator_share");
    end_line(c);
    for (size_t i = 0; i < r->layer_count; i++) {
        const prony_layer_row *l = &r->layers[i];
        put_uint(c, l->index);
        put_text(c, l->name);
        put_text(c, module_name(l->module));
        put_text(c, l->op);
        put_bool(c, l->folded);
        put_bool(c, l->dynamic);
        put_type(c, l->outputs, l->output_count);
        put_shapes(c, l->inputs, l->input_count);
        put_shapes(c, l->outputs, l->output_count);
        put_counts(c, &l->cost);
        put_uint(c, l->output_bytes);
        if (stamped) {
            put_time(c, l->measured, &l->time, l->share);
            put_bool(c, l->time_attributed);
        }
        if (r->operator_count && l->operator_index < r->operator_count) {
            put_uint(c, l->operator_index);
            put_text(c, r->operators[l->operator_index].kernel);
        } else if (r->operator_count) {
            field(c);
            field(c);
        }
        if (stamped) {
            put_text(c, prn_time_kind(l));
            put_ratio(c, prn_round_digits(l->operator_share, prn_estimate_digits(l)), l->measured ? 1 : 0);
        }
        end_line(c);
    }
}

/* Empty where the operator's bound is not known. */
static void put_bound(csv *c, const prony_report *r, size_t index)
{
    double share;
    prony_bound bound = prony_report_bound(r, index, &share);
    put_text(c, bound == PRONY_BOUND_UNKNOWN ? NULL : prony_bound_name(bound));
    put_ratio(c, share * 100, bound == PRONY_BOUND_UNKNOWN ? 0 : 1);
}

static void write_operators(csv *c, const prony_report *r)
{
    bool stamped = prn_report_stamped(r);
    put_header(c, "index,name,op,kernel,backend,layers,layer_count," COUNT_COLUMNS ",arithmetic_intensity,threads,"
                  "offset_bytes,output_bytes,scratch_bytes");
    if (stamped) put_header(c, TIME_COLUMNS ",flops_per_second,library_heap_calls");
    if (stamped && r->has_roof) put_header(c, "bound,percent_of_roof");
    end_line(c);
    for (size_t i = 0; i < r->operator_count; i++) {
        const prony_operator_row *o = &r->operators[i];
        put_uint(c, o->index);
        put_text(c, o->name);
        put_text(c, o->op);
        put_text(c, o->kernel);
        put_text(c, o->backend);
        field(c);
        for (size_t k = 0; k < o->layer_count; k++) prn_out_format(&c->out, "%s%" PRIu32, k ? " " : "", o->layers[k]);
        put_uint(c, o->layer_count);
        put_counts(c, &o->cost);
        put_ratio(c, (double)o->cost.flops, (double)o->cost.bytes_read + (double)o->cost.bytes_written);
        put_int(c, o->threads);
        if (o->offset_bytes != UINT64_MAX)
            put_uint(c, o->offset_bytes);
        else
            field(c);
        put_uint(c, o->output_bytes);
        put_uint(c, o->scratch_bytes);
        if (stamped) {
            put_time(c, o->measured, &o->time, o->share);
            put_ratio(c, (double)o->cost.flops, (double)o->time.mean_ns / 1e9);
            put_uint(c, o->library_heap_calls);
        }
        if (stamped && r->has_roof) put_bound(c, r, o->index);
        end_line(c);
    }
}

/* Both levels in one table: their sums are not the model's. */
static void write_nested_rows(csv *c, const prony_report *r, bool layers)
{
    const prony_nested_row *rows = layers ? r->nested_layers : r->nested_operators;
    size_t count = layers ? r->nested_layer_count : r->nested_operator_count;
    bool stamped = prn_report_stamped(r);
    for (size_t i = 0; i < count; i++) {
        const prony_nested_row *n = &rows[i];
        put_text(c, layers ? "layer" : "operator");
        put_uint(c, n->index);
        put_uint(c, n->owner);
        put_text(c, layers ? r->layers[n->owner].name : r->operators[n->owner].name);
        if (n->parent != PRONY_NO_INDEX)
            put_uint(c, n->parent);
        else
            field(c);
        put_uint(c, n->depth);
        put_text(c, n->path);
        put_text(c, n->subgraph);
        put_text(c, n->name);
        put_text(c, n->op);
        put_text(c, n->kernel);
        put_text(c, n->backend);
        put_bool(c, n->folded);
        put_bool(c, n->dynamic);
        put_shapes(c, n->inputs, n->input_count);
        put_shapes(c, n->outputs, n->output_count);
        if (n->executed)
            put_uint(c, n->executions);
        else
            field(c);
        put_counts(c, &n->cost);
        if (stamped) put_time(c, n->measured, &n->time, n->share);
        end_line(c);
    }
}

static void write_nested(csv *c, const prony_report *r)
{
    put_header(c, "level,index,owner,owner_name,parent,depth,path,subgraph,name,op,kernel,backend,folded,dynamic,input_shapes,"
                  "output_shapes,executions," COUNT_COLUMNS);
    if (prn_report_stamped(r)) put_header(c, TIME_COLUMNS);
    end_line(c);
    write_nested_rows(c, r, true);
    write_nested_rows(c, r, false);
}

static void write_modules(csv *c, const prony_report *r, int64_t depth)
{
    bool stamped = prn_report_stamped(r);
    put_header(c, "path,parent,depth,type,macs,flops,parameters");
    if (stamped) put_header(c, "time_mean_ns,share");
    end_line(c);
    for (size_t i = 0; i < r->module_count; i++) {
        const prn_module_row *m = &r->modules[i];
        if (depth && (int64_t)m->depth > depth) continue;
        put_text(c, module_name(m->path));
        put_text(c, m->parent < r->module_count ? module_name(r->modules[m->parent].path) : NULL);
        put_uint(c, m->depth);
        put_text(c, m->type);
        put_uint(c, m->macs);
        put_uint(c, m->flops);
        put_uint(c, m->parameters);
        if (stamped) {
            put_int(c, m->time_ns);
            put_double(c, m->share);
        }
        end_line(c);
    }
}

static void write_model(csv *c, const prony_report *r)
{
    const prony_time_stats *t = &r->latency;
    put_header(c, "model,opset,batch,precision,intra_op_threads,layers,operators," COUNT_COLUMNS ",parameter_bytes");
    if (r->has_memory) put_header(c, "weight_bytes,planned_bytes,lower_bound_bytes,peak_live_bytes,average_live_bytes");
    if (r->measured)
        put_header(c, "runs,latency_mean_ns,latency_median_ns,latency_min_ns,latency_max_ns,latency_std_ns,"
                      "latency_p90_ns,latency_p95_ns,latency_p99_ns,latency_p999_ns,flops_per_second");
    end_line(c);
    put_text(c, r->model.name);
    put_int(c, r->model.opset);
    if (r->config.batch >= 0)
        put_int(c, r->config.batch);
    else
        field(c);
    put_text(c, r->config.precision);
    put_int(c, r->config.intra_op_threads);
    put_uint(c, r->layer_count);
    put_uint(c, r->operator_count);
    put_counts(c, &r->totals.cost);
    put_uint(c, r->model.parameter_bytes);
    if (r->has_memory) {
        put_uint(c, r->memory.weight_bytes);
        put_uint(c, r->memory.planned_bytes);
        put_uint(c, r->memory.lower_bound_bytes);
        put_uint(c, r->memory.peak_live_bytes);
        put_uint(c, r->memory.average_live_bytes);
    }
    if (r->measured) {
        const int64_t fields[] = {t->mean_ns, t->median_ns, t->min_ns, t->max_ns, t->std_ns,
                                  t->p90_ns,  t->p95_ns,    t->p99_ns, t->p999_ns};
        put_uint(c, t->count);
        for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) put_int(c, fields[f]);
        put_ratio(c, (double)r->totals.cost.flops, (double)t->mean_ns / 1e9);
    }
    end_line(c);
}

prony_status prn_report_write_csv(const prony_report *report, const prony_write_options *options, prony_write_fn write,
                                  void *user, prony_error *error)
{
    csv c = {.line_begun = false};
    prn_out_begin(&c.out, write, user, error);
    switch (options->levels ? options->levels : PRONY_LEVEL_LAYER) {
    case PRONY_LEVEL_LAYER:
        write_layers(&c, report);
        break;
    case PRONY_LEVEL_OPERATOR:
        write_operators(&c, report);
        break;
    case PRONY_LEVEL_MODULE:
        write_modules(&c, report, options->module_depth);
        break;
    case PRONY_LEVEL_MODEL:
        write_model(&c, report);
        break;
    case PRONY_LEVEL_NESTED:
        write_nested(&c, report);
        break;
    default:
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "CSV holds one level: levels 0x%x names none or several",
                        options->levels);
    }
    return prn_out_end(&c.out);
}
