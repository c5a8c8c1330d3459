/* Implements bench/history/sqlite_library.h. */
#ifdef PRN_HAVE_SQLITE
#define SQLITE_NAMES
#include "bench/history/sqlite_library.h"

#include "bench/process/late_library.h"

#define X(function) #function,
static const char *const names[] = {SQLITE_FUNCTIONS(X)};
#undef X
sqlite_functions sqlite;

bool sqlite_load(const char **why)
{
    return late_library_load(PRN_SQLITE_NAME, names, sizeof names / sizeof *names, &sqlite, why);
}
#endif
