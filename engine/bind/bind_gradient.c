/* Replaces a Gradient node of ai.onnx.preview.training by nodes that compute dy/dx, named "NAME/grad/…". Its attributes
 * name tensors of its graph. This file looks up these tensors and its inputs; engine/gradient/ makes the nodes. */
#include "engine/bind/bind_pass.h"
#include "engine/gradient/gradient.h"

#include <string.h>

bool prn_bind_is_gradient(const prn_bind_pass *b, const prn_model_node *source)
{
    return prn_model_is_gradient(source) &&
           !prn_registry_is_custom(b->program->model->registry, PRN_GRADIENT_DOMAIN, source->op_type, 1);
}

typedef struct gradient_call {
    prn_bind_pass *binder;
    const prn_model_node *source;
    const char *name; /* of the node */
    prn_names made;
    uint32_t number; /* of values made so far */
    const prn_frame *frame;
    const prn_opset_import *opset; /* of the frame */
} gradient_call;

/* Binds nodes like those of a function call: with own imports and own node names. */
static prony_status bind_gradient_open_frame(gradient_call *c, const char *domain, int64_t opset)
{
    prn_bump *pool = &c->binder->program->pool;
    static const prn_attr_list none = {NULL, 0};
    if (c->opset && c->opset->version == opset && strcmp(c->opset->domain, domain) == 0) return PRONY_OK;
    prn_function *function = prn_bump_alloc(pool, 1, sizeof *function);
    prn_opset_import *import = prn_bump_alloc(pool, 1, sizeof *import);
    prn_frame *frame = prn_bump_alloc(pool, 1, sizeof *frame);
    if (!function || !import || !frame) return prn_no_memory(c->binder->error);
    *import = (prn_opset_import){domain, opset};
    *function = (prn_function){
        .domain = PRN_GRADIENT_DOMAIN, .name = "Gradient", .overload = "", .opsets = import, .opset_count = 1};
    *frame = (prn_frame){.function = function, .attributes = &none, .outer = c->binder->frame};
    frame->name = prn_bump_printf(pool, "%s/grad", c->name);
    if (!frame->name) return prn_no_memory(c->binder->error);
    c->frame = frame;
    c->opset = import;
    return PRONY_OK;
}

static prony_status bind_gradient_describe(gradient_call *c, const prn_gradient_node *node, prn_model_node *out)
{
    prn_bump *pool = &c->binder->program->pool;
    const char **inputs = prn_bump_alloc(pool, node->input_count + 1, sizeof *inputs);
    const char **outputs = prn_bump_alloc(pool, node->output_count + 1, sizeof *outputs);
    if (!inputs || !outputs) return prn_no_memory(c->binder->error);
    for (size_t i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i] == PRN_NO_VALUE ? "" : c->binder->program->values[node->inputs[i]]->name;
    for (size_t k = 0; k < node->output_count; k++) {
        outputs[k] = node->outputs[k] == PRN_NO_VALUE ? "" : prn_bump_printf(pool, "%s/grad:%u", c->name, c->number++);
        if (!outputs[k]) return prn_no_memory(c->binder->error);
    }
    *out = (prn_model_node){.name = node->name,
                            .op_type = node->op_type,
                            .domain = node->domain,
                            .overload = "",
                            .inputs = inputs,
                            .input_count = node->input_count,
                            .outputs = outputs,
                            .output_count = node->output_count,
                            .attributes = node->attributes,
                            .file_index = c->source->file_index};
    return PRONY_OK;
}

static prony_status make(void *user, prn_gradient_node *node)
{
    gradient_call *c = user;
    prn_bind_pass *b = c->binder;
    const prn_frame *outer = b->frame;
    prn_model_node *source = prn_bump_alloc(&b->program->pool, 1, sizeof *source);
    if (!source) return prn_no_memory(b->error);
    PRN_TRY(bind_gradient_describe(c, node, source));
    PRN_TRY(bind_gradient_open_frame(c, node->domain, node->opset));
    b->frame = c->frame;
    b->given = node->inputs;
    prony_status status = prn_bind_node(b, &c->made, source);
    b->given = NULL;
    b->frame = outer;
    for (size_t k = 0; status == PRONY_OK && k < node->output_count; k++)
        if (*source->outputs[k] && !prn_names_get(&c->made, source->outputs[k], &node->outputs[k]))
            status = prn_fail(b->error, PRONY_INTERNAL, "node '%s' (Gradient): '%s' was not made", c->name,
                              source->outputs[k]);
    return status;
}

