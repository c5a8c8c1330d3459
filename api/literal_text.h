/* Strings written as text: "…" or '…' with the escapes of JSON. */
#ifndef PRN_API_LITERAL_TEXT_H
#define PRN_API_LITERAL_TEXT_H

#include "base/status.h"

typedef struct prn_literal_texts {
    char *bytes; /* of all strings, one behind the other */
    size_t used, room;
    size_t *ends; /* where each string ends in `bytes` */
    size_t count, capacity;
    bool no_memory;
} prn_literal_texts;

/* Appends the quoted string at `text`. Returns the text behind it; NULL: not a string, or out of memory. */
const char *prn_literal_text_read(prn_literal_texts *texts, const char *text);
/* Makes *out a string tensor of the shape; a single string fills any shape, others are one per element. */
PRN_MUST_USE prony_status prn_literal_text_tensor(prony_value *out, const prn_literal_texts *texts,
                                                  const prony_shape *shape, prony_error *error);
void prn_literal_text_free(prn_literal_texts *texts);

#endif
