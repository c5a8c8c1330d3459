/* Names, used by all readers. */
#include "loaders/onnx/reader.h"

#include <string.h>

prony_status prn_name_read(prn_reader *reader, const char **out, prn_span span, const char *what)
{
    *out = "";
    if (!span.size) return PRONY_OK;
    if (memchr(span.data, 0, span.size)) {
        return prn_fail(reader->error, PRONY_INVALID_MODEL, "%s '%.120s' contains a NUL", what,
                        (const char *)span.data);
    }
    const char *copy = prn_bump_strndup(reader->pool, (const char *)span.data, span.size);
    if (!copy) return prn_no_memory(reader->error);
    *out = copy;
    return PRONY_OK;
}
