/* Linked into every test: with PRN_TEST_DEFER set, constants of any size are deferred, so that reading an unpinned one
 * faults. */
#include "engine/bind/lazy_constant.h"

#include <stdlib.h>

__attribute__((constructor)) static void defer_all(void)
{
    if (getenv("PRN_TEST_DEFER")) prn_defer_bytes = 1;
}
