#include "tests/support/qdq_ways.h"

#include "base/shape.h"
#include "tests/support/graph_run.h"

#include <stdlib.h>
#include <string.h>

static void *must(void *block)
{
    if (!block) abort();
    return block;
}

/* ---- as a body ---- */

static bool is_made(const rg_graph *graph, int id)
{
    for (size_t n = 0; n < graph->node_count; n++)
        for (size_t k = 0; k < graph->nodes[n].out_count; k++)
            if (graph->nodes[n].out[k] == id) return true;
    return false;
}

/* Leaves outputs that a node of the graph makes, as many as a node may have. */
static void keep_made_outputs(random_graph *g, size_t most)
{
    int *ids = rg_copy_ids(g, g->main.outputs, g->main.output_count);
    size_t count = 0;
    for (size_t k = 0; k < g->main.output_count && count < most; k++)
        if (is_made(&g->main, g->main.outputs[k])) ids[count++] = g->main.outputs[k];
    g->main.outputs = ids;
    g->main.output_count = count;
}

static int new_input(random_graph *g, prony_dtype dtype, double number)
{
    int *ids = rg_copy_ids(g, g->main.inputs, g->main.input_count);
    const int id = rg_add_value(g, (rg_value){.dtype = dtype, .input = true, .low = number, .high = number});
    ids[g->main.input_count++] = id;
    g->main.inputs = ids;
    return id;
}

static rg_graph *as_body(random_graph *g)
{
    rg_graph *body = must(prn_bump_alloc(&g->pool, 1, sizeof *body));
    *body = g->main;
    body->input_count = 0;
    return body;
}

/* The outer graph: one node, whose body has the network's nodes and reads the network's inputs from outside. */
static rg_node *become_outer(random_graph *g, const rg_graph *body, const char *op, int in)
{
    g->main.nodes = NULL;
    g->main.node_count = g->main.node_capacity = 0;
    rg_node *node = rg_add_node(g, &g->main, op, &in, 1, "");
    int ids[RG_MOST_RESULTS];
    for (size_t k = 0; k < body->output_count; k++) {
        const rg_value like = g->values[body->outputs[k]];
        ids[k] = rg_add_value(g, (rg_value){.dtype = like.dtype, .shape = {.rank = -1}});
        node->out[node->out_count++] = ids[k];
    }
    g->main.outputs = rg_copy_ids(g, ids, body->output_count);
    return node;
}

static void wrap_in_if(random_graph *g)
{
    const int go = new_input(g, PRONY_BOOL, (double)(g->seed % 2));
    rg_graph *body = as_body(g);
    rg_node *node = become_outer(g, body, "If", go);
    node->body[0] = node->body[1] = body;
    node->body_name[0] = "then_branch";
    node->body_name[1] = "else_branch";
}

/* Two trips; every output is a list of both. */
static void wrap_in_loop(random_graph *g)
{
    const int trips = new_input(g, PRONY_INT64, 2);
    rg_graph *body = as_body(g);
    rg_node *node = become_outer(g, body, "Loop", trips);
    const int in[2] = {trips, -1};
    node->in = rg_copy_ids(g, in, 2);
    node->in_count = 2;
    node->body[0] = body;
    node->body_name[0] = "body";
    const int inner[2] = {rg_add_value(g, (rg_value){.dtype = PRONY_INT64}),
                          rg_add_value(g, (rg_value){.dtype = PRONY_BOOL})};
    const int on = rg_add_value(g, (rg_value){.dtype = PRONY_BOOL});
    body->inputs = rg_copy_ids(g, inner, 2);
    body->input_count = 2;
    rg_node *still = rg_add_node(g, body, "Identity", &inner[1], 1, "");
    still->out[still->out_count++] = on;
    int *outputs = must(prn_bump_alloc(&g->pool, body->output_count + 1, sizeof *outputs));
    outputs[0] = on;
    memcpy(outputs + 1, body->outputs, body->output_count * sizeof *outputs);
    body->outputs = outputs;
    body->output_count++;
}

static prony_status run(const random_graph *g, graph_outputs *out)
{
    static const graph_way way = {.name = "body", .fill_dead = true, .threads = 1, .runs = 2};
    graph_model m;
    *out = (graph_outputs){.status = graph_open(&m, g)};
    if (out->status == PRONY_OK)
        graph_run(&m, &way, out);
    else
        snprintf(out->message, sizeof out->message, "%s", m.error.message);
    graph_close(&m);
    return out->status;
}

/* The network's bytes, repeated once per trip of the body. */
static bool same_bytes(const graph_outputs *flat, const graph_outputs *wrapped, size_t times, char *text, size_t size)
{
    for (size_t k = 0; k < flat->count; k++) {
        const size_t bytes = prn_value_bytes(&flat->values[k]);
        bool same = prn_value_bytes(&wrapped->values[k]) == times * bytes;
        for (size_t t = 0; t < times && same && bytes; t++)
            same = memcmp(flat->values[k].data, (const char *)wrapped->values[k].data + t * bytes, bytes) == 0;
        if (!same) return snprintf(text, size, "output %zu of the body differs from the network's", k) < 0;
    }
    return true;
}

