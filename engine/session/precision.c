#include "engine/session/precision.h"

#include "base/cpu/isa.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {[PRONY_PRECISION_FP32] = "fp32",
                                    [PRONY_PRECISION_FAST] = "fast",
                                    [PRONY_PRECISION_BF16] = "bf16",
                                    [PRONY_PRECISION_FP16] = "fp16",
                                    [PRONY_PRECISION_INT8_WEIGHTS] = "int8-weights",
                                    [PRONY_PRECISION_INT4_WEIGHTS] = "int4-weights",
                                    [PRONY_PRECISION_FP32_STRICT] = "fp32-strict"};
enum { NAMES = sizeof names / sizeof names[0] };

/* int8 is a property of the model; its other operators compute as in fp32. */
static const char codes[] = "int8";

/* NAMES: unknown name. */
static int precision_find(const char *name)
{
    int i = 0;
    while (name && i < NAMES && strcmp(names[i], name) != 0) i++;
    return i;
}

static bool is_codes(const char *name)
{
    return name && strcmp(name, codes) == 0;
}

/* The precisions for which this processor's matmul is faster than fp32. */
static const char *faster_here(void)
{
    if (prn_isa_has(PRN_HAS_AMX)) return "fast, bf16 and int8 (AMX)";
    if (prn_isa_has(PRN_HAS_VNNI | PRN_HAS_BF16)) return "bf16 (AVX512_BF16) and int8 (VNNI)";
#if defined(__aarch64__)
    if (prn_isa_has(PRN_HAS_DOTPROD)) return prn_isa_has(PRN_HAS_I8MM) ? "int8 (USMMLA)" : "int8 (SDOT)";
#endif
    return prn_isa_has(PRN_HAS_VNNI) ? "int8 (VNNI)" : "int8 alone, by products of 16 bits";
}

static prony_status precision_refuse(const char *name, prony_error *error)
{
    char list[160];
    size_t used = 0;
    for (int i = 0; i < NAMES && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    return prn_fail(error, PRONY_UNSUPPORTED,
                    "unknown precision '%.40s'; this version has %s and %s; this processor accelerates %s", name, list,
                    codes, faster_here());
}

prony_status prn_precision_check(const prony_model *model, const char *name, prony_error *error)
{
    if (is_codes(name) && prony_model_is_quantized(model)) return PRONY_OK;
    if (is_codes(name))
        return prn_fail(error, PRONY_UNSUPPORTED,
                        "%.300s: precision 'int8' needs a quantized model; prony_model_quantize makes one",
                        model->file->name);
    const int found = precision_find(name);
    if (found == PRONY_PRECISION_FP32_STRICT && !prn_isa_has(PRN_HAS_FMA))
        return prn_fail(error, PRONY_UNSUPPORTED,
                        "precision 'fp32-strict' needs fused multiply-add; this processor lacks it, or "
                        "PRONY_MAX_ISA disables it");
    return found == NAMES ? precision_refuse(name, error) : PRONY_OK;
}

prony_precision prn_precision_find(const char *name, const char **text)
{
    const prony_precision found = is_codes(name) ? PRONY_PRECISION_FP32 : (prony_precision)precision_find(name);
    *text = is_codes(name) ? codes : names[found];
    return found;
}
