/* Names of one table or chart, cut to a width so that different names stay different. Pure. */
#ifndef PRN_PROFILER_TEXT_SHORT_NAMES_H
#define PRN_PROFILER_TEXT_SHORT_NAMES_H

#include "base/memory/alloc.h"
#include "base/status.h"

typedef struct prn_short_names {
    prn_bump pool;
    const char **shown; /* [count], in the order of the names */
    size_t count;
    const char *before, *after; /* the beginning and the end that every name had and none shows; "" without one */
} prn_short_names;

/* Cuts `names` to `columns`. Names that all fit stay whole. Otherwise these steps follow until all fit:
 *
 *     1. a parent that its child repeats:      "block/block.0/block.0.1/Conv" -> "block.0.1/Conv"
 *     2. the beginning and the end of all:     "model/layer1/conv1/Conv"      -> "layer1/conv1"
 *     3. ".." in each name that is too long, at a position where the rest belongs to no other name
 *     4. ".." twice, around the first character that no other name has there
 *     5. the cut name and a number, "name~2"
 *
 * Blanks at the beginning are an indent and stay. Equal names are shown alike. False: out of memory. Release by
 * prn_short_names_free, also after a failure. */
PRN_MUST_USE bool prn_short_names_make(prn_short_names *out, const char *const *names, size_t count, int columns);
void prn_short_names_free(prn_short_names *names);

#endif
