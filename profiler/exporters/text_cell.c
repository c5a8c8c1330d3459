/* Cells of the terminal report's tables. */
#include "profiler/exporters/text_cell.h"

#include "profiler/text/number_text.h"
#include "profiler/report/work.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void use_own(prn_cell *cell, const char *text)
{
    snprintf(cell->own, sizeof cell->own, "%s", text);
    cell->string = cell->own;
}

void prn_cell_count(prn_cell *cell, uint64_t value)
{
    prn_number_text text;
    use_own(cell, value ? prn_number_si(text, (double)value, 3, "") : "-");
}

void prn_cell_bytes(prn_cell *cell, uint64_t value)
{
    prn_number_text text;
    use_own(cell, value ? prn_number_bytes(text, (double)value, 3, "") : "-");
}

void prn_cell_index(prn_cell *cell, uint64_t value)
{
    snprintf(cell->own, sizeof cell->own, "%" PRIu64, value);
    cell->string = cell->own;
    cell->style = PRN_STYLE_DIM;
}

void prn_cell_time(prn_cell *cell, int64_t ns)
{
    prn_number_text text;
    use_own(cell, prn_number_time(text, ns, 3, ""));
}

void prn_cell_percent(prn_cell *cell, double share)
{
    prn_number_text text;
    use_own(cell, prn_number_percent(text, share));
    strcat(cell->own, "%");
    cell->style = share >= 0.2 ? PRN_STYLE_BAD : share >= 0.05 ? PRN_STYLE_WARN : PRN_STYLE_PLAIN;
}

void prn_cell_about_time(prn_cell *cell, int64_t ns, int digits)
{
    prn_number_text text;
    double rounded = prn_round_digits((double)ns, digits);
    prn_number_time(text, (int64_t)(rounded + 0.5), digits, "");
    snprintf(cell->own, sizeof cell->own, "~%s", text);
    cell->string = cell->own;
}

void prn_cell_about_percent(prn_cell *cell, double share, int digits)
{
    prn_cell_percent(cell, share);
    double percent = prn_round_digits(share * 100, digits);
    prn_number_text text;
    if (percent >= 0.1)
        snprintf(cell->own, sizeof cell->own, "~%s%%",
                 prn_number_fixed(text, percent, percent < 1 || (digits > 1 && percent < 10) ? 1 : 0));
    else
        snprintf(cell->own, sizeof cell->own, "<0.1%%");
    cell->string = cell->own;
}

void prn_cell_gflops(prn_cell *cell, uint64_t flops, int64_t ns)
{
    prn_number_text text;
    double rate = ns > 0 ? (double)flops / (double)ns : 0;
    int decimals = rate >= 10 ? 1 : rate >= 1 ? 2 : 3;
    use_own(cell, rate > 0 ? prn_number_fixed(text, rate, decimals) : "-");
}

void prn_cell_bar(prn_cell *cell, double value, double full)
{
    double part = full > 0 ? value / full : 0;
    int length = part > 0 ? (int)((part < 1 ? part : 1) * PRN_CELL_BAR_COLUMNS + 0.5) : 0;
    memset(cell->own, '#', (size_t)length);
    cell->own[length] = '\0';
    cell->string = cell->own;
    cell->style = PRN_STYLE_BAR;
}

/* "1x64x112x112"; "?" for an unknown extent. */
void prn_cell_shape(prn_cell *cell, const prony_value *value)
{
    size_t used = 0;
    cell->string = cell->own;
    if (!value || value->kind != PRONY_TENSOR || value->shape.rank < 0) {
        use_own(cell, !value || value->kind == PRONY_TENSOR ? "?"
                      : value->kind == PRONY_SEQUENCE       ? "sequence"
                                                            : "optional");
        return;
    }
    if (value->shape.rank == 0) use_own(cell, "scalar");
    for (int d = 0; d < value->shape.rank && d < PRONY_MAX_RANK && used < sizeof cell->own; d++) {
        char extent[32] = "?";
        if (value->shape.dim[d] >= 0) snprintf(extent, sizeof extent, "%" PRId64, value->shape.dim[d]);
        used += (size_t)snprintf(cell->own + used, sizeof cell->own - used, "%s%s", d ? "x" : "", extent);
    }
}
