/* The clock as users of the library read it, so that their times and the library's are of one. */
#include "base/os/clock.h"
#include "prony.h"

int64_t prony_now_ns(void)
{
    return prn_now_ns();
}
