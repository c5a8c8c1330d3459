/* See the header. One object holds the derived model, the registry of Observe and the sums; it lives as long as the
 * last reference to the derived model. */
#include "quantize/importance.h"

#include "ops/kernels/vector/number.h"
#include "quantize/calibrate.h"
#include "quantize/quantize_plan.h"

#include <math.h>
#include <string.h>

static const char importance_domain[] = "prony.importance", importance_op[] = "Observe";

/* The sums of one observed value. */
typedef struct importance_site {
    double *squares; /* [k] */
    int64_t k, rows;
} importance_site;

/* The part that the derived model owns. */
typedef struct importance_observer {
    prn_bump pool; /* graphs, sites, sums */
    prony_model *whole;
    prony_registry *registry;
    prn_model_file file; /* the model's, with other graphs */
    importance_site *sites;
    size_t site_count;
    size_t *site_of; /* [product_count] */
    size_t product_count;
} importance_observer;

struct prony_importance {
    prony_model *model; /* the derived one; a reference */
    importance_observer *observer;
};

/* ---- the operator ---- */

static prony_status importance_infer(const prony_context *context)
{
    if (context->input_count != 1 || context->output_count != 1 || !context->outputs[0])
        return prony_fail(context, PRONY_INVALID_MODEL, "wanted one input and one output");
    prony_value *out = context->outputs[0];
    out->dtype = context->inputs[0]->dtype;
    out->shape = context->inputs[0]->shape;
    return PRONY_OK;
}

static prony_status importance_cost(const prony_context *context, prony_cost *cost)
{
    (void)context;
    (void)cost;
    return PRONY_OK;
}

/* Copies x [..., K] and adds the squares of each column to the site's sums. */
static prony_status importance_run(const prony_context *context)
{
    const importance_observer *observer = context->user;
    const prony_value *x = context->inputs[0];
    const int64_t count = prony_shape_numel(&x->shape);
    int64_t index = 0;
    float row[256];
    enum { MOST = sizeof row / sizeof *row };
    (void)prony_node_int(context->node, "site", &index);
    importance_site *site = &observer->sites[index];
    if (x->shape.rank < 1 || x->shape.dim[x->shape.rank - 1] != site->k)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "its last dimension is not the %lld of the weights",
                          (long long)site->k);
    if (count) memcpy(context->outputs[0]->data, x->data, prony_dtype_bytes(x->dtype, count));
    for (int64_t first = 0; first < count; first += site->k) {
        for (int64_t at = 0, n; at < site->k; at += n) {
            n = site->k - at < MOST ? site->k - at : MOST;
            prn_convert(row, PRONY_FLOAT32, prn_block_at(x->data, x->dtype, first + at), x->dtype, n);
            for (int64_t k = 0; k < n; k++) site->squares[at + k] += (double)row[k] * (double)row[k];
        }
        site->rows++;
    }
    for (int64_t k = 0; k < site->k; k++)
        if (!isfinite(site->squares[k]))
            return prony_fail(context, PRONY_INVALID_ARGUMENT, "its input %lld of each row is NaN or infinite",
                              (long long)k);
    return PRONY_OK;
}

/* ---- the derived model ---- */

typedef struct importance_builder {
    importance_observer *observer;
    const prn_block_plan *plan;
    const char *prefix; /* of the observed values' names, which no value of the model has */
    prony_error *error;
} importance_builder;

static const char *importance_prefix(const prn_block_plan *plan, prn_bump *pool)
{
    const char *prefix = "prony/observed";
    for (size_t e = 0; prefix && e < plan->entry_count;) {
        const bool taken = strncmp(plan->entries[e].name, prefix, strlen(prefix)) == 0;
        if (taken) prefix = prn_bump_printf(pool, "%s_", prefix);
        e = taken ? 0 : e + 1;
    }
    return prefix;
}

/* The site of a product's first operand; *fresh: it is a new one, whose Observe stands in front of the product. */
static prony_status importance_site_of(const importance_builder *b, prn_names *seen, size_t product, bool *fresh,
                                       prony_error *error)
{
    importance_observer *o = b->observer;
    const prn_block_product *p = &b->plan->products[product];
    const char *operand = b->plan->scopes[p->scope]->graph->nodes[p->node].inputs[0];
    uint32_t found;
    *fresh = !prn_names_get(seen, operand, &found);
    o->site_of[product] = *fresh ? o->site_count : found;
    if (!*fresh) return PRONY_OK;
    importance_site *site = &o->sites[o->site_count];
    site->k = b->plan->weights[p->weight].k;
    site->squares = prn_bump_alloc(&o->pool, (size_t)site->k, sizeof *site->squares);
    return site->squares && prn_names_put(seen, operand, (uint32_t)o->site_count++) ? PRONY_OK : prn_no_memory(error);
}

