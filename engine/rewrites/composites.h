/* Finds operators that an exporter wrote out in primitives; other tools count each as one GELU or
 * LayerNormalization. */
#ifndef PRN_ENGINE_REWRITES_COMPOSITES_H
#define PRN_ENGINE_REWRITES_COMPOSITES_H

#include "engine/bind/program.h"

typedef struct prn_composite {
    const char *op;         /* "Gelu", "LayerNormalization", "SiLU", …; "Gemm": MatMul by a weight, Add of a bias */
    const uint32_t *layers; /* ascending; the program's */
    uint32_t layer_count;
    prony_cost cost; /* of the one operator */
} prn_composite;

/* true: every pattern contains at least one such operator. A model without any has no composites. */
bool prn_composite_sign(const char *op);

/* Finds them by the matchers of the rewrites. The program must not be planned afterwards; its layers and values stay
 * readable. The caller releases *out by prn_free. */
PRN_MUST_USE prony_status prn_program_composites(prn_program *program, prn_composite **out, size_t *count,
                                                 prony_error *error);

#endif
