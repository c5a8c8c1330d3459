/* The model's graph for Graphviz: a vertex per layer, filled by its share of the time (of the FLOPs if nothing was
 * measured), an edge if a layer reads another one's output. Layers evaluated at bind time are dashed; the tooltip names
 * layer, operator and kernel. Each subgraph has a frame, with a dotted edge from its layer. Reads the report only. */
#include "profiler/exporters/export_out.h"
#include "profiler/exporters/nested_lines.h"
#include "profiler/text/number_text.h"
#include "profiler/text/utf8.h"
#include "profiler/exporters/color_map.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Inside of a quoted string; invalid UTF-8 and control characters become '?'. */
static void report_dot_put_quoted(prn_out *out, const char *text)
{
    while (*text) {
        const size_t bytes = prony_text_printable(text);
        const char c = *text;
        if (bytes == 0)
            prn_out_text(out, "?");
        else if (c == '"' || c == '\\')
            prn_out_format(out, "\\%c", c);
        else
            prn_out_bytes(out, text, bytes);
        text += bytes ? bytes : prn_utf8_skip(text);
    }
}

static void report_dot_put_shape(prn_out *out, const prony_value *value)
{
    if (!value || value->shape.rank < 0) return;
    prn_out_text(out, "\\n");
    if (value->shape.rank == 0) prn_out_text(out, "scalar");
    for (int d = 0; d < value->shape.rank && d < PRONY_MAX_RANK; d++) {
        if (value->shape.dim[d] >= 0)
            prn_out_format(out, "%s%" PRId64, d ? "x" : "", value->shape.dim[d]);
        else
            prn_out_format(out, "%s?", d ? "x" : "");
    }
}

static void put_vertex(prn_out *out, const prony_report *r, const prony_layer_row *l, double most)
{
    prn_number_text number, percent;
    prn_color color;
    double heat = prn_color_map_layer(r, l);
    double level = most > 0 ? sqrt(heat / most) : 0;
    prn_out_format(out, "  n%" PRIu32 " [label=\"", l->index);
    report_dot_put_quoted(out, l->op);
    report_dot_put_shape(out, l->output_count ? l->outputs[0] : NULL);
    if (heat > 0) {
        prn_out_text(out, "\\n");
        if (l->measured) prn_out_format(out, "%s  ", prn_number_time(number, l->time.mean_ns, 3, " "));
        prn_out_format(out, "%s %%", prn_number_percent(percent, heat));
        if (l->time_attributed) prn_out_text(out, " ~");
    }
    prn_out_text(out, "\", tooltip=\"");
    report_dot_put_quoted(out, l->name);
    if (l->operator_index < r->operator_count) {
        prn_out_format(out, "\\noperator %" PRIu32 ": ", l->operator_index);
        report_dot_put_quoted(out, r->operators[l->operator_index].kernel);
    }
    prn_out_format(out, "\", fillcolor=\"%s\", fontcolor=\"%s\"%s];\n", prn_color_map_color(color, level),
                   level > 0.6 ? "white" : "black", l->folded ? ", style=\"filled,rounded,dashed\"" : "");
}

/* ---- subgraphs ---- */

/* Writes a vertex of a subgraph. Nodes that did not run are dashed. */
static void put_nested_vertex(prn_out *out, const prony_report *r, const prony_nested_row *n, double most)
{
    prn_number_text number, percent;
    prn_color color;
    double heat = n->measured ? n->share : 0;
    if (!prn_report_stamped(r) && r->totals.cost.flops) heat = (double)n->cost.flops / (double)r->totals.cost.flops;
    double level = most > 0 ? sqrt(heat / most) : 0;
    bool idle = n->folded || (n->executed && !n->executions);
    prn_out_format(out, "m%" PRIu32 " [label=\"", n->index);
    report_dot_put_quoted(out, n->op);
    report_dot_put_shape(out, n->output_count ? n->outputs[0] : NULL);
    if (heat > 0) {
        prn_out_text(out, "\\n");
        if (n->measured) prn_out_format(out, "%s  ", prn_number_time(number, n->time.mean_ns, 3, " "));
        prn_out_format(out, "%s %%", prn_number_percent(percent, heat));
        if (n->time_attributed) prn_out_text(out, " ~");
    }
    prn_out_text(out, "\", tooltip=\"");
    report_dot_put_quoted(out, n->path);
    prn_out_text(out, " > ");
    report_dot_put_quoted(out, n->name);
    if (n->executed) prn_out_format(out, "\\nexecuted %" PRIu64 " times", n->executions);
    if (*n->kernel) prn_out_text(out, "\\n"), report_dot_put_quoted(out, n->kernel);
    prn_out_format(out, "\", fillcolor=\"%s\", fontcolor=\"%s\"%s];\n",
                   prn_color_map_color(color, level < 1 ? level : 1), level > 0.6 ? "white" : "black",
                   idle ? ", style=\"filled,rounded,dashed\"" : "");
}

