/* Tools to which prony_ranges_open passes ranges. */
#ifndef PRN_BASE_RANGES_RANGE_TOOLS_H
#define PRN_BASE_RANGES_RANGE_TOOLS_H

#include "base/ranges/ranges.h"

#include <stdio.h>

enum { PRN_RANGE_TEXT_BYTES = 512 };

/* "NAME (TYPE)", cut at the size of `text`. */
static inline const char *prn_range_text(char text[PRN_RANGE_TEXT_BYTES], const char *name, const char *type)
{
    snprintf(text, PRN_RANGE_TEXT_BYTES, "%s (%s)", name, type);
    return text;
}

/* Loads the collector of Intel's ITT; does nothing if it is there. One call at a time. */
PRN_MUST_USE prony_status prn_range_itt_open(prony_error *error);
extern const prony_range_hooks prn_range_itt_hooks;

#endif
