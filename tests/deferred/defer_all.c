/* Linked into every test: with PRN_TEST_DEFER set, constants of any size are deferred, so that whoever reads one that
 * nobody holds reads where nothing is. */
#include "engine/bind/lazy_constant.h"

#include <stdlib.h>

__attribute__((constructor)) static void defer_all(void)
{
    if (getenv("PRN_TEST_DEFER")) prn_defer_bytes = 1;
}
