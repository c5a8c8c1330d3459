/* Implements color_map.h. */
#include "profiler/exporters/color_map.h"

#include "base/memory/alloc.h"

#include <stdlib.h>

static int hottest_first(const void *left, const void *right)
{
    const prn_hot_layer *a = left, *b = right;
    if (a->heat > b->heat || a->heat < b->heat) return a->heat > b->heat ? -1 : 1;
    return a->layer < b->layer ? -1 : a->layer > b->layer;
}

prn_hot_layer *prn_hottest_layers(const prony_report *r, size_t *count)
{
    prn_hot_layer *hot = prn_calloc(r->layer_count + 1, sizeof *hot);
    *count = hot ? r->layer_count : 0;
    for (uint32_t i = 0; i < *count; i++) hot[i] = (prn_hot_layer){prn_color_map_layer(r, &r->layers[i]), i};
    if (hot) qsort(hot, *count, sizeof *hot, hottest_first);
    return hot;
}
