/* Shares of each type, layer or operator in a quantity, single and cumulative. */
#include "profiler/report/report_select.h"
#include "base/memory/row_block.h"
#include "profiler/report/type_summary.h"

#include <string.h>

prony_status prony_report_types(prony_type_row **rows, size_t *count, const prony_report *report, prony_error *error)
{
    if (!rows || !count || !report)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_types: an argument is NULL");
    prn_type_row *found = NULL;
    PRN_TRY(prn_type_summary(report, &found, count, error));
    *rows = prn_rows_create(*count, sizeof **rows);
    if (*rows) memcpy(*rows, found, *count * sizeof **rows);
    prn_free(found);
    return *rows ? PRONY_OK : prn_no_memory(error);
}

/* Shares refer to the sum over all rows, also those that filter or `top` leave out. */
prony_status prony_report_impact(prony_impact_row **rows, size_t *count, const prony_report *report, unsigned level,
                                 const char *key, const char *filter, size_t top, prony_error *error)
{
    if (!rows || !count || !report || !key)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_impact: an argument is NULL");
    if (level != PRONY_LEVEL_LAYER && level != PRONY_LEVEL_OPERATOR)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "level 0x%x: only layers and operators have an impact", level);
    prn_selection selection;
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.sort = key;
    options.filter = filter;
    PRN_TRY(prn_select_init(&selection, report, &options, error));
    if (!prn_select_sums_up(selection.sort))
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "metric \"%s\" is not a sum over rows, so rows have no share of it", key);
    uint32_t *order = NULL;
    size_t found = 0;
    bool layers = level == PRONY_LEVEL_LAYER;
    PRN_TRY(layers ? prn_select_layers(&selection, &order, &found, error)
                   : prn_select_operators(&selection, &order, &found, error));
    *count = top && top < found ? top : found;
    *rows = prn_rows_create(*count, sizeof **rows);
    size_t all = layers ? report->layer_count : report->operator_count;
    double whole = 0, sum = 0;
    for (uint32_t i = 0; i < all; i++) whole += prn_select_value(&selection, layers, i);
    for (size_t i = 0; *rows && i < *count; i++) {
        double value = prn_select_value(&selection, layers, order[i]), share = whole > 0 ? value / whole : 0;
        (*rows)[i] = (prony_impact_row){order[i], value, share, sum += share};
    }
    prn_free(order);
    return *rows ? PRONY_OK : prn_no_memory(error);
}
