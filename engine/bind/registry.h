/* Custom operators and overrides, on top of the built-in table. Immutable once a model uses it; reference-counted. */
#ifndef PRN_ENGINE_BIND_REGISTRY_H
#define PRN_ENGINE_BIND_REGISTRY_H

#include "ops/op.h"

/* The operator of one node: the built-in row, or an adapter that makes a custom operator look like one. */
typedef struct prn_operator_binding {
    const prn_op *op; /* NULL: this operator is not supported */
    void *run_user;
    prony_infer_fn infer;
    void *infer_user;
    prony_cost_fn cost;
    void *cost_user;
} prn_operator_binding;

/* An empty registry that has the definitions of `base` (NULL: none) as well, and holds a reference to it. */
PRN_MUST_USE prony_status prn_registry_extend(prony_registry **out, prony_registry *base, prony_error *error);
void prn_registry_retain(prony_registry *registry);
/* `registry` may be NULL: built-in operators only. */
prn_operator_binding prn_registry_find(const prony_registry *registry, const char *domain, const char *name,
                                       int64_t opset);
/* true: the user defined this operator. */
bool prn_registry_is_custom(const prony_registry *registry, const char *domain, const char *name, int64_t opset);

#endif
