/* Pieces of series, kept until a run is added. The search takes 499 permutations and more, and one check writes text
 * and JSON and counts a verdict, all of the same series. */
#include "profiler/history/history.h"

#include <string.h>

typedef struct searched_series {
    double *values; /* the key: a copy */
    prn_level_piece *pieces;
    size_t value_count, piece_count;
} searched_series;

struct prn_history_searches {
    searched_series *series;
    size_t count, capacity, searched;
};

prn_history_searches *prn_history_searches_create(void)
{
    return prn_calloc(1, sizeof(prn_history_searches));
}

void prn_history_searches_forget(prn_history_searches *searches)
{
    while (searches->count) {
        const searched_series *last = &searches->series[--searches->count];
        prn_free(last->values);
        prn_free(last->pieces);
    }
}

void prn_history_searches_release(prn_history_searches *searches)
{
    if (!searches) return;
    prn_history_searches_forget(searches);
    prn_free(searches->series);
    prn_free(searches);
}

size_t prn_history_searched(const prony_history *history)
{
    return history->searches->searched;
}

static const searched_series *series_find(const prn_history_searches *s, const double *values, size_t n)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->series[i].value_count == n && memcmp(s->series[i].values, values, n * sizeof *values) == 0)
            return &s->series[i];
    return NULL;
}

/* Without memory the series is searched again another time. */
static void series_keep(prn_history_searches *s, const double *values, size_t n, const prn_level_piece *pieces,
                        size_t count)
{
    if (!PRN_GROW(s->series, s->capacity, s->count + 1)) return;
    searched_series *kept = &s->series[s->count];
    *kept = (searched_series){prn_alloc((n + 1) * sizeof *values), prn_alloc((count + 1) * sizeof *pieces), n, count};
    if (!kept->values || !kept->pieces) {
        prn_free(kept->values);
        prn_free(kept->pieces);
        return;
    }
    memcpy(kept->values, values, n * sizeof *values);
    memcpy(kept->pieces, pieces, count * sizeof *pieces);
    s->count++;
}

prony_status prn_history_pieces(const prony_history *history, prn_level_piece pieces[PRN_LEVEL_PIECES], size_t *count,
                                const double *values, size_t n, prony_error *error)
{
    prn_history_searches *s = history->searches;
    const searched_series *known = series_find(s, values, n);
    if (known) {
        memcpy(pieces, known->pieces, known->piece_count * sizeof *pieces);
        *count = known->piece_count;
        return PRONY_OK;
    }
    PRN_TRY(prn_level_pieces(pieces, count, values, n, error));
    s->searched++;
    series_keep(s, values, n, pieces, *count);
    return PRONY_OK;
}
