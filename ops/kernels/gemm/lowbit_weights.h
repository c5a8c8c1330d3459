/* Constant operands of matrix products, stored in fewer bits than float32 has. Activations and sums stay float32.
 *
 *   B [k, n], in panels of 32 columns; a panel is a run of groups of depths, each
 *
 *     [32 scales] [32 offsets] [codes of the group's depths]        weight = code * scale + offset
 *
 * | kind | codes | scales, offsets | |---|---|---| | INT8 | [depth][32] bytes | one for each column: a group is the
 * whole depth | | INT4, INT2 | [depth / 8 or 16][32] words of 8 or 16 codes, the first depth in the lowest bits | one
 * for each column and group | | BF16 | as prn_bf16x3_panel makes them with one part: pairs of depths d and d + 16 of
 * every 32 | none | | PAIRS | the same with two parts, for tiles alone: nothing streams them | none | | FP16 |
 * [depth][32] halves | none |
 *
 * Codes are signed. Depths beyond k and columns beyond n are zeros. The form is the same for every instruction set.
 *
 * Few rows stream the panels and widen codes in registers; for many rows the product core (gemm_kernel.h) unpacks a
 * panel into the cache. Sums are formed in an order that shapes alone decide. */
#ifndef PRN_OPS_KERNELS_GEMM_LOWBIT_WEIGHTS_H
#define PRN_OPS_KERNELS_GEMM_LOWBIT_WEIGHTS_H

#include "ops/kernels/gemm/gemm_kernel.h"

typedef enum prn_lowbit_kind {
    PRN_LOWBIT_INT8,
    PRN_LOWBIT_INT4,
    PRN_LOWBIT_INT2,
    PRN_LOWBIT_BF16,
    PRN_LOWBIT_FP16,
    PRN_LOWBIT_PAIRS
} prn_lowbit_kind;

enum {
    PRN_LOWBIT_COLUMNS = 32, /* of a panel */
    PRN_LOWBIT_ROWS = 8,     /* of A, at most, that stream the panels */
    PRN_LOWBIT_GROUP = 32    /* depths of a group of INT4, by default */
};

typedef struct prn_lowbit {
    prn_lowbit_kind kind;
    int64_t k, n;
    int64_t group; /* depths; a multiple of 16 where there are several */
    bool offsets;
    const char *panels; /* 64-byte aligned; NULL while nothing is packed */
} prn_lowbit;

/* Depths whose codes stand together, bytes of these, and whether there are scales. */
int64_t prn_lowbit_unit(prn_lowbit_kind kind);
int64_t prn_lowbit_unit_bytes(prn_lowbit_kind kind);
bool prn_lowbit_scaled(prn_lowbit_kind kind);
int prn_lowbit_bits(prn_lowbit_kind kind);
/* Bytes of a whole group, of a panel, and of all of it. */
int64_t prn_lowbit_group_bytes(const prn_lowbit *stored);
int64_t prn_lowbit_panel_bytes(const prn_lowbit *stored);
size_t prn_lowbit_bytes(const prn_lowbit *stored);

/* The storage that a session's precision asks for constant operands of products. false: float32. */
bool prn_lowbit_for(prony_precision precision, int64_t k, int64_t n, prn_lowbit *out);

/* Packs a constant B (gemm->b, b_row, b_col, k, n) through context->services, shared by every session of the model, and
 * rounds it; stored->panels is NULL afterwards if an element is infinite, NaN or beyond what the kind can hold. */
prony_status prn_lowbit_pack_shared(const prony_context *context, const prn_gemm *gemm, prn_lowbit *stored);

/* The code of depth d (of the group) and a column. */
void prn_lowbit_put_code(prn_lowbit_kind kind, char *codes, int64_t d, int64_t column, int32_t code);

/* The functions of one instruction set. */
typedef struct prn_lowbit_isa_table {
    /* c[r][0..31] = sums of row r of A, at a + r * a_row, by a panel; 1 to 8 rows. */
    void (*rows)(const prn_lowbit *stored, int64_t panel, const float *a, int64_t rs_a, int64_t rows, float *c);
    /* Weights of depths [k0, k0 + count) and as many columns from `column` on as a packed panel of this instruction set
     * has (prn_gemm_isa_table), rows of that many floats. k0 is a multiple of 32. */
    void (*unpack)(const prn_lowbit *stored, int64_t column, int64_t k0, int64_t count, float *to);
} prn_lowbit_isa_table;

const prn_lowbit_isa_table *prn_lowbit_isa(void);

/* Columns [j0, j1) of up to 8 rows [i0, i1) of C, where a_col is 1; j0 is a multiple of 32. */
void prn_lowbit_block(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1);

#endif
