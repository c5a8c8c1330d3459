/* Shared by the parts of the maker of near misses. Shapes of results are not followed: the engine infers them. */
#ifndef PRN_TESTS_SUPPORT_NEAR_MISS_MAKER_H
#define PRN_TESTS_SUPPORT_NEAR_MISS_MAKER_H

#include "tests/support/random_graph_maker.h"

typedef struct nm_maker {
    rg_maker k;
} nm_maker;

/* A contraction with constant weights, and the axis of its channels. */
typedef struct nm_contraction {
    int x, y;
    int64_t channels;
    int rank, axis; /* of y */
} nm_contraction;

#define NM_SHAPE(...) ((prony_shape){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})
#define NM_NODE(m, op, attributes, ...)                                                                                \
    nm_node(m, op, attributes, (int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define NM_LIST(m, ...) rg_ints(&(m)->k, (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* ---- values ---- */

int64_t nm_extent(nm_maker *m); /* 2 to 6 */
bool nm_either(nm_maker *m);
int nm_input(nm_maker *m, prony_shape shape);
int nm_constant(nm_maker *m, prony_shape shape, double low, double high);
/* A constant of one element: rank 0, seldom [1]. */
int nm_number(nm_maker *m, double x);
/* The value that a pattern begins with: an input of that shape, or an operator on one. */
int nm_before(nm_maker *m, prony_shape shape);
/* A constant along one axis of a value of that rank, without leading dims of 1 now and then. */
int nm_along(nm_maker *m, int rank, int axis, int64_t extent, double low, double high);

/* ---- nodes ---- */

int nm_node(nm_maker *m, const char *op, const char *attributes, const int *in, size_t count);
/* Operands in either order. */
int nm_pair(nm_maker *m, const char *op, int a, int b);
/* x times a number, by Mul or by Div. */
int nm_times(nm_maker *m, int x, double number);
int nm_clip(nm_maker *m, int x, const double *low, const double *high);
/* Over one axis, kept. */
int nm_mean(nm_maker *m, int x, int axis);
/* Conv of equal extents from `channels` to as many. */
nm_contraction nm_same_conv(nm_maker *m, int x, int rank, int64_t in, int64_t out, int64_t kernel);
/* Any contraction with constant weights. */
nm_contraction nm_contract(nm_maker *m);
int nm_batch_norm(nm_maker *m, int x, int64_t channels);

/* ---- patterns: each returns its last value ---- */

typedef struct nm_pattern {
    const char *rewrite;
    int (*make)(nm_maker *m); /* NULL: of quantized values */
} nm_pattern;

extern const nm_pattern nm_move_patterns[];  /* near_miss_moves.c; end with NULL */
extern const nm_pattern nm_match_patterns[]; /* near_miss_matches.c */
extern const nm_pattern nm_fold_patterns[];  /* near_miss_folds.c */

/* Changes one thing; NULL: found nothing to change. */
const char *nm_change(nm_maker *m);

#endif
