/* A registry holds heap copies of the user's definitions. A custom operator becomes an ordinary prn_op with one kernel
 * that calls the user's run function. The user's functions are called through guards, which find the definition in
 * context->user and check all results. */
#include "engine/bind/registry.h"
#include "base/memory/alloc.h"
#include "base/option_struct.h"
#include "base/shape.h"

#include <stdatomic.h>
#include <string.h>

typedef struct custom {
    struct custom *next;
    prn_op op;
    prn_kernel kernels[2];
    prony_operator given;
    char *domain, *name, *kernel_name;
} custom;

typedef struct override {
    struct override *next;
    char *domain, *name;
    prony_cost_fn cost;
    void *cost_user;
    prony_infer_fn infer;
    void *infer_user;
} override;

struct prony_registry {
    atomic_uint references;
    prony_registry *base; /* of definitions that it has as well; NULL: none */
    custom *customs;
    override *overrides;
};

static const prn_param no_params[] = {{0}};

/* ---- guards around the user's functions ---- */

/* Ensures that a failure has a valid status and a message. `own`: the error that the function wrote. */
static prony_status answer(const prony_context *context, const char *function, prony_status status, prony_error *own)
{
    prony_status known = prn_status_known(status);
    if (known == PRONY_OK) return PRONY_OK;
    own->message[sizeof own->message - 1] = '\0';
    if (known != status || !*own->message) {
        if (known == status)
            prn_fail(own, known, "its %s function failed without a message: %s", function, prony_status_text(status));
        else
            prn_fail(own, known, "its %s function returned an invalid status (%d)", function, (int)status);
        if (context->node) prn_error_name_node(own, context->node);
    }
    own->status = known;
    if (context->error) *context->error = *own;
    return known;
}

static prony_status check_inferred(const prony_context *context)
{
    for (size_t k = 0; k < context->output_count; k++) {
        prony_value *out = context->outputs[k];
        if (!out || prn_value_valid(out)) continue;
        prony_value wrong = *out;
        *out = (prony_value){.shape = prn_shape_unknown(), .data = wrong.data};
        return prony_fail(context, PRONY_INVALID_ARGUMENT,
                          "its infer function gave output %zu an invalid kind (%d), element type (%d) or rank (%d), or "
                          "a dimension below -1",
                          k, (int)wrong.kind, (int)wrong.dtype, (int)wrong.shape.rank);
    }
    return PRONY_OK;
}

/* The context that a function of the user sees: its own `user`, and an empty message of its own. */
static prony_context user_context(const prony_context *context, void *user, prony_error *own)
{
    prony_context inner = *context;
    own->message[0] = '\0';
    inner.user = user;
    inner.error = own;
    return inner;
}

static prony_status guarded_infer(const prony_context *context, prony_infer_fn infer, void *user)
{
    prony_error own;
    prony_context inner = user_context(context, user, &own);
    PRN_TRY(answer(context, "infer", infer(&inner), &own));
    return check_inferred(context);
}

static prony_status guarded_cost(const prony_context *context, prony_cost *cost, prony_cost_fn count, void *user)
{
    prony_error own;
    prony_context inner = user_context(context, user, &own);
    PRN_TRY(answer(context, "cost", count(&inner, cost), &own));
    if (cost->fact_count <= PRONY_MAX_FACTS) return PRONY_OK;
    cost->fact_count = 0;
    return prony_fail(context, PRONY_INVALID_ARGUMENT, "its cost function gave more than %d facts", PRONY_MAX_FACTS);
}

static prony_status custom_infer(const prony_context *context)
{
    const custom *c = context->user;
    return guarded_infer(context, c->given.infer, c->given.user);
}

static prony_status custom_cost(const prony_context *context, prony_cost *cost)
{
    const custom *c = context->user;
    return guarded_cost(context, cost, c->given.cost, c->given.user);
}

static prony_status override_infer(const prony_context *context)
{
    const override *o = context->user;
    return guarded_infer(context, o->infer, o->infer_user);
}

static prony_status override_cost(const prony_context *context, prony_cost *cost)
{
    const override *o = context->user;
    return guarded_cost(context, cost, o->cost, o->cost_user);
}

/* Outputs known to the plan are `kept`: the function must not change their types during a run. */
static prony_status run_guarded(const prony_context *context, prony_value *kept)
{
    const custom *c = context->user;
    prony_error own;
    prony_context inner = user_context(context, c->given.user, &own);
    for (size_t k = 0; k < context->output_count; k++)
        if (context->outputs[k]) kept[k] = *context->outputs[k];
    PRN_TRY(answer(context, "run", c->given.run(&inner), &own));
    for (size_t k = 0; k < context->output_count; k++) {
        prony_value *out = context->outputs[k];
        if (!out || (out->kind == kept[k].kind && out->dtype == kept[k].dtype && out->data == kept[k].data &&
                     out->layout == kept[k].layout && prn_shape_equal(&out->shape, &kept[k].shape)))
            continue;
        *out = kept[k];
        return prony_fail(context, PRONY_INVALID_ARGUMENT,
                          "its run function changed the type, shape or address of output %zu", k);
    }
    return PRONY_OK;
}

