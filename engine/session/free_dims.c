/* Implements free_dims.h. Assumptions depend on the model and the options alone, so every run makes the same ones.
 */
#include "engine/session/free_dims.h"
#include "loaders/onnx/declared.h"
#include "base/option_struct.h"
#include "base/memory/row_block.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

prony_status prn_input_shapes_init(prn_input_shapes *s, const prony_model *model, prony_error *error)
{
    size_t count = model->file->graph.input_count;
    *s = (prn_input_shapes){0};
    s->shapes = prn_calloc(count + 1, sizeof *s->shapes);
    for (size_t i = 0; s->shapes && i < count; i++) s->shapes[i] = model->file->graph.inputs[i].shape;
    return s->shapes ? PRONY_OK : prn_no_memory(error);
}

void prn_input_shapes_free(prn_input_shapes *s)
{
    prn_free(s->shapes);
    prn_free(s->assumed.items);
    prn_names_free(&s->read);
    prn_least_extents_free(s->least);
    prn_dims_free(&s->dims);
    *s = (prn_input_shapes){0};
}

/* ---- names ---- */

static bool has_word(const char *symbol, const char *const *words)
{
    char lower[64];
    size_t n = 0;
    for (; symbol[n] && n + 1 < sizeof lower; n++) lower[n] = (char)tolower((unsigned char)symbol[n]);
    lower[n] = '\0';
    for (; *words; words++)
        if (strstr(lower, *words)) return true;
    return false;
}

static bool is_batch(const prony_value_info *port, int axis)
{
    static const char *const batch[] = {"batch", NULL};
    static const char *const others[] = {"seq",   "len",    "time",  "height", "width", "frame",
                                         "token", "sample", "point", "step",   NULL};
    const char *symbol = port->dim_names[axis];
    bool named = symbol && *symbol;
    if (named && (has_word(symbol, batch) || strcmp(symbol, "N") == 0 || strcmp(symbol, "n") == 0 ||
                  strcmp(symbol, "B") == 0 || strcmp(symbol, "bs") == 0))
        return true;
    return axis == 0 && port->shape.rank > 1 && !(named && has_word(symbol, others));
}

/* The size of images that the exporter left in the metadata, "[640, 640]" or "[640]": height, then width; -1: none. The
 * file is scanned once for all inputs. */
static void read_image_size(prn_input_shapes *s, const prony_model *model)
{
    prn_bump pool = {0};
    long long size[2] = {0, 0};
    const char *text = prn_declared_metadata(model->file, &pool, "imgsz");
    int found = text ? sscanf(text, "[%lld, %lld]", &size[0], &size[1]) : 0;
    prn_bump_release(&pool);
    if (found == 1) size[1] = size[0];
    for (int k = 0; k < 2; k++) s->image[k] = found > 0 && size[k] > 0 && size[k] <= 65536 ? size[k] : -1;
}

static int64_t metadata_extent(prn_input_shapes *s, const prony_value_info *port, int axis, const prony_model *model)
{
    bool last = port->shape.rank == 4 && port->shape.dim[3] >= 1 && port->shape.dim[3] <= 4;
    int first = last ? 1 : 2;
    if (port->shape.rank != 4 || axis < first || axis > first + 1) return -1;
    if (!s->image[0]) read_image_size(s, model);
    return s->image[axis - first];
}

static bool put_names(prn_names *names, const char *const *list, size_t count)
{
    bool ok = true;
    for (size_t i = 0; i < count && ok; i++) ok = prn_names_put(names, list[i], 0);
    return ok;
}

/* Every name that a node, subgraphs included, or an output depends on. false: out of memory. */
static bool collect_read(prn_names *names, const prn_graph *graph)
{
    bool ok = true;
    for (size_t k = 0; k < graph->output_count && ok; k++) ok = put_names(names, &graph->outputs[k].name, 1);
    for (size_t n = 0; n < graph->node_count && ok; n++) {
        const prn_model_node *node = &graph->nodes[n];
        ok = put_names(names, node->inputs, node->input_count);
        for (size_t a = 0; a < node->attributes.count && ok; a++) {
            const prn_graph *inner = node->attributes.items[a].graph;
            if (inner) ok = put_names(names, inner->captured, inner->captured_count);
        }
    }
    return ok;
}

