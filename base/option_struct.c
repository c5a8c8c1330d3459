/* Implements option_struct.h. */
#include "base/option_struct.h"

#include <string.h>

prony_status prn_options_read(void *own, size_t size, const void *given, const char *what, prony_error *error)
{
    size_t length;
    if (!given) return PRONY_OK;
    memcpy(&length, given, sizeof length);
    if (length < 2 * sizeof length) return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: struct_size is not set", what);
    const unsigned char *bytes = given;
    for (size_t i = size; i < length; i++)
        if (bytes[i])
            return prn_fail(error, PRONY_UNSUPPORTED,
                            "%s: byte %zu is set, but this version of Prony (%s) does not know it", what, i,
                            PRONY_VERSION);
    memcpy(own, given, length < size ? length : size);
    memcpy(own, &size, sizeof size);
    return PRONY_OK;
}
