/* Folded stacks, as flame graph tools read them: "model;module;...;layer count", a line per layer. The count is its
 * mean time in nanoseconds or, without measurement, its FLOPs. Operators without a layer are below "(no layer)", so the
 * counts sum to the time inside operators. Rows of a layer's subgraphs are below that layer, whose own count excludes
 * them. Reads the report only. */
#include "profiler/exporters/export_out.h"
#include "profiler/exporters/nested_lines.h"

#include <inttypes.h>
#include <string.h>

/* A semicolon would split a frame in two. */
static void put_frame(prn_out *out, const char *text, size_t size)
{
    prn_out_printable(out, text, size, ';', ":");
}

static void put_leaf(prn_out *out, const char *name, const char *op)
{
    const char *leaf = strrchr(name, '/');
    leaf = leaf && leaf[1] ? leaf + 1 : name;
    prn_out_text(out, ";");
    put_frame(out, leaf, strlen(leaf));
    if (strcmp(leaf, op) == 0) return;
    prn_out_text(out, " [");
    put_frame(out, op, strlen(op));
    prn_out_text(out, "]");
}

static void put_stack(prn_out *out, const prony_report *r, const char *module, const char *name, const char *op)
{
    put_frame(out, prn_report_title(r), strlen(prn_report_title(r)));
    while (*module) {
        size_t part = strcspn(module, "/");
        if (part) {
            prn_out_text(out, ";");
            put_frame(out, module, part);
        }
        module += part + (module[part] == '/');
    }
    put_leaf(out, name, op);
}

static void report_folded_put_line(prn_out *out, const prony_report *r, const char *module, const char *name,
                                   const char *op, uint64_t count)
{
    put_stack(out, r, module, name, op);
    prn_out_format(out, " %" PRIu64 "\n", count);
}

/* ---- rows of subgraphs ---- */

static uint64_t nested_count(const prony_nested_row *n, bool stamped)
{
    return !stamped ? n->cost.flops : n->measured && n->time.mean_ns > 0 ? (uint64_t)n->time.mean_ns : 0;
}

/* From the owner's subgraph down to the row. */
static void put_nested_frames(prn_out *out, const prony_nested_row *rows, const prony_nested_row *n)
{
    if (n->parent != PRONY_NO_INDEX) put_nested_frames(out, rows, &rows[n->parent]);
    prn_out_text(out, ";");
    put_frame(out, n->subgraph, strlen(n->subgraph));
    put_leaf(out, n->name, n->op);
}

/* Fills `own` with each row's count without its nested rows, and subtracts the layer's nested rows from *rest. false:
 * nothing ran, and a branch has no share of its If's count, which is the larger branch's. */
static bool take_inside(const prony_nested_row *rows, size_t count, bool stamped, uint64_t *own, uint64_t *rest)
{
    for (size_t i = 0; i < count; i++) own[i] = nested_count(&rows[i], stamped);
    for (size_t i = 0; i < count; i++) {
        uint64_t *from = rows[i].parent == PRONY_NO_INDEX ? rest : &own[rows[i].parent - rows[0].index];
        uint64_t part = nested_count(&rows[i], stamped);
        if (part > *from && !stamped) return false;
        if (part > *from) { /* means are rounded */
            own[i] -= own[i] < part - *from ? own[i] : part - *from;
            part = *from;
        }
        *from -= part;
    }
    return true;
}

static prony_status report_folded_put_layer(prn_out *out, const prony_report *r, const prony_layer_row *l, bool stamped,
                                            prony_error *error)
{
    uint64_t count = !stamped                             ? l->cost.flops
                     : l->measured && l->time.mean_ns > 0 ? (uint64_t)l->time.mean_ns
                                                          : 0,
             rest = count;
    const char *module = l->module ? l->module : "", *name = l->name ? l->name : "", *op = l->op ? l->op : "";
    size_t first, inside = prn_nested_of(r->nested_layers, r->nested_layer_count, l->index, &first);
    const prony_nested_row *rows = inside ? &r->nested_layers[first] : NULL;
    if (!count) return PRONY_OK;
    uint64_t *own = prn_calloc(inside + 1, sizeof *own);
    if (!own) return prn_no_memory(error);
    bool known = take_inside(rows, inside, stamped, own, &rest);
    if (!known || rest) report_folded_put_line(out, r, module, name, op, known ? rest : count);
    for (size_t i = 0; known && i < inside; i++) {
        if (!own[i]) continue;
        put_stack(out, r, module, name, op);
        put_nested_frames(out, r->nested_layers, &rows[i]);
        prn_out_format(out, " %" PRIu64 "\n", own[i]);
    }
    prn_free(own);
    return PRONY_OK;
}

prony_status prn_report_write_folded(const prony_report *r, const prony_write_options *options, prony_write_fn write,
                                     void *user, prony_error *error)
{
    prn_out out;
    (void)options;
    prn_out_begin(&out, write, user, error);
    bool stamped = prn_report_stamped(r);
    for (size_t i = 0; i < r->layer_count; i++)
        PRN_TRY(report_folded_put_layer(&out, r, &r->layers[i], stamped, error));
    for (size_t i = 0; stamped && i < r->operator_count; i++) {
        const prony_operator_row *o = &r->operators[i];
        if (o->layer_count == 0 && o->time.mean_ns > 0)
            report_folded_put_line(&out, r, "(no layer)", o->name, o->op, (uint64_t)o->time.mean_ns);
    }
    return prn_out_end(&out);
}