/* Collects the names at the first call, so that the graph is walked once for all inputs. */
static prony_status find_reader(prn_input_shapes *s, const prn_graph *graph, const char *name, bool *found,
                                prony_error *error)
{
    uint32_t any;
    if (!s->read.capacity && !collect_read(&s->read, graph)) return prn_no_memory(error);
    *found = prn_names_get(&s->read, name, &any);
    return PRONY_OK;
}

/* ---- resolving ---- */

static prony_status assume(prn_input_shapes *s, const prony_model *model, size_t input, int axis, int64_t value,
                           const char *reason, prony_error *error)
{
    const prony_value_info *port = &model->file->graph.inputs[input];
    const char *symbol = port->dim_names[axis];
    if (!PRN_GROW(s->assumed.items, s->assumed.capacity, s->assumed.count + 1)) return prn_no_memory(error);
    s->assumed.items[s->assumed.count++] = (prn_assumed){input, axis, value, reason};
    s->shapes[input].dim[axis] = value;
    return symbol && *symbol ? prn_dims_put(&s->dims, symbol, value, model->file->name, port->name, error) : PRONY_OK;
}

/* Sets a dimension whose symbol became known. */
static bool resolve_by_symbol(prn_input_shapes *s, const prony_value_info *port, size_t input, int axis)
{
    const char *symbol = port->dim_names[axis];
    const prony_dim *known = symbol && *symbol ? prn_dims_find(&s->dims, symbol) : NULL;
    if (known) s->shapes[input].dim[axis] = known->value;
    return known != NULL;
}

/* Assumes 1, or what the first windows and trees need. */
static prony_status assume_least(prn_input_shapes *s, const prony_model *model, size_t input, int axis,
                                 const char *reason, prony_error *error)
{
    bool features = false;
    const char *name = model->file->graph.inputs[input].name;
    if (!s->least) PRN_TRY(prn_least_extents_find(&s->least, &model->file->graph, error));
    const int64_t least = prn_least_extent(s->least, name, axis, &features);
    return assume(s, model, input, axis, least,
                  least == 1 ? reason
                  : features ? "tree features"
                             : "window size",
                  error);
}

/* true: trees read the axis, and it is settled by the number of their features. */
static prony_status settle_features(prn_input_shapes *s, const prony_model *model, size_t input, int axis,
                                    bool *settled, prony_error *error)
{
    const char *name = model->file->graph.inputs[input].name;
    if (!s->least) PRN_TRY(prn_least_extents_find(&s->least, &model->file->graph, error));
    (void)prn_least_extent(s->least, name, axis, settled);
    return *settled ? assume_least(s, model, input, axis, "", error) : PRONY_OK;
}

static prony_status resolve_axis(prn_input_shapes *s, const prony_model *model, size_t input, int axis, bool ask,
                                 prony_error *error)
{
    const prony_value_info *port = &model->file->graph.inputs[input];
    if (resolve_by_symbol(s, port, input, axis)) return PRONY_OK;
    if (!ask) return assume_least(s, model, input, axis, "", error);
    if (is_batch(port, axis)) return assume_least(s, model, input, axis, "batch", error);
    bool is_read = false, settled = false;
    PRN_TRY(find_reader(s, &model->file->graph, port->name, &is_read, error));
    if (!is_read) return assume(s, model, input, axis, 1, "nothing reads it", error);
    PRN_TRY(settle_features(s, model, input, axis, &settled, error));
    if (settled) return PRONY_OK;
    int64_t extent = metadata_extent(s, port, axis, model);
    return extent > 0 ? assume(s, model, input, axis, extent, "metadata imgsz", error) : PRONY_OK;
}

/* Counts open dimensions, after filling those with a known symbol. */
static size_t count_open(prn_input_shapes *s, const prony_model *model)
{
    size_t open = 0;
    for (size_t i = 0; i < model->file->graph.input_count; i++)
        for (int d = 0; model->file->graph.inputs[i].kind == PRONY_TENSOR && d < s->shapes[i].rank; d++)
            if (s->shapes[i].dim[d] < 0 && !resolve_by_symbol(s, &model->file->graph.inputs[i], i, d)) open++;
    return open;
}

