/* Text that the library writes piece by piece, as a Python string. */
#include "py_prony.h"

#include <stdlib.h>
#include <string.h>

int pyp_text_write(void *user, const char *data, size_t size)
{
    pyp_text *text = user;
    if (size > text->room - text->size) {
        size_t room = text->room + size + text->room / 2 + 4096;
        char *grown = realloc(text->data, room);
        if (!grown) return 1;
        text->data = grown;
        text->room = room;
    }
    memcpy(text->data + text->size, data, size);
    text->size += size;
    return 0;
}

PyObject *pyp_text_take(pyp_text *text, prony_status status, const prony_error *error)
{
    PyObject *result = status != PRONY_OK
                           ? pyp_fail(error, NULL)
                           : PyUnicode_DecodeUTF8(text->data ? text->data : "", (Py_ssize_t)text->size, "replace");
    free(text->data);
    *text = (pyp_text){0};
    return result;
}
