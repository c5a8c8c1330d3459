/* Implements bench/serve/microhttpd_library.h. */
#define MICROHTTPD_NAMES
#include "bench/serve/microhttpd_library.h"

#include "bench/process/late_library.h"

#define X(function) #function,
static const char *const names[] = {MICROHTTPD_FUNCTIONS(X)};
#undef X
microhttpd_functions microhttpd;

bool microhttpd_load(const char **why)
{
    return late_library_load(PRN_MICROHTTPD_NAME, names, sizeof names / sizeof *names, &microhttpd, why);
}
