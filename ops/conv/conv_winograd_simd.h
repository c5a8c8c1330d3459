/* The vector loops of the Winograd convolution, compiled once per instruction set. Distances are in floats. */
#ifndef PRN_OPS_CONV_CONV_WINOGRAD_SIMD_H
#define PRN_OPS_CONV_CONV_WINOGRAD_SIMD_H

#include <stdbool.h>
#include <stdint.h>

/* Outputs of a tile, rows x columns; a tile of m x n outputs reads (m + 2) x (n + 2) inputs and takes as many
 * products. */
typedef enum prn_winograd_kind {
    PRN_WINOGRAD_2X2,
    PRN_WINOGRAD_2X4,
    PRN_WINOGRAD_4X4,
    PRN_WINOGRAD_KINDS
} prn_winograd_kind;

enum {
    PRN_WINOGRAD_TAPS = 3,
    PRN_WINOGRAD_MOST_SIDE = 6,   /* inputs of a tile, along one axis */
    PRN_WINOGRAD_MOST_BLOCKS = 4, /* output channel blocks of a register tile */
    PRN_WINOGRAD_MOST_TILES = 12  /* tiles of a register tile */
};

/* `count` tiles side by side, of one channel block. */
typedef struct prn_winograd_forward {
    const float *x;
    int64_t x_row, x_column; /* between the rows and the columns of a tile's inputs */
    float *v;
    int64_t v_point; /* between the points of a tile; tiles lie side by side */
    int64_t count;
} prn_winograd_forward;

/* One tile that meets padding: of each row the first column that is there, and from one to the next; a row that is
 * padding stays at prn_winograd_zeros. */
typedef struct prn_winograd_edge {
    const float *row[PRN_WINOGRAD_MOST_SIDE];
    int64_t x_column[PRN_WINOGRAD_MOST_SIDE];
    int64_t first, end; /* columns of the tile that are there */
    float *v;
    int64_t v_point;
} prn_winograd_edge;

/* Lanes of padding. */
extern const float prn_winograd_zeros[16];

/* The same on the way back: y = inverse transform of m, + bias, + added. */
typedef struct prn_winograd_inverse {
    const float *m;
    int64_t m_point;
    const float *bias;  /* of the channels of the block */
    const float *added; /* lies as y does, and may be y; NULL: none */
    float *y;
    int64_t y_row;
    int64_t count;
} prn_winograd_inverse;

/* Some tiles of one point: m[block][tile][lane] = or += sum over input channels of v w. */
typedef struct prn_winograd_product {
    const float *v; /* [input block][tile][lane] */
    int64_t v_block;
    const float *weights; /* [input block][input lane][output block][output lane] */
    int64_t in_blocks;
    int64_t run; /* input blocks whose products are one running sum; the sums of runs are added up */
    float *m;
    int64_t m_block;
    bool add;
    const float *next; /* what is needed soon, and fetched on the way: so many floats for each input lane */
    int64_t next_step;
} prn_winograd_product;

typedef struct prn_winograd_simd {
    int64_t lanes;                               /* channels of a block */
    int64_t tiles[PRN_WINOGRAD_MOST_BLOCKS + 1]; /* most of a product with so many output blocks */
    void (*forward[PRN_WINOGRAD_KINDS])(const prn_winograd_forward *f);
    void (*edge[PRN_WINOGRAD_KINDS])(const prn_winograd_edge *e);
    void (*inverse[PRN_WINOGRAD_KINDS])(const prn_winograd_inverse *i);
    /* product[blocks][tiles], both at least 1 */
    void (*product[PRN_WINOGRAD_MOST_BLOCKS + 1][PRN_WINOGRAD_MOST_TILES + 1])(const prn_winograd_product *p);
    /* The transformed filters of `lanes` output channels that are `row` apart, for one input channel: u[point * u_point
     * + lane]. In double precision, rounded once. */
    void (*filters[PRN_WINOGRAD_KINDS])(const float *w, int64_t row, float *u, int64_t u_point);
    /* The same of `count` filters side by side, whole vectors of them, whose taps are `tap` apart. */
    void (*filters_of_taps[PRN_WINOGRAD_KINDS])(const float *w, int64_t tap, float *u, int64_t u_point, int64_t count);
} prn_winograd_simd;

#endif
