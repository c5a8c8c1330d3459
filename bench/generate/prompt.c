/* Prompts: ids as text or as a file of integers. */
#include "bench/generate/generate.h"
#include "bench/options/option_table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void prompt_free(prompt *p)
{
    free(p->ids);
    free(p->lengths);
    *p = (prompt){0};
}

static int prompt_add(const options *o, int64_t **ids, size_t *count, int64_t id)
{
    int64_t *grown = reallocarray(*ids, *count + 1, sizeof *grown);
    if (!grown) return fail(o, "out of memory");
    grown[(*count)++] = id;
    *ids = grown;
    return EXIT_DONE;
}

/* A comma without an id beside it: an id is missing. */
static bool ids_lack_one(const char *text)
{
    for (bool before = true;; text++) {
        text += strspn(text, " ");
        const bool ends = *text == ',' || *text == '\0';
        if (ends && before) return true;
        if (*text == '\0') return false;
        before = ends;
    }
}

int ids_parse(const options *o, const char *option, const char *text, int64_t **ids, size_t *count)
{
    const char *rest = text, *item;
    if (ids_lack_one(text)) return usage(o, "--%s needs ids such as 1,2,3, got '%s'", option, text);
    for (size_t length; (length = next_item(&rest, ',', &item));) {
        char number[32];
        int64_t id = 0;
        const size_t skip = strspn(item, " ");
        snprintf(number, sizeof number, "%.*s", (int)(length - (skip < length ? skip : 0)), item + skip);
        if (length >= sizeof number || !parse_int(number, 0, INT64_MAX, &id))
            return usage(o, "--%s needs ids such as 1,2,3, got '%s'", option, text);
        const int code = prompt_add(o, ids, count, id);
        if (code != EXIT_DONE) return code;
    }
    return EXIT_DONE;
}

static int prompt_end_sequence(const options *o, prompt *p, size_t length)
{
    size_t *grown = reallocarray(p->lengths, p->sequences + 1, sizeof *grown);
    if (!grown) return fail(o, "out of memory");
    grown[p->sequences++] = length;
    p->lengths = grown;
    p->longest = length > p->longest ? length : p->longest;
    return EXIT_DONE;
}

/* Integers of 64 or 32 bits: [length], or [sequences, length]. */
static int prompt_load(const options *o, const char *file, prompt *p)
{
    prony_error error = {0};
    prony_value *value;
    if (prony_value_load(&value, file, &error) != PRONY_OK) return report_error(o, &error);
    const int64_t count = prony_shape_numel(&value->shape);
    const bool wide = value->dtype == PRONY_INT64, integers = wide || value->dtype == PRONY_INT32;
    int code = EXIT_DONE;
    if (!integers || value->kind != PRONY_TENSOR || (value->shape.rank != 1 && value->shape.rank != 2) || count < 1)
        code = fail(o, "'%s': wanted int64 or int32 ids [length] or [sequences, length]", file);
    const int64_t rows = value->shape.rank == 2 ? value->shape.dim[0] : 1;
    for (int64_t k = 0; k < count && code == EXIT_DONE; k++)
        code = prompt_add(o, &p->ids, &p->total,
                          wide ? ((const int64_t *)value->data)[k] : ((const int32_t *)value->data)[k]);
    for (int64_t b = 0; b < rows && code == EXIT_DONE; b++) code = prompt_end_sequence(o, p, (size_t)(count / rows));
    prony_value_release(value);
    return code;
}

int prompt_parse(const options *o, const char *option, const char *text, prompt *out)
{
    if (text[strspn(text, "0123456789,; +-.")] != '\0') return prompt_load(o, text, out);
    const char *rest = text, *item;
    int code = EXIT_DONE;
    for (size_t length; code == EXIT_DONE && (length = next_item(&rest, ';', &item));) {
        const size_t before = out->total;
        char *sequence = strndup(item, length);
        code = sequence ? ids_parse(o, option, sequence, &out->ids, &out->total) : fail(o, "out of memory");
        free(sequence);
        if (code == EXIT_DONE) code = prompt_end_sequence(o, out, out->total - before);
    }
    return code == EXIT_DONE && !out->sequences ? usage(o, "--%s needs ids such as 1,2,3, got '%s'", option, text)
                                                : code;
}

int prompt_read(const options *o, prompt *out)
{
    return o->generate.prompt_ids ? prompt_parse(o, "prompt-ids", o->generate.prompt_ids, out) : EXIT_DONE;
}
