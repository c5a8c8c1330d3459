/* Chooses the requested chart by name, and refuses one whose data the report lacks. */
#include "profiler/exporters/svg/report_svg.h"

#include <string.h>

static const char *lacks_layers(const prony_report *r)
{
    return r->layer_count ? NULL : "layers";
}

static const char *lacks_latency(const prony_report *r)
{
    return r->measured && r->samples_ns && r->latency.count ? NULL : "latencies: the model was not run";
}

static const char *lacks_times(const prony_report *r)
{
    return prn_report_stamped(r) && r->operator_count ? NULL : "times of operators: the model was not profiled";
}

static const char *lacks_timeline(const prony_report *r)
{
    return r->has_memory && r->memory.timeline_count ? NULL : "memory timeline: the model was not run";
}

static const char *lacks_errors(const prony_report *r)
{
    return r->operator_errors && r->operator_count ? NULL
                                                   : "errors of operators: there was no accuracy profile (--accuracy)";
}

static const char *lacks_cores(const prony_report *r)
{
    return r->core_count && r->core_points ? NULL : "use of the processors: the runs were too short";
}

static const char *lacks_pipeline(const prony_report *r)
{
    return r->rank_count && r->pipeline_event_count ? NULL : "ranks: the model ran in one process (prony-mpi --shard)";
}

static const char *lacks_generation(const prony_report *r)
{
    return r->has_generation && r->generation.position_count ? NULL
                                                             : "generated tokens: it is not of a decoder (--generate)";
}

/* In the order of the page, which draws layers, types and the graph itself: as lists with a choice of figures, and on a
 * canvas of any depth. */
static const struct {
    const char *name;
    bool on_page;
    const char *(*lacks)(const prony_report *report);
    prony_status (*draw)(prn_out *out, const prony_report *report, prony_error *error);
} charts[] = {
    {"layers", false, lacks_layers, prn_svg_layers},
    {"types", false, lacks_layers, prn_svg_types},
    {"generation", true, lacks_generation, prn_svg_generation},
    {"roofline", true, lacks_times, prn_svg_roofline},
    {"memory", true, lacks_timeline, prn_svg_memory},
    {"latency", true, lacks_latency, prn_svg_latency},
    {"runs", true, lacks_latency, prn_svg_runs},
    {"cores", true, lacks_cores, prn_svg_cores},
    {"modules", true, lacks_layers, prn_svg_modules},
    {"graph", false, lacks_layers, prn_svg_graph},
    {"accuracy", true, lacks_errors, prn_svg_accuracy},
    {"pipeline", true, lacks_pipeline, prn_svg_pipeline},
};

const char *const *prony_chart_names(void)
{
    static const char *const names[] = {"layers",  "types", "roofline", "memory",   "latency",    "runs", "cores",
                                        "modules", "graph", "accuracy", "pipeline", "generation", NULL};
    _Static_assert(sizeof names / sizeof names[0] == sizeof charts / sizeof charts[0] + 1, "one name per chart");
    return names;
}

prony_status prn_report_write_svg(const prony_report *r, const prony_write_options *options, prony_write_fn write,
                                  void *user, prony_error *error)
{
    const char *name = options->chart ? options->chart : "";
    for (size_t i = 0; i < sizeof charts / sizeof charts[0]; i++) {
        if (strcmp(charts[i].name, name) != 0) continue;
        const char *lacks = charts[i].lacks(r);
        if (lacks) return prn_fail(error, PRONY_INVALID_ARGUMENT, "chart \"%s\": the report holds no %s", name, lacks);
        prn_out out;
        prn_out_begin(&out, write, user, error);
        PRN_TRY(charts[i].draw(&out, r, error));
        return prn_out_end(&out);
    }
    return prn_fail(error, PRONY_INVALID_ARGUMENT,
                    "unknown chart \"%s\"; known: layers, types, roofline, memory, latency, runs, cores, modules, "
                    "graph, accuracy, pipeline and generation",
                    name);
}

/* The pictures that the page shows, each as a figure that html/pictures.js finds by its data-chart. */
prony_status prn_report_write_pictures(const prony_report *r, const prony_write_options *options, prony_write_fn write,
                                       void *user, prony_error *error)
{
    prn_out out;
    (void)options;
    prn_out_begin(&out, write, user, error);
    out.in_page = true;
    for (size_t i = 0; i < sizeof charts / sizeof charts[0]; i++) {
        if (!charts[i].on_page || charts[i].lacks(r)) continue;
        prn_out_format(&out, "<figure class=\"panel picture\" id=\"panel-%s\" data-chart=\"%s\">\n", charts[i].name,
                       charts[i].name);
        PRN_TRY(charts[i].draw(&out, r, error));
        prn_out_text(&out, "</figure>\n");
    }
    return prn_out_end(&out);
}
