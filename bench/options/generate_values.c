/* The value of --generate: prompt=512,new=128. */
#include "bench/options/option_table.h"

#include <string.h>

int parse_generate(options *o, const option_row *row, char *text)
{
    const char *rest = text, *item;
    o->generate.enabled = true;
    for (size_t length; (length = next_item(&rest, ',', &item));) {
        char part[64];
        if (length >= sizeof part) return usage(o, "--%s needs %s, got '%s'", row->name, row->wanted, text);
        memcpy(part, item, length);
        part[length] = '\0';
        const char *number = cut_name(part);
        int64_t *field = !number                       ? NULL
                         : strcmp(part, "prompt") == 0 ? &o->generate.prompt
                         : strcmp(part, "new") == 0    ? &o->generate.new_tokens
                                                       : NULL;
        if (!field || !parse_int(number, 1, INT32_MAX, field))
            return usage(o, "--%s needs %s, got '%s'", row->name, row->wanted, text);
    }
    return 0;
}
