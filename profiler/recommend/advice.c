/* prony_recommend: advice from a report's values.
 *
 * There are two kinds of reasons. Measured (advice_measured.c): the comparison with a variant's report shows a
 * significant gain. Computed (advice_computed.c, advice_device.c): times, counts and bytes of this report are an upper
 * bound on the gain of a change. Below a topic's threshold nothing is recommended; a row then states the finding. Rows
 * own their strings.
 */
#include "profiler/recommend/advice.h"
#include "profiler/text/number_text.h"
#include "base/memory/row_block.h"

#include <string.h>

#define TOPICS_MOST 16 /* rows of a topic that has no row for each variant */

static prony_status advise_all(prn_adviser *a)
{
    PRN_TRY(prn_advise_batch(a));
    PRN_TRY(prn_advise_threads(a));
    PRN_TRY(prn_advise_fusion(a));
    PRN_TRY(prn_advise_precision(a));
    prn_advise_overhead(a);
    prn_advise_memory(a);
    prn_advise_device(a);
    return a->failed ? prn_no_memory(a->error) : PRONY_OK;
}

/* Puts applicable rows first, otherwise in order. */
static void put_first(prony_advice *rows, size_t count)
{
    size_t placed = 0;
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].applies) continue;
        prony_advice row = rows[i];
        memmove(&rows[placed + 1], &rows[placed], (i - placed) * sizeof *rows);
        rows[placed++] = row;
    }
}

prony_status prony_recommend(prony_advice **rows, size_t *count, const prony_report *report,
                             const prony_report *const *variants, size_t variant_count, prony_error *error)
{
    if (!rows || !count || !report || (variant_count && !variants))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_recommend: an argument is NULL");
    prn_adviser a = {.report = report, .variants = variants, .variant_count = variant_count, .error = error};
    a.rows = prn_rows_create(TOPICS_MOST + variant_count, sizeof *a.rows);
    if (!a.rows) return prn_no_memory(error);
    prony_status status = advise_all(&a);
    if (status != PRONY_OK) {
        prony_rows_release(a.rows);
        return status;
    }
    put_first(a.rows, a.count);
    *rows = a.rows;
    *count = a.count;
    return PRONY_OK;
}