prony_status prn_input_shapes_resolve(prn_input_shapes *s, const prony_model *model,
                                      const prony_session_options *options, prony_error *error)
{
    const prn_graph *graph = &model->file->graph;
    const char *name = model->file->name;
    bool ask = options->free_dims == PRONY_FREE_ASK;
    for (size_t i = 0; i < graph->input_count; i++)
        if (!s->bound || !s->bound[i]) PRN_TRY(prn_port_given(&graph->inputs[i], options, &s->dims, name, error));
    for (size_t i = 0; i < graph->input_count; i++)
        if (!s->bound || !s->bound[i])
            PRN_TRY(prn_port_fix(&s->shapes[i], &graph->inputs[i], options, &s->dims, name, error));
    for (size_t i = 0; i < graph->input_count; i++)
        for (int d = 0; graph->inputs[i].kind == PRONY_TENSOR && d < s->shapes[i].rank; d++)
            if (s->shapes[i].dim[d] < 0) PRN_TRY(resolve_axis(s, model, i, d, ask, error));
    s->open = count_open(s, model);
    if (s->open) PRN_TRY(prn_free_dims_imply(s, model, error));
    if (s->open) s->open = count_open(s, model);
    return PRONY_OK;
}

prony_status prn_input_shapes_closed(const prn_input_shapes *s, const prony_model *model, prony_error *error)
{
    char list[600] = "", text[PRN_FREE_DIM_NAME_BYTES], shape[PRN_SHAPE_TEXT_BYTES];
    size_t used = 0;
    if (!s->open) return PRONY_OK;
    for (size_t i = 0; i < model->file->graph.input_count; i++) {
        const prony_value_info *port = &model->file->graph.inputs[i];
        for (int d = 0; d < s->shapes[i].rank; d++)
            if (s->shapes[i].dim[d] < 0 && used < sizeof list)
                used += (size_t)snprintf(list + used, sizeof list - used, "%s'%.100s' (axis %d of input '%.60s' %s)",
                                         used ? ", " : "", prn_free_dim_name(port, d, text), d, port->name,
                                         prn_shape_text(&port->shape, shape));
    }
    return prn_fail(error, PRONY_NEEDS_DIMENSION,
                    "%.300s: the size of %s is unknown; set it (--dim NAME=N), or '*' for all", model->file->name,
                    list);
}

/* ---- the list that users see ---- */

/* The assumed sizes of free dimensions, by name. */
typedef struct assumed_names {
    prn_names index; /* into prn_input_shapes' assumed */
    prn_bump pool;   /* of names that are not symbols */
} assumed_names;

static bool assumed_index(assumed_names *names, const prony_model *model, const prn_input_shapes *s)
{
    char text[PRN_FREE_DIM_NAME_BYTES];
    for (size_t k = 0; k < s->assumed.count; k++) {
        const prn_assumed *a = &s->assumed.items[k];
        const char *name = prn_free_dim_name(&model->file->graph.inputs[a->input], a->axis, text);
        if (name == text) name = prn_bump_strndup(&names->pool, text, strlen(text));
        if (!name || !prn_names_put(&names->index, name, (uint32_t)k)) return false;
    }
    return true;
}

static prony_status free_dims_fill_row(prony_free_dim *row, void *rows, const prony_model *model,
                                       const prn_input_shapes *s, const assumed_names *names,
                                       const prony_shape *example, size_t input, int axis, prony_error *error)
{
    const prony_value_info *port = &model->file->graph.inputs[input];
    char text[PRN_FREE_DIM_NAME_BYTES];
    uint32_t k;
    row->name = prn_rows_text(rows, prn_free_dim_name(port, axis, text));
    row->input = prn_rows_text(rows, port->name);
    if (!row->name || !row->input) return prn_no_memory(error);
    row->axis = axis;
    row->value = s->shapes[input].dim[axis];
    row->reason = row->value >= 0 ? "given" : "";
    row->example = row->value < 0 ? example->dim[axis] : -1;
    if (prn_names_get(&names->index, row->name, &k)) row->reason = s->assumed.items[k].reason;
    return PRONY_OK;
}

