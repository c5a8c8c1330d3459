/* The public clock, so that users' times and the library's come from one clock. */
#include "base/os/clock.h"
#include "prony.h"

int64_t prony_now_ns(void)
{
    return prn_now_ns();
}