/* x ── Observe ── prefix_site */
static bool importance_put_observe(const importance_builder *b, const prn_model_node *product, size_t site,
                                   prn_model_node *out)
{
    prn_bump *pool = &b->observer->pool;
    prn_attr *index = prn_bump_alloc(pool, 1, sizeof *index);
    const char **names = prn_bump_alloc(pool, 2, sizeof *names);
    char *name = prn_bump_printf(pool, "%s_%zu", b->prefix, site);
    if (!index || !names || !name) return false;
    *index = (prn_attr){.name = "site", .type = PRN_ATTR_INT, .i = (int64_t)site};
    names[0] = product->inputs[0];
    names[1] = name;
    *out = (prn_model_node){.name = prn_quant_layer_name(product),
                            .op_type = importance_op,
                            .domain = importance_domain,
                            .overload = "",
                            .inputs = names,
                            .input_count = 1,
                            .outputs = names + 1,
                            .output_count = 1,
                            .attributes = {index, 1},
                            .file_index = product->file_index};
    return true;
}

static prony_status importance_derive(const importance_builder *b, const prn_block_scope *scope, prn_graph *out);

/* The node with the graphs inside of it derived as well. */
static prony_status importance_derive_nested(const importance_builder *b, prn_model_node *node)
{
    prn_bump *pool = &b->observer->pool;
    prn_attr *items = NULL;
    for (size_t a = 0; a < node->attributes.count; a++) {
        const prn_attr *attr = &node->attributes.items[a];
        const size_t graphs = attr->type == PRN_ATTR_GRAPH ? 1 : attr->type == PRN_ATTR_GRAPHS ? attr->count : 0;
        if (!graphs || !attr->graph) continue;
        if (!items) {
            items = prn_bump_alloc(pool, node->attributes.count, sizeof *items);
            if (!items) return prn_no_memory(b->error);
            memcpy(items, node->attributes.items, node->attributes.count * sizeof *items);
        }
        items[a].graph = prn_bump_alloc(pool, graphs, sizeof *items[a].graph);
        if (!items[a].graph) return prn_no_memory(b->error);
        for (size_t i = 0; i < graphs; i++)
            PRN_TRY(importance_derive(b, prn_block_scope_of(b->plan, &attr->graph[i]), &items[a].graph[i]));
    }
    if (items) node->attributes.items = items;
    return PRONY_OK;
}

/* The product behind its Observe, which is put first if the operand has none yet. */
static prony_status importance_derive_product(const importance_builder *b, prn_names *seen, size_t product,
                                              prn_graph *out, prn_model_node *nodes)
{
    prn_bump *pool = &b->observer->pool;
    const prn_model_node copy = nodes[out->node_count];
    bool fresh;
    PRN_TRY(importance_site_of(b, seen, product, &fresh, b->error));
    const size_t site = b->observer->site_of[product];
    const char **inputs = prn_bump_alloc(pool, copy.input_count, sizeof *inputs);
    if (!inputs) return prn_no_memory(b->error);
    memcpy(inputs, copy.inputs, copy.input_count * sizeof *inputs);
    inputs[0] = prn_bump_printf(pool, "%s_%zu", b->prefix, site);
    if (!inputs[0] || (fresh && !importance_put_observe(b, &copy, site, &nodes[out->node_count++])))
        return prn_no_memory(b->error);
    nodes[out->node_count] = copy;
    nodes[out->node_count].inputs = inputs;
    return PRONY_OK;
}

static prony_status importance_derive(const importance_builder *b, const prn_block_scope *scope, prn_graph *out)
{
    const prn_graph *g = scope->graph;
    prn_names seen = {0};
    prony_status status = PRONY_OK;
    prn_model_node *nodes = prn_bump_alloc(&b->observer->pool, 2 * g->node_count + 1, sizeof *nodes);
    if (!nodes) return prn_no_memory(b->error);
    *out = *g;
    out->nodes = nodes;
    out->node_count = 0;
    for (size_t n = 0; n < g->node_count && status == PRONY_OK; n++) {
        nodes[out->node_count] = g->nodes[n];
        status = scope->product_of[n] != PRN_BLOCK_NONE
                     ? importance_derive_product(b, &seen, scope->product_of[n], out, nodes)
                     : importance_derive_nested(b, &nodes[out->node_count]);
        out->node_count++;
    }
    prn_names_free(&seen);
    return status;
}

static prony_status importance_register(importance_observer *o, prony_error *error)
{
    prony_operator observe = PRONY_OPERATOR_INIT;
    observe.domain = importance_domain;
    observe.name = importance_op;
    observe.infer = importance_infer;
    observe.cost = importance_cost;
    observe.run = importance_run;
    observe.user = o;
    PRN_TRY(prn_registry_extend(&o->registry, o->whole->registry, error));
    return prony_registry_add(o->registry, &observe, error);
}

static prony_status importance_build(importance_observer *o, const prn_block_plan *plan, prony_error *error)
{
    const prn_model_file *file = o->whole->file;
    prn_opset_import *opsets = prn_bump_alloc(&o->pool, file->opset_count + 1, sizeof *opsets);
    importance_builder b = {.observer = o, .plan = plan, .error = error};
    b.prefix = importance_prefix(plan, &o->pool);
    o->product_count = plan->product_count;
    o->sites = prn_bump_alloc(&o->pool, plan->product_count, sizeof *o->sites);
    o->site_of = prn_bump_alloc(&o->pool, plan->product_count, sizeof *o->site_of);
    if (!opsets || !b.prefix || !o->sites || !o->site_of) return prn_no_memory(error);
    if (file->opset_count) memcpy(opsets, file->opsets, file->opset_count * sizeof *opsets);
    opsets[file->opset_count] = (prn_opset_import){importance_domain, 1};
    o->file = *file;
    o->file.opsets = opsets;
    o->file.opset_count++;
    PRN_TRY(importance_register(o, error));
    return importance_derive(&b, plan->scopes[0], &o->file.graph);
}