bool qdq_body_agrees(random_graph *g, bool loop, qdq_ways_tally *tally, char *text, size_t size)
{
    graph_outputs flat, wrapped = {0};
    bool good = true;
    keep_made_outputs(g, loop ? RG_MOST_RESULTS - 1 : RG_MOST_RESULTS);
    if (g->main.output_count == 0) return true;
    if (run(g, &flat) == PRONY_OK) {
        (loop ? wrap_in_loop : wrap_in_if)(g);
        good = run(g, &wrapped) == PRONY_OK;
        if (good)
            good = same_bytes(&flat, &wrapped, loop ? 2 : 1, text, size);
        else
            snprintf(text, size, "as a body: %s", wrapped.message);
        tally->bodies++;
    }
    graph_outputs_free(&flat);
    graph_outputs_free(&wrapped);
    return good;
}

/* ---- with other batches ---- */

enum { MOST_BATCH = 4 };

static prony_session *open_session(prony_model *model, bool largest)
{
    static const prony_dim most = {"batch", MOST_BATCH};
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 1;
    options.max_dims = largest ? &most : NULL;
    options.max_dim_count = largest;
    return prony_session_create(&session, model, &options, NULL) == PRONY_OK ? session : NULL;
}

static prony_status run_session(prony_session *session, const random_graph *g, int64_t batch, prony_error *error)
{
    for (size_t i = 0; i < g->main.input_count; i++) {
        const rg_value *type = &g->values[g->main.inputs[i]];
        char name[16];
        prony_value value = {.dtype = type->dtype, .shape = type->shape};
        value.shape.dim[0] = batch;
        value.data = must(malloc(prn_value_bytes(&value) + 1));
        random_graph_fill(g, i, batch, value.data);
        snprintf(name, sizeof name, "v%d", g->main.inputs[i]);
        const prony_status status = prony_session_set_input(session, name, &value, error);
        free(value.data);
        if (status != PRONY_OK) return status;
    }
    return prony_session_run(session, error);
}

static bool same_outputs(prony_session *a, prony_session *b, size_t count, char *text, size_t size)
{
    for (size_t k = 0; k < count; k++) {
        const prony_value *x, *y;
        if (prony_session_output(a, k, &x, NULL) != PRONY_OK || prony_session_output(b, k, &y, NULL) != PRONY_OK)
            return snprintf(text, size, "output %zu cannot be read", k) < 0;
        const size_t bytes = prn_value_bytes(x);
        if (!prn_shape_equal(&x->shape, &y->shape) || (bytes && memcmp(x->data, y->data, bytes) != 0))
            return snprintf(text, size, "output %zu differs from a fresh session's", k) < 0;
    }
    return true;
}

static bool has_one_batch(const random_graph *g)
{
    const prony_shape *first = g->main.input_count ? &g->values[g->main.inputs[0]].shape : NULL;
    for (size_t i = 0; i < g->main.input_count; i++) {
        const prony_shape *shape = &g->values[g->main.inputs[i]].shape;
        if (shape->rank < 2 || shape->dim[0] < 1 || shape->dim[0] != first->dim[0]) return false;
    }
    return first != NULL;
}

bool qdq_batches_agree(random_graph *g, qdq_ways_tally *tally, char *text, size_t size)
{
    static const int64_t batches[] = {2, 1, 3, 2, MOST_BATCH, 1};
    prony_model *model = NULL;
    size_t bytes_size;
    bool good = true;
    if (!has_one_batch(g)) return true;
    g->batched = true;
    model_builder *m = random_graph_build(g);
    const void *bytes = mb_finish(m, &bytes_size);
    prony_session *kept = NULL;
    if (prony_model_load_memory(&model, "random", bytes, bytes_size, NULL, NULL) == PRONY_OK)
        kept = open_session(model, true);
    for (size_t i = 0; kept && good && i < sizeof batches / sizeof *batches; i++) {
        prony_error error = {0}, kept_error = {0};
        prony_session *fresh = must(open_session(model, false));
        const prony_status wanted = run_session(fresh, g, batches[i], &error),
                           is = run_session(kept, g, batches[i], &kept_error);
        good = wanted == is;
        if (!good) snprintf(text, size, "fresh: %s; kept: %s", error.message, kept_error.message);
        if (good && wanted == PRONY_OK) {
            good = same_outputs(kept, fresh, g->main.output_count, text, size);
            tally->batches++;
        }
        if (!good) snprintf(text + strlen(text), size - strlen(text), " (batch %d, run %zu)", (int)batches[i], i);
        prony_session_release(fresh);
    }
    if (kept) tally->followed += prony_session_preparations(kept).respecialized > 0;
    prony_session_release(kept);
    prony_model_release(model);
    mb_free(m);
    return good;
}
