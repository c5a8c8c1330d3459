/* The rows of the JSON report that stand for what runs in subgraphs. Reads the report only. */
#include "profiler/forms/report_json.h"

static void write_place(prn_json *j, const prony_nested_row *n)
{
    prn_json_uint(j, "index", n->index);
    prn_json_uint(j, "owner", n->owner);
    if (n->parent != PRONY_NO_INDEX)
        prn_json_uint(j, "parent", n->parent);
    else
        prn_json_null(j, "parent");
    prn_json_uint(j, "depth", n->depth);
    prn_json_string(j, "path", n->path);
    prn_json_string(j, "subgraph", n->subgraph);
    prn_json_string(j, "name", n->name);
    prn_json_string(j, "op", n->op);
}

static void write_figures(prn_json *j, const prony_report *r, const prony_nested_row *n)
{
    if (n->executed) prn_json_uint(j, "executions", n->executions);
    prn_json_counts(j, &n->cost);
    prn_json_bytes(j, &n->cost);
    if (n->measured) {
        prn_json_time(j, &n->time);
        prn_json_double(j, "share", n->share);
    } else if (prn_report_stamped(r)) {
        prn_json_null(j, "time_ns");
        prn_json_null(j, "share");
    }
    if (n->stopped) prn_json_bool(j, "stopped", true);
}

static void write_layer(prn_json *j, const prony_report *r, const prony_nested_row *n)
{
    prn_json_open(j, NULL, '{', false);
    write_place(j, n);
    prn_json_string(j, "module", n->module);
    prn_json_bool(j, "folded", n->folded);
    prn_json_bool(j, "dynamic", n->dynamic);
    prn_json_values(j, "inputs", n->inputs, n->input_count);
    prn_json_values(j, "outputs", n->outputs, n->output_count);
    write_figures(j, r, n);
    prn_json_facts(j, &n->cost);
    if (n->sources) prn_json_indices(j, "sources", n->sources, n->input_count);
    if (n->measured) prn_json_bool(j, "time_attributed", n->time_attributed);
    if (n->operator_index != PRONY_NO_INDEX)
        prn_json_uint(j, "operator", n->operator_index);
    else
        prn_json_null(j, "operator");
    prn_json_close(j, '}');
}

static void write_operator(prn_json *j, const prony_report *r, const prony_nested_row *n)
{
    prn_json_open(j, NULL, '{', false);
    write_place(j, n);
    prn_json_known_string(j, "kernel", n->kernel);
    prn_json_known_string(j, "backend", n->backend);
    prn_json_bool(j, "dynamic", n->dynamic);
    prn_json_indices(j, "layers", n->layers, n->layer_count);
    write_figures(j, r, n);
    if (n->measured) prn_json_ratio(j, "flops_per_second", (double)n->cost.flops, (double)n->time.mean_ns / 1e9);
    if (n->traced) {
        prn_json_open(j, "trace", '{', true);
        prn_json_int(j, "start_ns", n->trace_start_ns);
        prn_json_int(j, "time_ns", n->trace_ns);
        prn_json_close(j, '}');
    }
    prn_json_close(j, '}');
}

void prn_json_nested(prn_json *j, const prony_report *r)
{
    if (r->nested_layer_count) {
        prn_json_open(j, "nested_layers", '[', false);
        for (size_t i = 0; i < r->nested_layer_count; i++) write_layer(j, r, &r->nested_layers[i]);
        prn_json_close(j, ']');
    }
    if (r->nested_operator_count) {
        prn_json_open(j, "nested_operators", '[', false);
        for (size_t i = 0; i < r->nested_operator_count; i++) write_operator(j, r, &r->nested_operators[i]);
        prn_json_close(j, ']');
    }
}