static void importance_release_observer(void *observer)
{
    importance_observer *o = observer;
    prony_registry_release(o->registry);
    prony_model_release(o->whole);
    prn_bump_release(&o->pool);
    prn_free(o);
}

/* The derived model owns the observer from here on. */
static prony_status importance_open(prony_importance *out, prony_model *model, const prn_block_plan *plan,
                                    prony_error *error)
{
    out->model = prn_calloc(1, sizeof *out->model);
    out->observer = prn_calloc(1, sizeof *out->observer);
    if (!out->model || !out->observer) {
        prn_free(out->model);
        prn_free(out->observer);
        out->model = NULL;
        return prn_no_memory(error);
    }
    prn_model_retain(model);
    out->observer->whole = model;
    *out->model = *model;
    atomic_init(&out->model->references, 1);
    out->model->file = &out->observer->file;
    out->model->owned = NULL;
    out->model->quantized = (prn_model_quantized){0};
    out->model->observer = out->observer;
    out->model->release_observer = importance_release_observer;
    PRN_TRY(importance_build(out->observer, plan, error));
    out->model->registry = out->observer->registry;
    return PRONY_OK;
}

prony_status prony_importance_create(prony_importance **out, prony_model *model, prony_error *error)
{
    const prn_block_format format = {.bits = 4, .block = 32}; /* the products are the same for all formats */
    prn_block_plan plan;
    if (!out || !model) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_importance_create: an argument is NULL");
    if (model->stage || model->observer)
        return prn_fail(error, PRONY_UNSUPPORTED, "%.300s: it is a stage, or observed already", model->file->name);
    prony_importance *made = prn_calloc(1, sizeof *made);
    prn_budget *former = prn_budget_enter(model->budget);
    prony_status status = prn_block_plan_make(&plan, model, &format, error);
    if (status == PRONY_OK) status = made ? importance_open(made, model, &plan, error) : prn_no_memory(error);
    prn_block_plan_release(&plan);
    prn_budget_enter(former);
    if (status == PRONY_OK)
        *out = made;
    else
        prony_importance_release(made);
    return status;
}

void prony_importance_release(prony_importance *importance)
{
    if (!importance) return;
    prony_model_release(importance->model);
    prn_free(importance);
}

prony_model *prony_importance_model(prony_importance *importance)
{
    return importance ? importance->model : NULL;
}

/* ---- samples ---- */

static prony_status importance_each(void *user, prony_session *session, int64_t first, int64_t samples,
                                    prony_error *error)
{
    (void)user;
    (void)session;
    (void)first;
    (void)samples;
    (void)error;
    return PRONY_OK;
}

prony_status prony_importance_add(prony_importance *importance, const prony_dataset *data,
                                  const prony_session_options *options, prony_error *error)
{
    prony_session *session = NULL;
    if (!importance || !data)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_importance_add: an argument is NULL");
    PRN_TRY(prony_session_create(&session, importance->model, options, error));
    const prony_status status = prn_run_samples(session, data, 0, importance_each, NULL, error);
    prony_session_release(session);
    return status;
}

/* ---- the weights ---- */

/* Adds a product's sums to those of its weight. A K that differs is of a model that cannot run. */
static void importance_add_site(const importance_site *site, int64_t k_of_weight, double *squares, int64_t *rows)
{
    if (site->k != k_of_weight) return;
    for (int64_t k = 0; k < site->k; k++) squares[k] += site->squares[k];
    *rows += site->rows;
}

prony_status prn_importance_apply(const prony_importance *importance, prn_block_plan *plan, prony_error *error)
{
    const importance_observer *o = importance->observer;
    int64_t all = 0;
    if (o->whole != plan->model || o->product_count != plan->product_count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%.300s: the importance belongs to another model (%.300s)",
                        plan->model->file->name, o->whole->file->name);
    for (size_t w = 0; w < plan->weight_count; w++) {
        prn_block_weight *weight = &plan->weights[w];
        double *squares = prn_bump_alloc(&plan->pool, (size_t)weight->k, sizeof *squares);
        int64_t rows = 0;
        if (!squares) return prn_no_memory(error);
        for (size_t p = 0; p < plan->product_count; p++)
            if (plan->products[p].weight == w) importance_add_site(&o->sites[o->site_of[p]], weight->k, squares, &rows);
        for (int64_t k = 0; k < weight->k && rows; k++) squares[k] /= (double)rows;
        if (rows) weight->importance = squares;
        all += rows;
    }
    if (all) return PRONY_OK;
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "%.300s: the importance has no runs: run its model first",
                    plan->model->file->name);
}
