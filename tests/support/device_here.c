#include "tests/support/device_here.h"

#include "prony_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

bool device_here(void)
{
    const prony_device_info *info;
    prony_error error = {0};
    if (prony_device_at(&info, 0, &error) == PRONY_OK) return true;
    print_message("skipped: %s\n", error.message);
    return false;
}