/* ---- the node's attributes ---- */

static prony_status find_attribute(const gradient_call *c, const prn_attr_list *list, const char *name,
                                   prn_attr_type type, bool required, const prn_attr **out)
{
    *out = prn_attr_find(list, name);
    if (!*out && !required) return PRONY_OK;
    if (!*out)
        return prn_fail(c->binder->error, PRONY_INVALID_MODEL, "node '%s' (Gradient): attribute '%s' is missing",
                        c->name, name);
    if ((*out)->type == type) return PRONY_OK;
    return prn_fail(c->binder->error, PRONY_INVALID_MODEL,
                    "node '%s' (Gradient): attribute '%s' is of type %s, wanted %s", c->name, name,
                    prn_attr_type_name((*out)->type), prn_attr_type_name(type));
}

/* Finds the tensor that an attribute names: a differentiable one of the graph around the node. */
static prony_status find_tensor(const gradient_call *c, const prn_names *scope, const char *attribute, const char *name,
                                bool differentiated, uint32_t *out)
{
    const prn_program *p = c->binder->program;
    if (!name) name = "";
    if (!*name || !prn_names_get(scope, name, out) || *out == PRN_NO_VALUE)
        return prn_fail(c->binder->error, PRONY_INVALID_MODEL,
                        "node '%s' (Gradient): '%.200s' of attribute '%s' is not a tensor of the node's own graph%s",
                        c->name, name, attribute, p->parent ? ", a subgraph" : "");
    const prony_value *info = &p->values[*out]->info;
    const prony_dtype t = info->dtype;
    const bool real =
        t == PRONY_FLOAT32 || t == PRONY_FLOAT64 || t == PRONY_FLOAT16 || t == PRONY_BFLOAT16 || t == PRONY_UNDEFINED;
    if (info->kind == PRONY_TENSOR && (real || !differentiated)) return PRONY_OK;
    char text[PRN_SHAPE_TEXT_BYTES];
    return prn_fail(c->binder->error, PRONY_INVALID_MODEL,
                    "node '%s' (Gradient): '%.200s' of attribute '%s' is %s, wanted a tensor of floats", c->name, name,
                    attribute, prn_value_text(info, text));
}

/* Finds the tensors of one list, and the inputs from `first` on that replace them. */
static prony_status find_tensors(const gradient_call *c, const prn_names *scope, const prn_attr *list, size_t first,
                                 prn_gradient_values *out)
{
    prn_bump *pool = &c->binder->program->pool;
    const size_t count = list ? list->count : 0;
    uint32_t *ids = prn_bump_alloc(pool, count + 1, sizeof *ids),
             *given = prn_bump_alloc(pool, count + 1, sizeof *given);
    if (!ids || !given) return prn_no_memory(c->binder->error);
    for (size_t k = 0; k < count; k++) {
        const char *name = c->source->inputs[first + k];
        PRN_TRY(find_tensor(c, scope, list->name, list->strings[k].data, strcmp(list->name, "xs") == 0, &ids[k]));
        if (!*name)
            return prn_fail(c->binder->error, PRONY_INVALID_MODEL, "node '%s' (Gradient): input %zu is required",
                            c->name, first + k);
        if (!prn_names_get(scope, name, &given[k]) || given[k] == PRN_NO_VALUE)
            return prn_fail(c->binder->error, PRONY_INVALID_MODEL,
                            "node '%s' (Gradient): input '%s' is produced nowhere", c->name, name);
        const prony_value *wanted = &c->binder->program->values[ids[k]]->info,
                          *is = &c->binder->program->values[given[k]]->info;
        char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
        if (is->kind != wanted->kind ||
            (is->dtype != wanted->dtype && is->dtype != PRONY_UNDEFINED && wanted->dtype != PRONY_UNDEFINED))
            return prn_fail(c->binder->error, PRONY_INVALID_MODEL,
                            "node '%s' (Gradient): input '%s', %s, is to take the place of '%s', %s", c->name, name,
                            prn_value_text(is, left), list->strings[k].data, prn_value_text(wanted, right));
    }
    *out = (prn_gradient_values){ids, given, count};
    return PRONY_OK;
}

