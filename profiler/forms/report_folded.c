/* Folded stacks, as flame graph tools read them: "model;module;...;layer count", a line per layer. The count is its
 * mean time in nanoseconds; where nothing was measured, its FLOPs. What ran for no layer stands below "(no layer)", so
 * that the counts sum to the time inside operators. Reads the report only.
 */
#include "profiler/forms/form_out.h"
#include "profiler/report/report.h"

#include <inttypes.h>
#include <string.h>

/* A semicolon would part a frame in two. */
static void put_frame(prn_out *out, const char *text, size_t size)
{
    prn_out_printable(out, text, size, ';', ":");
}

static void put_line(prn_out *out, const prony_report *r, const char *module, const char *name, const char *op,
                     uint64_t count)
{
    const char *leaf = strrchr(name, '/');
    leaf = leaf && leaf[1] ? leaf + 1 : name;
    put_frame(out, prn_report_title(r), strlen(prn_report_title(r)));
    while (*module) {
        size_t part = strcspn(module, "/");
        if (part) {
            prn_out_text(out, ";");
            put_frame(out, module, part);
        }
        module += part + (module[part] == '/');
    }
    prn_out_text(out, ";");
    put_frame(out, leaf, strlen(leaf));
    if (strcmp(leaf, op) != 0) {
        prn_out_text(out, " [");
        put_frame(out, op, strlen(op));
        prn_out_text(out, "]");
    }
    prn_out_format(out, " %" PRIu64 "\n", count);
}

prony_status prn_report_write_folded(const prony_report *r, const prony_write_options *options, prony_write_fn write,
                                     void *user, prony_error *error)
{
    prn_out out;
    (void)options;
    prn_out_begin(&out, write, user, error);
    bool stamped = prn_report_stamped(r);
    for (size_t i = 0; i < r->layer_count; i++) {
        const prony_layer_row *l = &r->layers[i];
        uint64_t count = !stamped ? l->cost.flops : l->measured && l->time.mean_ns > 0 ? (uint64_t)l->time.mean_ns : 0;
        if (count) put_line(&out, r, l->module ? l->module : "", l->name ? l->name : "", l->op ? l->op : "", count);
    }
    for (size_t i = 0; stamped && i < r->operator_count; i++) {
        const prony_operator_row *o = &r->operators[i];
        if (o->layer_count == 0 && o->time.mean_ns > 0)
            put_line(&out, r, "(no layer)", o->name, o->op, (uint64_t)o->time.mean_ns);
    }
    return prn_out_end(&out);
}