static prony_status free_dims_fill_rows(prony_free_dim *rows, size_t *count, const prony_model *model,
                                        const prn_input_shapes *s, const prony_shape *example, prony_error *error)
{
    const prn_graph *graph = &model->file->graph;
    prn_names listed = {0}; /* symbols that have a row */
    assumed_names names = {0};
    prony_status status = assumed_index(&names, model, s) ? PRONY_OK : prn_no_memory(error);
    for (size_t i = 0; i < graph->input_count; i++) {
        const prony_value_info *port = &graph->inputs[i];
        for (int d = 0; d < port->shape.rank && status == PRONY_OK; d++) {
            const char *symbol = port->dim_names[d];
            uint32_t any;
            if (port->shape.dim[d] >= 0 || (symbol && *symbol && prn_names_get(&listed, symbol, &any))) continue;
            status = free_dims_fill_row(&rows[*count], rows, model, s, &names, &example[i], i, d, error);
            if (status == PRONY_OK && symbol && *symbol && !prn_names_put(&listed, symbol, 0))
                status = prn_no_memory(error);
            ++*count;
        }
    }
    prn_names_free(&listed);
    prn_names_free(&names.index);
    prn_bump_release(&names.pool);
    return status;
}

static prony_status list_free_dims(prony_free_dim **rows, size_t *count, prony_model *model,
                                   const prony_session_options *options, prony_error *error)
{
    const prn_graph *graph = &model->file->graph;
    size_t most = 0;
    prn_input_shapes s;
    PRN_TRY(prn_ports_check_options(model->file, options, error));
    PRN_TRY(prn_input_shapes_init(&s, model, error));
    prony_shape *example = prn_calloc(graph->input_count + 1, sizeof *example);
    for (size_t i = 0; i < graph->input_count; i++)
        for (int d = 0; d < graph->inputs[i].shape.rank; d++) most += graph->inputs[i].shape.dim[d] < 0;
    prony_free_dim *made = prn_rows_create(most, sizeof *made);
    prony_status status = made && example ? prn_input_shapes_resolve(&s, model, options, error) : prn_no_memory(error);
    for (size_t i = 0; status == PRONY_OK && i < graph->input_count; i++) example[i] = s.shapes[i];
    if (status == PRONY_OK && s.open) status = prn_free_dims_example(example, model, error);
    if (status == PRONY_OK) status = free_dims_fill_rows(made, count, model, &s, example, error);
    prn_free(example);
    prn_input_shapes_free(&s);
    if (status != PRONY_OK) {
        prony_rows_release(made);
        *count = 0;
        return status;
    }
    *rows = made;
    return PRONY_OK;
}

prony_status prony_model_free_dims(prony_free_dim **rows, size_t *count, prony_model *model,
                                   const prony_session_options *options, prony_error *error)
{
    prony_session_options ask = PRONY_SESSION_OPTIONS_INIT;
    ask.free_dims = PRONY_FREE_ASK;
    if (!rows || !count || !model)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_model_free_dims: an argument is NULL");
    *rows = NULL;
    *count = 0;
    PRN_TRY(prn_options_read(&ask, sizeof ask, options, "session options", error));
    prn_budget *former = prn_budget_enter(model->budget);
    prony_status status = list_free_dims(rows, count, model, &ask, error);
    prn_budget_enter(former);
    return status;
}

/* ---- messages ---- */

bool prn_is_shape_failure(prony_status status)
{
    return status == PRONY_SHAPE_MISMATCH || status == PRONY_OUT_OF_RANGE || status == PRONY_INVALID_MODEL ||
           status == PRONY_INVALID_ARGUMENT;
}

void prn_error_name_dims(prony_error *error, const prony_model *model, const prony_value *inputs,
                         const prn_assumed_list *assumed)
{
    const prn_graph *graph = &model->file->graph;
    char list[400] = "";
    size_t used = 0, named = 0;
    if (!error) return;
    for (size_t i = 0; i < graph->input_count; i++) {
        const prony_value_info *port = &graph->inputs[i];
        for (int d = 0; d < port->shape.rank; d++) {
            char text[PRN_FREE_DIM_NAME_BYTES], one[200];
            bool was_assumed = false;
            if (port->shape.dim[d] >= 0 || inputs[i].shape.rank != port->shape.rank) continue;
            for (size_t k = 0; assumed && k < assumed->count; k++)
                was_assumed = was_assumed || (assumed->items[k].input == i && assumed->items[k].axis == d);
            snprintf(one, sizeof one, "%.100s=%lld%s", prn_free_dim_name(port, d, text),
                     (long long)inputs[i].shape.dim[d], was_assumed ? " (assumed)" : "");
            if (strstr(list, one) || used + strlen(one) + 4 > sizeof list) continue;
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", named++ ? ", " : "", one);
        }
    }
    size_t length = strlen(error->message);
    if (named)
        snprintf(error->message + length, sizeof error->message - length, "; free dimensions here: %s (--dim NAME=N)",
                 list);
}