static prony_status bind_gradient_read_job(gradient_call *c, const prn_names *scope, prn_gradient_job *job)
{
    const prn_attr_list *attributes;
    const prn_attr *xs, *zs, *y;
    const prn_model_node *source = c->source;
    PRN_TRY(prn_bind_attributes(c->binder, source, &attributes));
    PRN_TRY(find_attribute(c, attributes, "xs", PRN_ATTR_STRINGS, true, &xs));
    PRN_TRY(find_attribute(c, attributes, "zs", PRN_ATTR_STRINGS, false, &zs));
    PRN_TRY(find_attribute(c, attributes, "y", PRN_ATTR_STRING, true, &y));
    const size_t wanted = xs->count + (zs ? zs->count : 0);
    if (xs->count == 0)
        return prn_fail(c->binder->error, PRONY_INVALID_MODEL, "node '%s' (Gradient): attribute 'xs' names no tensor",
                        c->name);
    if (source->input_count != wanted)
        return prn_fail(c->binder->error, PRONY_INVALID_MODEL,
                        "node '%s' (Gradient): has %zu inputs, but its attributes xs and zs name %zu tensors", c->name,
                        source->input_count, wanted);
    if (source->output_count != xs->count)
        return prn_fail(c->binder->error, PRONY_INVALID_MODEL,
                        "node '%s' (Gradient): has %zu outputs, but its attribute xs names %zu tensors", c->name,
                        source->output_count, xs->count);
    PRN_TRY(find_tensors(c, scope, xs, 0, &job->xs));
    PRN_TRY(find_tensors(c, scope, zs, xs->count, &job->zs));
    return find_tensor(c, scope, "y", y->s.data, true, &job->y);
}

/* ---- its replacement ---- */

/* Gives outputs their names. Outputs that share a value, or are an earlier value of the graph, get a value of their
 * own.
 */
static prony_status name_outputs(gradient_call *c, prn_names *scope, uint32_t *made, size_t first)
{
    prn_program *p = c->binder->program;
    for (size_t k = 0; k < c->source->output_count; k++) {
        if (!*c->source->outputs[k]) continue;
        bool taken = made[k] < first || p->values[made[k]]->constant;
        for (size_t other = 0; other < k; other++) taken |= made[other] == made[k];
        if (taken) {
            prn_gradient_node same = {.name = "Identity",
                                      .op_type = "Identity",
                                      .domain = "",
                                      .opset = PRN_GRADIENT_OPSET,
                                      .inputs = &made[k],
                                      .input_count = 1,
                                      .outputs = &(uint32_t){0},
                                      .output_count = 1};
            PRN_TRY(make(c, &same));
            made[k] = same.outputs[0];
        }
        p->values[made[k]]->name = c->source->outputs[k];
        if (!prn_names_put(scope, c->source->outputs[k], made[k])) return prn_no_memory(c->binder->error);
    }
    return PRONY_OK;
}

static prony_status expand(gradient_call *c, prn_names *scope)
{
    prn_program *p = c->binder->program;
    const size_t first = p->value_count, count = c->source->output_count;
    prn_gradient_job job = {.program = p, .name = c->name, .make = make, .user = c};
    PRN_TRY(bind_gradient_read_job(c, scope, &job));
    bool *wanted = prn_bump_alloc(&p->pool, count + 1, sizeof *wanted);
    uint32_t *made = prn_bump_alloc(&p->pool, count + 1, sizeof *made);
    if (!wanted || !made) return prn_no_memory(c->binder->error);
    for (size_t k = 0; k < count; k++) {
        wanted[k] = *c->source->outputs[k] != 0;
        made[k] = PRN_NO_VALUE;
    }
    PRN_TRY(prn_gradient_run(&job, wanted, made, c->binder->error));
    *p->bound_total += job.looked_at / 16; /* many Gradients over a long graph do work without making nodes; 16 visited
                                              nodes count as one */
    return name_outputs(c, scope, made, first);
}

prony_status prn_bind_gradient(prn_bind_pass *b, prn_names *scope, const prn_model_node *source)
{
    gradient_call call = {.binder = b, .source = source, .name = prn_bind_name(b, source)};
    prony_status status = expand(&call, scope);
    prn_names_free(&call.made);
    return status;
}