/* The state belongs to the plan from here on; a failure leaves none. */
static prony_status custom_prepare(const prony_context *context, prn_prepared *out)
{
    const custom *c = context->user;
    prony_error own;
    prony_context inner = user_context(context, c->given.user, &own);
    prony_prepared made = {0};
    PRN_TRY(answer(context, "prepare", c->given.prepare(&inner, &made), &own));
    *out = made;
    return PRONY_OK;
}
enum { FEW_OUTPUTS = 8 }; /* up to so many outputs a run makes no heap call */

static prony_status custom_run(const prony_context *context)
{
    prony_value few[FEW_OUTPUTS];
    if (context->output_count <= FEW_OUTPUTS) return run_guarded(context, few);
    prony_value *many = prn_calloc(context->output_count, sizeof *many);
    if (!many) return prn_no_memory(context->error);
    const prony_status status = run_guarded(context, many);
    prn_free(many);
    return status;
}

/* ---- the registry ---- */

prony_status prony_registry_create(prony_registry **out, prony_error *error)
{
    if (!out) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_registry_create: out is NULL");
    prony_registry *registry = prn_calloc(1, sizeof *registry);
    if (!registry) return prn_no_memory(error);
    atomic_init(&registry->references, 1);
    *out = registry;
    return PRONY_OK;
}

prony_status prn_registry_extend(prony_registry **out, prony_registry *base, prony_error *error)
{
    PRN_TRY(prony_registry_create(out, error));
    prn_registry_retain(base);
    (*out)->base = base;
    return PRONY_OK;
}

void prn_registry_retain(prony_registry *registry)
{
    if (registry) atomic_fetch_add(&registry->references, 1);
}

static void custom_free(custom *c)
{
    prn_free(c->domain);
    prn_free(c->name);
    prn_free(c->kernel_name);
    prn_free(c);
}

static void override_free(override *o)
{
    prn_free(o->domain);
    prn_free(o->name);
    prn_free(o);
}

void prony_registry_release(prony_registry *registry)
{
    if (!registry || atomic_fetch_sub(&registry->references, 1) != 1) return;
    while (registry->customs) {
        custom *next = registry->customs->next;
        custom_free(registry->customs);
        registry->customs = next;
    }
    while (registry->overrides) {
        override *next = registry->overrides->next;
        override_free(registry->overrides);
        registry->overrides = next;
    }
    prony_registry_release(registry->base);
    prn_free(registry);
}

static const char *normal_domain(const char *domain)
{
    return domain && strcmp(domain, "ai.onnx") != 0 ? domain : "";
}

static custom *find_custom(const prony_registry *registry, const char *domain, const char *name, int64_t opset)
{
    custom *best = NULL;
    for (; registry; registry = registry->base)
        for (custom *c = registry->customs; c; c = c->next)
            if (c->op.since_opset <= opset && strcmp(c->name, name) == 0 && strcmp(c->domain, domain) == 0 &&
                (!best || c->op.since_opset > best->op.since_opset))
                best = c;
    return best;
}

/* Checks and copies the definition, and makes its operator row with one kernel. A failed call leaves the registry
 * unchanged. */
