/* Implements ranges.h. */
#include "bench/process/ranges.h"

#include "prony_ranges.h"

#include <stdlib.h>
#include <string.h>

int ranges_begin(const options *o, bool tell)
{
    prony_error error = {0};
    const char *tool = getenv("PRONY_RANGES");
    if (!tool || !*tool) return EXIT_DONE;
    const prony_status status = prony_ranges_open(tool, &error);
    if (status == PRONY_OK) return EXIT_DONE;
    if (status == PRONY_INVALID_ARGUMENT) {
        fail(o, "PRONY_RANGES: %s", error.message);
        return EXIT_USAGE;
    }
    if (tell) fail(o, "PRONY_RANGES=%s: %s; the command runs without ranges", tool, error.message);
    return EXIT_DONE;
}
