/* The table of rules that turn the gradient of an operator's outputs into the gradient of its inputs. One row per
 * operator that a gradient flows through or ends at. Internal to engine/gradient/. */
#ifndef PRN_ENGINE_GRADIENT_RULES_H
#define PRN_ENGINE_GRADIENT_RULES_H

#include "engine/gradient/state.h"

typedef void (*prn_gradient_rule_fn)(prn_gradient *g);

typedef struct prn_gradient_rule {
    const char *op, *domain;
    prn_gradient_rule_fn rule; /* NULL: piecewise constant; the gradient is 0 wherever it is defined */
} prn_gradient_rule;

/* NULL: no rule. */
const prn_gradient_rule *prn_gradient_rule_find(const char *domain, const char *op);
size_t prn_gradient_rule_count(void);
const prn_gradient_rule *prn_gradient_rule_at(size_t index);

/* Every rule is RULE(name), declared and defined as prn_gradient_of_name. */
#define PRN_GRADIENT_RULE(name) void prn_gradient_of_##name(prn_gradient *g)
#define PRN_ROW(op, name) PRN_GRADIENT_RULE(name);
#define PRN_STOP(op)
#include "engine/gradient/rules.inc"
#undef PRN_ROW
#undef PRN_STOP

#endif