/* Writes the subgraph that begins with row `i`, with deeper ones; returns the row after them. Graphviz draws a frame
 * around a subgraph named "cluster…". */
static size_t put_subgraph(prn_out *out, const prony_report *r, size_t i, double most, bool *first)
{
    const prony_nested_row *begin = &r->nested_layers[i];
    int indent = 2 * (int)begin->depth;
    first[i] = true;
    prn_out_format(out, "%*ssubgraph cluster_%zu {\n%*slabel=\"", indent, "", i, indent + 2, "");
    report_dot_put_quoted(out, begin->path);
    if (begin->executed) prn_out_format(out, " x %" PRIu64, begin->executions);
    prn_out_text(out, "\"; fontsize=10; fontname=\"Helvetica\"; color=\"#777777\"; style=dashed;\n");
    while (i < r->nested_layer_count) {
        const prony_nested_row *n = &r->nested_layers[i];
        if (n->owner != begin->owner || n->depth < begin->depth) break;
        if (n->depth > begin->depth) {
            i = put_subgraph(out, r, i, most, first);
            continue;
        }
        if (n->parent != begin->parent || strcmp(n->path, begin->path) != 0) break;
        prn_out_format(out, "%*s", indent + 2, "");
        put_nested_vertex(out, r, n, most);
        i++;
    }
    prn_out_format(out, "%*s}\n", indent, "");
    return i;
}

static void put_nested_edges(prn_out *out, const prony_report *r, const bool *first)
{
    for (size_t i = 0; i < r->nested_layer_count; i++) {
        const prony_nested_row *n = &r->nested_layers[i];
        bool inner = n->parent != PRONY_NO_INDEX;
        if (first[i])
            prn_out_format(out, "  %s%" PRIu32 " -> m%" PRIu32 " [style=dotted];\n", inner ? "m" : "n",
                           inner ? n->parent : n->owner, n->index);
        for (size_t k = 0; n->sources && k < n->input_count; k++)
            if (n->sources[k] < r->nested_layer_count)
                prn_out_format(out, "  m%" PRIu32 " -> m%" PRIu32 ";\n", n->sources[k], n->index);
    }
}

static prony_status report_dot_put_nested(prn_out *out, const prony_report *r, double most, prony_error *error)
{
    bool *first = prn_calloc(r->nested_layer_count + 1, sizeof *first); /* of its subgraph */
    if (!first) return prn_no_memory(error);
    for (size_t i = 0; i < r->nested_layer_count;) i = put_subgraph(out, r, i, most, first);
    put_nested_edges(out, r, first);
    prn_free(first);
    return PRONY_OK;
}

/* Writes all vertices before the edges, then the subgraphs. */
prony_status prn_report_write_dot(const prony_report *r, const prony_write_options *options, prony_write_fn write,
                                  void *user, prony_error *error)
{
    prn_out out;
    (void)options;
    prn_out_begin(&out, write, user, error);
    prn_out_text(&out, "digraph \"");
    report_dot_put_quoted(&out, prn_report_title(r));
    prn_out_format(&out, "\" {\n  label=\"");
    report_dot_put_quoted(&out, prn_report_title(r));
    prn_out_format(&out, "\\ncoloured by share of the %s\";\n  labelloc=t;\n  fontname=\"Helvetica\";\n",
                   prn_report_stamped(r) ? "time inside operators" : "FLOPs");
    prn_out_text(
        &out, "  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=10, color=\"#777777\"];\n"
              "  edge [color=\"#777777\", arrowsize=0.6];\n");
    double most = prn_color_map_max(r);
    for (size_t i = 0; i < r->layer_count; i++) put_vertex(&out, r, &r->layers[i], most);
    for (size_t i = 0; i < r->layer_count; i++) {
        const prony_layer_row *l = &r->layers[i];
        for (size_t k = 0; l->sources && k < l->input_count; k++) {
            if (l->sources[k] >= r->layer_count) continue;
            prn_out_format(&out, "  n%" PRIu32 " -> n%" PRIu32 ";\n", l->sources[k], l->index);
        }
    }
    PRN_TRY(report_dot_put_nested(&out, r, most, error));
    prn_out_text(&out, "}\n");
    return prn_out_end(&out);
}
