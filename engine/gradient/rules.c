#include "engine/gradient/rules.h"

#include <string.h>

static const prn_gradient_rule rules[] = {
#define PRN_ROW(op, name) {op, "", prn_gradient_of_##name},
#define PRN_STOP(op) {op, "", NULL},
#include "engine/gradient/rules.inc"
#undef PRN_ROW
#undef PRN_STOP
};

size_t prn_gradient_rule_count(void)
{
    return sizeof rules / sizeof *rules;
}

const prn_gradient_rule *prn_gradient_rule_at(size_t index)
{
    return &rules[index];
}

const prn_gradient_rule *prn_gradient_rule_find(const char *domain, const char *op)
{
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
        if (strcmp(rules[r].op, op) == 0 && strcmp(rules[r].domain, domain) == 0) return &rules[r];
    return NULL;
}