prony_status prony_registry_add(prony_registry *registry, const prony_operator *definition, prony_error *error)
{
    prony_operator own = PRONY_OPERATOR_INIT;
    if (!registry || !definition)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_registry_add: registry or definition missing");
    PRN_TRY(prn_options_read(&own, sizeof own, definition, "prony_registry_add: definition", error));
    definition = &own;
    if (definition->release && !definition->prepare)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "custom operator '%s': release without prepare",
                        definition->name ? definition->name : "");
    if (!definition->name || !*definition->name || !definition->infer || !definition->cost || !definition->run)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "custom operator '%s': name, infer, cost and run are all required",
                        definition->name ? definition->name : "");
    const char *domain = normal_domain(definition->domain);
    const custom *old = find_custom(registry, domain, definition->name, definition->since_opset);
    if (old && old->op.since_opset == definition->since_opset)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "custom operator '%s::%s' version %lld is defined already",
                        domain, definition->name, (long long)definition->since_opset);
    custom *c = prn_calloc(1, sizeof *c);
    if (!c) return prn_no_memory(error);
    c->domain = prn_strdup(domain);
    c->name = prn_strdup(definition->name);
    size_t size = strlen(definition->name) + sizeof "_custom";
    c->kernel_name = prn_alloc(size);
    if (!c->domain || !c->name || !c->kernel_name) {
        custom_free(c);
        return prn_no_memory(error);
    }
    memcpy(c->kernel_name, definition->name, strlen(definition->name));
    memcpy(c->kernel_name + strlen(definition->name), "_custom", sizeof "_custom");
    c->given = *definition;
    c->kernels[0] = (prn_kernel){.name = c->kernel_name,
                                 .backend = "custom",
                                 .prepare = definition->prepare ? custom_prepare : NULL,
                                 .run = custom_run,
                                 .release = definition->release};
    c->op = (prn_op){.name = c->name,
                     .domain = c->domain,
                     .since_opset = definition->since_opset,
                     .inputs.least = 0,
                     .inputs.most = -1,
                     .outputs.least = 0,
                     .outputs.most = -1,
                     .flags = PRN_OP_ONCE_PER_RUN, /* side effects of a user's function must happen once per run */
                     .params = no_params,
                     .infer = custom_infer,
                     .cost = custom_cost,
                     .cost_text = "as defined by the user",
                     .kernels = c->kernels};
    c->next = registry->customs;
    registry->customs = c;
    return PRONY_OK;
}

static override *find_override(const prony_registry *registry, const char *domain, const char *name)
{
    for (; registry; registry = registry->base)
        for (override *o = registry->overrides; o; o = o->next)
            if (strcmp(o->name, name) == 0 && strcmp(o->domain, domain) == 0) return o;
    return NULL;
}

static prony_status override_for(override **out, prony_registry *registry, const char *domain, const char *name,
                                 const char *function, prony_error *error)
{
    if (!registry || !name || !*name)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: registry and operator name are required", function);
    domain = normal_domain(domain);
    if (!prn_op_find(domain, name, INT64_MAX) && !find_custom(registry, domain, name, INT64_MAX))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: unknown operator '%s' in domain '%s'", function, name,
                        domain);
    override *o = find_override(registry, domain, name);
    if (!o) {
        o = prn_calloc(1, sizeof *o);
        if (!o) return prn_no_memory(error);
        o->domain = prn_strdup(domain);
        o->name = prn_strdup(name);
        if (!o->domain || !o->name) {
            override_free(o);
            return prn_no_memory(error);
        }
        o->next = registry->overrides;
        registry->overrides = o;
    }
    *out = o;
    return PRONY_OK;
}

prony_status prony_cost_override(prony_registry *registry, const char *domain, const char *name, prony_cost_fn cost,
                                 void *user, prony_error *error)
{
    override *o;
    if (!cost) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_cost_override: cost is NULL");
    PRN_TRY(override_for(&o, registry, domain, name, "prony_cost_override", error));
    if (o->cost) return prn_fail(error, PRONY_INVALID_ARGUMENT, "the cost of '%s' is overridden already", name);
    o->cost = cost;
    o->cost_user = user;
    return PRONY_OK;
}

prony_status prony_infer_override(prony_registry *registry, const char *domain, const char *name, prony_infer_fn infer,
                                  void *user, prony_error *error)
{
    override *o;
    if (!infer) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_infer_override: infer is NULL");
    PRN_TRY(override_for(&o, registry, domain, name, "prony_infer_override", error));
    if (o->infer) return prn_fail(error, PRONY_INVALID_ARGUMENT, "the shapes of '%s' are overridden already", name);
    o->infer = infer;
    o->infer_user = user;
    return PRONY_OK;
}

prn_operator_binding prn_registry_find(const prony_registry *registry, const char *domain, const char *name,
                                       int64_t opset)
{
    prn_operator_binding binding = {0};
    const custom *c = registry ? find_custom(registry, domain, name, opset) : NULL;
    binding.op = c ? &c->op : prn_op_find(domain, name, opset);
    if (!binding.op) return binding;
    binding.infer = binding.op->infer;
    binding.cost = binding.op->cost;
    const void *user = c ? (const void *)c : binding.op->variant;
    binding.run_user = binding.infer_user = binding.cost_user = (void *)(uintptr_t)user;
    const override *o = registry ? find_override(registry, domain, name) : NULL;
    if (o && o->cost) {
        binding.cost = override_cost;
        binding.cost_user = (void *)(uintptr_t)o;
    }
    if (o && o->infer) {
        binding.infer = override_infer;
        binding.infer_user = (void *)(uintptr_t)o;
    }
    return binding;
}

bool prn_registry_is_custom(const prony_registry *registry, const char *domain, const char *name, int64_t opset)
{
    return registry && find_custom(registry, domain, name, opset);
}
