/* One level of the report as CSV (RFC 4180: CRLF, quotes doubled, a header line). Contains all rows in the model's
 * order, independent of the terminal's tables. Names cannot act as spreadsheet formulas (report_csv_put_text). Columns
 * without any measurement are left out; an empty field means no value. Columns are keys of the JSON report: "name", or
 * "name=path" if the key has another name or lies deeper. Reads the report only. */
#include "profiler/exporters/export_out.h"
#include "profiler/report/report_keys.h"
#include "profiler/report/work.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
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

static void report_csv_put_text(csv *c, const char *text)
{
    field(c);
    if (text) prn_out_csv(&c->out, text);
}

static void put_uint(csv *c, uint64_t value)
{
    field(c);
    prn_out_format(&c->out, "%" PRIu64, value);
}

static void put_double(csv *c, double value)
{
    field(c);
    prn_out_double(&c->out, value);
}

/* "1x64x56x56", "scalar", "?" where unknown, "none" for an omitted input; several values are separated by blanks. */
static void put_shapes(csv *c, const prony_value *const *values, size_t count)
{
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

/* A column that is not a key, specific to the level. */
typedef struct own_column {
    const char *name;
    void (*put)(csv *c, const prn_at *at);
} own_column;

typedef struct table {
    const prn_key *keys;
    const own_column *own;
} table;

static void put_list(csv *c, const prn_key *key, const prn_at *at)
{
    size_t count = prn_key_count(key, at);
    void *list;
    memcpy(&list, prn_key_field(key, at), sizeof list);
    field(c);
    if (key->type == PRN_KEY_VALUES) {
        put_shapes(c, list, count);
        return;
    }
    for (size_t i = 0; i < count; i++) prn_out_format(&c->out, "%s%" PRIu32, i ? " " : "", ((const uint32_t *)list)[i]);
}

/* Writes a key's value by its type. Types that a cell cannot hold become lists. */
static void report_csv_put_field(csv *c, const prn_key *key, const prn_at *at)
{
    const void *value = prn_key_field(key, at);
    switch (key->type) {
    case PRN_KEY_STRING:
        report_csv_put_text(c, *(const char *const *)value);
        break;
    case PRN_KEY_BOOL:
        field(c);
        prn_out_text(&c->out, *(const bool *)value ? "True" : "False");
        break;
    case PRN_KEY_INT:
    case PRN_KEY_I64:
    case PRN_KEY_U32:
        field(c);
        prn_out_format(&c->out, "%" PRId64, prn_key_whole(key, at));
        break;
    case PRN_KEY_U64:
        put_uint(c, *(const uint64_t *)value);
        break;
    case PRN_KEY_DOUBLE:
        put_double(c, *(const double *)value);
        break;
    default:
        put_list(c, key, at);
    }
}

/* The key at a path through objects; NULL: the row has no such object. */
static const prn_key *report_csv_find_key(const prn_key *keys, const char *path, size_t length, prn_at *at)
{
    for (;;) {
        char name[64];
        size_t part = strcspn(path, ".");
        if (part > length) part = length;
        snprintf(name, sizeof name, "%.*s", (int)part, path);
        const prn_key *key = prn_keys_find(keys, name, at);
        if (part == length || !key || !prn_key_known(key, at)) return part == length ? key : NULL;
        at->row = prn_key_field(key, at);
        keys = key->keys;
        path += part + 1;
        length -= part + 1;
    }
}

static void report_csv_put_key(csv *c, const prn_key *keys, const char *path, size_t length, prn_at at)
{
    const prn_key *key = report_csv_find_key(keys, path, length, &at);
    unsigned when = key ? key->how & PRN_CONDITION : 0;
    if (!key)
        field(c);
    else if (key->word)
        report_csv_put_text(c, key->word(&at));
    else if (key->figure)
        put_double(c, prn_key_applies(key, &at) ? key->figure(&at) : NAN);
    else if ((key->how & PRN_OR_NULL || when == PRN_IF_FLAG || when == PRN_IF_TOO) && !prn_key_known(key, &at))
        field(c);
    else
        report_csv_put_field(c, key, &at);
}

/* Writes the columns of one row; without a row, their names. */
static void put_columns(csv *c, const table *t, const char *columns, const prn_at *at)
{
    for (const char *p = columns; *p; p += *p == ',') {
        size_t name = strcspn(p, ",="), all = strcspn(p, ",");
        const own_column *own = t->own;
        while (own->name && (strlen(own->name) != name || strncmp(own->name, p, name) != 0)) own++;
        if (!at) {
            field(c);
            prn_out_bytes(&c->out, p, name);
        } else if (own->name)
            own->put(c, at);
        else if (name < all)
            report_csv_put_key(c, t->keys, p + name + 1, all - name - 1, *at);
        else
            report_csv_put_key(c, t->keys, p, name, *at);
        p += all;
    }
}

#define MOST_GROUPS 6

/* Writes a line; NULL `groups` are left out. */
static void report_csv_put_line(csv *c, const table *t, const char *const groups[MOST_GROUPS], const prn_at *at)
{
    for (size_t g = 0; g < MOST_GROUPS; g++)
        if (groups[g]) put_columns(c, t, groups[g], at);
    end_line(c);
}

#define COUNT_COLUMNS "macs,madds,flops,special,int_ops,bytes_read,bytes_written,parameters"
#define TIME_COLUMNS                                                                                                   \
    "time_mean_ns=time_ns.mean,time_median_ns=time_ns.median,time_min_ns=time_ns.min,time_max_ns=time_ns.max,"         \
    "time_std_ns=time_ns.std,share"

static const char *module_name(const char *path)
{
    return path && *path ? path : "__root__";
}

/* ---- accuracy, of layers and operators ---- */

#define ERROR_COLUMNS                                                                                                  \
    "own_max_abs,own_max_rel,own_ulp,own_snr_db,own_beyond,own_nonfinite,accumulated_max_abs,accumulated_max_rel,"     \
    "accumulated_ulp,accumulated_snr_db,accumulated_beyond,accumulated_nonfinite,not_compared"

static const prony_accuracy_row *errors_of(const prn_at *at)
{
    const prony_report *r = at->root;
    const prony_layer_row *layer = at->row;
    const prony_operator_row *operator= at->row;
    if (!r->operator_errors) return NULL;
    return at->extra ? &r->layer_errors[layer->index] : &r->operator_errors[operator->index];
}

static void put_error_metric(csv *c, const prony_error_metrics *f, double value)
{
    if (f->known && !isnan(value))
        put_double(c, value);
    else
        field(c);
}

#define PUT_ERROR(kind, column, metric)                                                                                \
    static void put_##kind##_##column(csv *c, const prn_at *at)                                                        \
    {                                                                                                                  \
        const prony_error_metrics *f = &errors_of(at)->kind;                                                           \
        put_error_metric(c, f, (double)f->metric);                                                                     \
    }
#define PUT_ERRORS(kind)                                                                                               \
    PUT_ERROR(kind, max_abs, max_abs)                                                                                  \
    PUT_ERROR(kind, max_rel, max_rel)                                                                                  \
    PUT_ERROR(kind, ulp, ulp)                                                                                          \
    PUT_ERROR(kind, snr_db, snr_db)                                                                                    \
    PUT_ERROR(kind, beyond, over_tolerance)                                                                            \
    PUT_ERROR(kind, nonfinite, nonfinite)
PUT_ERRORS(own)
PUT_ERRORS(accumulated)

static void put_not_compared(csv *c, const prn_at *at)
{
    report_csv_put_text(c, errors_of(at)->not_compared);
}

#define ERROR_COLUMN(kind, figure) {#kind "_" #figure, put_##kind##_##figure}
#define ERROR_OWN_COLUMNS                                                                                              \
    ERROR_COLUMN(own, max_abs), ERROR_COLUMN(own, max_rel), ERROR_COLUMN(own, ulp), ERROR_COLUMN(own, snr_db),         \
        ERROR_COLUMN(own, beyond), ERROR_COLUMN(own, nonfinite), ERROR_COLUMN(accumulated, max_abs),                   \
        ERROR_COLUMN(accumulated, max_rel), ERROR_COLUMN(accumulated, ulp), ERROR_COLUMN(accumulated, snr_db),         \
        ERROR_COLUMN(accumulated, beyond), ERROR_COLUMN(accumulated, nonfinite),                                       \
    {                                                                                                                  \
        "not_compared", put_not_compared                                                                               \
    }

/* ---- layers ---- */

static void put_layer_module(csv *c, const prn_at *at)
{
    report_csv_put_text(c, module_name(((const prony_layer_row *)at->row)->module));
}

static void put_layer_type(csv *c, const prn_at *at)
{
    const prony_layer_row *l = at->row;
    report_csv_put_text(c, l->output_count && l->outputs[0] ? prony_dtype_name(l->outputs[0]->dtype) : NULL);
}

static void put_layer_kernel(csv *c, const prn_at *at)
{
    const prony_report *r = at->root;
    uint32_t index = ((const prony_layer_row *)at->row)->operator_index;
    report_csv_put_text(c, index < r->operator_count ? r->operators[index].kernel : NULL);
}

static void report_csv_write_layers(csv *c, prony_report *r)
{
    static const own_column own[] = {{"module", put_layer_module},
                                     {"type", put_layer_type},
                                     {"kernel", put_layer_kernel},
                                     ERROR_OWN_COLUMNS,
                                     {NULL, NULL}};
    static const table layers = {prn_layer_keys, own};
    bool stamped = prn_report_stamped(r);
    const char *const groups[MOST_GROUPS] = {
        "index,name,module,op,folded,dynamic,type,input_shapes=inputs,output_shapes=outputs," COUNT_COLUMNS
        ",memory_bytes",
        stamped ? TIME_COLUMNS ",time_attributed" : NULL, r->operator_count ? "operator,kernel" : NULL,
        stamped ? "time_kind,operator_share" : NULL, r->layer_errors ? ERROR_COLUMNS : NULL};
    report_csv_put_line(c, &layers, groups, NULL);
    for (size_t i = 0; i < r->layer_count; i++)
        report_csv_put_line(c, &layers, groups, &(prn_at){.root = r, .row = &r->layers[i], .extra = r->layers});
}

/* ---- operators ---- */

static void put_layer_count(csv *c, const prn_at *at)
{
    put_uint(c, ((const prony_operator_row *)at->row)->layer_count);
}

static void report_csv_write_operators(csv *c, prony_report *r)
{
    static const own_column own[] = {{"layer_count", put_layer_count}, ERROR_OWN_COLUMNS, {NULL, NULL}};
    static const table operators = {prn_operator_keys, own};
    bool stamped = prn_report_stamped(r);
    const char *const groups[MOST_GROUPS] = {"index,name,op,kernel,backend,layers,layer_count," COUNT_COLUMNS
                                             ",arithmetic_intensity,threads,offset_bytes,output_bytes,"
                                             "scratch_bytes",
                                             stamped ? TIME_COLUMNS ",flops_per_second,library_heap_calls" : NULL,
                                             stamped && r->has_roof ? "bound,percent_of_roof" : NULL,
                                             r->operator_errors ? ERROR_COLUMNS : NULL};
    report_csv_put_line(c, &operators, groups, NULL);
    for (size_t i = 0; i < r->operator_count; i++)
        report_csv_put_line(c, &operators, groups, &(prn_at){.root = r, .row = &r->operators[i]});
}

/* ---- rows of subgraphs: both levels in one table; their sums are not the model's ---- */

static bool in_layer(const prn_at *at)
{
    return at->extra != NULL;
}

static void put_level(csv *c, const prn_at *at)
{
    report_csv_put_text(c, in_layer(at) ? "layer" : "operator");
}

static void put_owner_name(csv *c, const prn_at *at)
{
    const prony_report *r = at->root;
    uint32_t owner = ((const prony_nested_row *)at->row)->owner;
    report_csv_put_text(c, in_layer(at) ? r->layers[owner].name : r->operators[owner].name);
}

static void write_nested(csv *c, prony_report *r)
{
    static const prn_key keys[] = {
        {PRN_MORE_HERE(prn_nested_layer_keys)}, {PRN_MORE_HERE(prn_nested_operator_keys)}, {0}};
    static const own_column own[] = {{"level", put_level}, {"owner_name", put_owner_name}, {NULL, NULL}};
    static const table nested = {keys, own};
    const char *const groups[MOST_GROUPS] = {"level,index,owner,owner_name,parent,depth,path,subgraph,name,op,kernel,"
                                             "backend,folded,dynamic,input_shapes=inputs,"
                                             "output_shapes=outputs,executions," COUNT_COLUMNS,
                                             prn_report_stamped(r) ? TIME_COLUMNS : NULL};
    report_csv_put_line(c, &nested, groups, NULL);
    for (size_t i = 0; i < r->nested_layer_count; i++)
        report_csv_put_line(c, &nested, groups, &(prn_at){.root = r, .row = &r->nested_layers[i], .extra = r->layers});
    for (size_t i = 0; i < r->nested_operator_count; i++)
        report_csv_put_line(c, &nested, groups, &(prn_at){.root = r, .row = &r->nested_operators[i]});
}

/* ---- modules ---- */

static void put_module_path(csv *c, const prn_at *at)
{
    report_csv_put_text(c, module_name(((const prn_module_row *)at->row)->path));
}

static void put_module_parent(csv *c, const prn_at *at)
{
    const prony_report *r = at->root;
    uint32_t parent = ((const prn_module_row *)at->row)->parent;
    report_csv_put_text(c, parent < r->module_count ? module_name(r->modules[parent].path) : NULL);
}

static void put_module_depth(csv *c, const prn_at *at)
{
    put_uint(c, ((const prn_module_row *)at->row)->depth);
}

static void report_csv_write_modules(csv *c, prony_report *r, int64_t depth)
{
    static const own_column own[] = {
        {"path", put_module_path}, {"parent", put_module_parent}, {"depth", put_module_depth}, {NULL, NULL}};
    static const table modules = {prn_module_keys, own};
    const char *const groups[MOST_GROUPS] = {"path,parent,depth,type,macs,flops,parameters",
                                             prn_report_stamped(r) ? "time_mean_ns=time_ns,share" : NULL};
    report_csv_put_line(c, &modules, groups, NULL);
    for (size_t i = 0; i < r->module_count; i++)
        if (!depth || (int64_t)r->modules[i].depth <= depth)
            report_csv_put_line(c, &modules, groups, &(prn_at){.root = r, .row = &r->modules[i]});
}

/* ---- the model ---- */

/* One line: the model and its totals. A group is left out as a whole if the report lacks its part. Header and line
 * agree, because both are made from `groups`. */
static void report_csv_write_model(csv *c, prony_report *r)
{
    static const own_column own[] = {{NULL, NULL}};
    static const table model = {prn_report_keys, own};
    const char *const groups[MOST_GROUPS] = {
        "model=model.name,opset=model.opset,batch=config.batch,precision=config.precision,"
        "intra_op_threads=config.intra_op_threads,layers=totals.layers,operators=totals.operators,macs=totals.macs,"
        "madds=totals.madds,flops=totals.flops,special=totals.special,int_ops=totals.int_ops,bytes_read=totals.bytes_"
        "read,"
        "bytes_written=totals.bytes_written,parameters=totals.parameters,parameter_bytes=model.parameter_bytes",
        r->has_memory ? "weight_bytes=memory.weight_bytes,planned_bytes=memory.planned_bytes,"
                        "lower_bound_bytes=memory.lower_bound_bytes,peak_live_bytes=memory.peak_live_bytes,"
                        "average_live_bytes=memory.average_live_bytes"
                      : NULL,
        r->measured ? "runs=latency_ns.runs,latency_mean_ns=latency_ns.mean,latency_median_ns=latency_ns.median,"
                      "latency_min_ns=latency_ns.min,latency_max_ns=latency_ns.max,latency_std_ns=latency_ns.std,"
                      "latency_p90_ns=latency_ns.p90,latency_p95_ns=latency_ns.p95,latency_p99_ns=latency_ns.p99,"
                      "latency_p999_ns=latency_ns.p999,flops_per_second=throughput.flops_per_second"
                    : NULL,
        r->has_generation
            ? "prompt_tokens=generation.prompt_tokens,new_tokens=generation.new_tokens,cache=generation.cache,"
              "prefill_tokens_per_second=generation.prefill_tokens_per_second,"
              "decode_tokens_per_second=generation.decode_tokens_per_second,ttft_ns=generation.ttft_ns,"
              "tpot_p50_ns=generation.tpot_ns.p50,tpot_p95_ns=generation.tpot_ns.p95,"
              "tpot_p99_ns=generation.tpot_ns.p99,tpot_max_ns=generation.tpot_ns.max,"
              "growth_ns_per_token=generation.growth_ns_per_token,cache_bytes=generation.cache_bytes,"
              "cache_bytes_copied_per_token=generation.cache_bytes_copied_per_token,"
              "weight_bytes_per_token=generation.weight_bytes_per_token"
            : NULL};
    report_csv_put_line(c, &model, groups, NULL);
    report_csv_put_line(c, &model, groups, &(prn_at){.root = r, .row = r});
}

/* Writes the table of exactly one level. */
prony_status prn_report_write_csv(const prony_report *report, const prony_write_options *options, prony_write_fn write,
                                  void *user, prony_error *error)
{
    csv c = {.line_begun = false};
    prony_report *r = (prony_report *)report; /* tables of keys serve readers too; nothing here writes to it */
    prn_out_begin(&c.out, write, user, error);
    switch (options->levels ? options->levels : PRONY_LEVEL_LAYER) {
    case PRONY_LEVEL_LAYER:
        report_csv_write_layers(&c, r);
        break;
    case PRONY_LEVEL_OPERATOR:
        report_csv_write_operators(&c, r);
        break;
    case PRONY_LEVEL_MODULE:
        report_csv_write_modules(&c, r, options->module_depth);
        break;
    case PRONY_LEVEL_MODEL:
        report_csv_write_model(&c, r);
        break;
    case PRONY_LEVEL_NESTED:
        write_nested(&c, r);
        break;
    default:
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "CSV holds one level; levels 0x%x select none or several",
                        options->levels);
    }
    return prn_out_end(&c.out);
}
