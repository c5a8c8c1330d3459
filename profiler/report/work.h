/* Rates of each kind of work, by which an operator's time is shared among its layers. The shares are estimates, because
 * a fused loop has no time stamps inside. */
#ifndef PRN_PROFILER_REPORT_WORK_H
#define PRN_PROFILER_REPORT_WORK_H

#include "profiler/report/report.h"

/* X(SYMBOL, name, per second and thread where nothing was measured): FLOPs of products (2 per MAC), results of what
 * follows, bytes of MOVE. The defaults are of the vector loops on an AVX2 core at 3 GHz; only their ratios are used. */
#define PRN_WORK_LIST(X)                                                                                               \
    X(PRODUCT, "product", 60e9) /* multiply-add inside of a matrix product */                                          \
    X(SIMPLE, "simple", 12e9)   /* add, multiply, compare, maximum: in vectors */                                      \
    X(DIVIDE, "divide", 4e9)                                                                                           \
    X(SQRT, "sqrt", 4e9)                                                                                               \
    X(EXP, "exp", 1.5e9)                                                                                               \
    X(LOG, "log", 1.2e9)                                                                                               \
    X(ERF, "erf", 0.8e9)                                                                                               \
    X(TANH, "tanh", 0.8e9)                                                                                             \
    X(SIN, "sin", 0.4e9) /* and the other trigonometric functions */                                                   \
    X(POW, "pow", 0.2e9)                                                                                               \
    X(MOVE, "move", 20e9)

typedef enum prn_work {
#define PRN_WORK_ENUM(symbol, name, rate) PRN_WORK_##symbol,
    PRN_WORK_LIST(PRN_WORK_ENUM)
#undef PRN_WORK_ENUM
        PRN_WORK_COUNT
} prn_work;

const char *prn_work_name(prn_work work);

typedef struct prn_work_rates {
    double per_second[PRN_WORK_COUNT];
    bool measured; /* all of them, on this machine; else all are defaults, and only their ratios have a meaning */
} prn_work_rates;

/* Rates at `threads` threads: from the report's roof, interpolated between measured thread counts; else the
 * defaults. */
void prn_work_rates_at(prn_work_rates *rates, const prony_report *report, int threads);
/* The basis of estimated shares: "measured" or "default" rates. */
const char *prn_estimate_basis(const prony_report *report);
bool prn_report_has_estimates(const prony_report *report);

/* A layer's work by kind. `bytes`: traffic across the border of its operator. */
typedef struct prn_layer_work {
    double amount[PRN_WORK_COUNT];
} prn_layer_work;
void prn_layer_work_of(prn_layer_work *work, const prony_layer_row *layer, double bytes);

/* Fills shares[count] with each layer's share of the operator's time `time_ns`; they sum to 1. Other work than products
 * takes its time by the measured rates. Products, whose speed depends on their shape, take the rest: from one to
 * PRN_SLOWEST_PRODUCTS times their time in a good shape. A remainder is shared in proportion, and so is everything
 * without products or measured rates. */
#define PRN_SLOWEST_PRODUCTS 4.0
void prn_work_shares(const prn_work_rates *rates, const prn_layer_work *layers, size_t count, double time_ns,
                     double *shares);

/* Sets operator_share, time_attributed of every layer that an operator executes; needs the operators' mean times and
 * the roof. A removed layer has no share. */
PRN_MUST_USE prony_status prn_report_estimate_shares(prony_report *report, prony_error *error);

/* The end of layer `k`'s share on [0, PRN_SHARE_END], where the next layer's begins. Called for the layers in order;
 * *sum is 0 before the first call. */
#define PRN_SHARE_END (UINT64_C(1) << 32)
uint64_t prn_share_mark(const prony_report *report, const prony_operator_row *row, size_t k, double *sum);

/* "measured": the layer is alone in its operator; "estimated"; "removed"; NULL: it has no time. */
const char *prn_time_kind(const prony_layer_row *layer);
/* Significant digits of a layer's time: an estimate may be wrong by half of the smaller of its share and the rest.
 */
int prn_estimate_digits(const prony_layer_row *layer);
/* Rounds to `digits` significant digits. */
double prn_round_digits(double value, int digits);
/* "about 40 %" of its operator's time; NULL: not an estimate. */
#define PRN_PART_TEXT_BYTES 24
const char *prn_part_text(char text[PRN_PART_TEXT_BYTES], const prony_layer_row *layer);

#endif
