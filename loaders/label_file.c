/* Class names and lists of labelled files. The file is mapped during a call; results are copied into the caller's
 * pool. */
#include "loaders/label_file.h"

#include "base/os/file.h"

#include <string.h>
#include <strings.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* A copy of [begin, end) without white space around it. */
static char *copy_trimmed(prn_bump *pool, const char *begin, const char *end)
{
    while (begin < end && is_blank(*begin)) begin++;
    while (end > begin && is_blank(end[-1])) end--;
    return prn_bump_strndup(pool, begin, (size_t)(end - begin));
}

static prony_status split_lines(prn_text_lines *out, prn_bump *pool, const prn_map *map, prony_error *error)
{
    if (map->size == 0) return PRONY_OK;
    const char *data = (const char *)map->data, *end = data + map->size;
    if (map->size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) data += 3;
    if (memchr(data, '\0', (size_t)(end - data)))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "not a text file: it has a byte of value 0");
    size_t lines = 1;
    for (const char *at = data; at < end; at++) lines += *at == '\n';
    out->lines = prn_bump_alloc(pool, lines, sizeof *out->lines);
    if (!out->lines) return prn_no_memory(error);
    for (const char *at = data; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        out->lines[out->count] = copy_trimmed(pool, at, stop);
        if (!out->lines[out->count++]) return prn_no_memory(error);
        at = newline ? newline + 1 : end;
    }
    while (out->count && !*out->lines[out->count - 1]) out->count--;
    return PRONY_OK;
}

prony_status prn_text_lines_read(prn_text_lines *out, prn_bump *pool, const char *path, prony_error *error)
{
    prn_map map;
    *out = (prn_text_lines){0};
    PRN_TRY(prn_map_open(&map, path, error));
    prony_status status = split_lines(out, pool, &map, error);
    prn_map_close(&map);
    if (status == PRONY_OK && out->count == 0) status = prn_fail(error, PRONY_INVALID_ARGUMENT, "the file is empty");
    if (status != PRONY_OK && status != PRONY_OUT_OF_MEMORY) prn_error_prefix(error, "'%.400s'", path);
    return status;
}

/* ---- lists ---- */

typedef struct field_list {
    char **items;
    size_t count, capacity;
} field_list;

/* Fields of a line, in place: quotes and separators are overwritten. false: out of memory. */
static bool split_fields(char *line, field_list *fields)
{
    fields->count = 0;
    for (char *at = line;;) {
        while (is_blank(*at)) at++;
        char *from = at, *to = at;
        bool quoted = *at == '"';
        if (quoted) at++;
        for (; *at && (quoted || *at != ','); at++) {
            if (quoted && *at == '"' && *++at != '"') {
                quoted = false;
                at--;
                continue;
            }
            *to++ = *at;
        }
        char separator = *at;
        while (to > from && is_blank(to[-1])) to--;
        *to = '\0';
        if (!PRN_GROW(fields->items, fields->capacity, fields->count + 1)) return false;
        fields->items[fields->count++] = from;
        if (!separator) return true;
        at++;
    }
}

static bool label_file_is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcasecmp(word, *list) == 0) return true;
    return false;
}

typedef struct columns {
    size_t file, label;
    bool named;
} columns;

/* Reads the columns from a first line with their names. */
static columns find_columns(char *const *fields, size_t count)
{
    static const char *const files[] = {"file", "filename", "file_name", "path", "image", "name", NULL};
    static const char *const labels[] = {"label", "class", "category", "target", "y", NULL};
    columns c = {.file = count, .label = count};
    for (size_t i = count; i-- > 0;) {
        if (label_file_is_one_of(fields[i], files)) c.file = i;
        if (label_file_is_one_of(fields[i], labels)) c.label = i;
    }
    c.named = c.label < count;
    if (!c.named) c = (columns){.file = 0, .label = 1};
    return c;
}

static void from_fields(prn_label_row *row, char *const *fields, size_t count, const columns *c)
{
    if (count == 1) {
        row->label = fields[0];
        return;
    }
    row->file = c->file < count ? fields[c->file] : NULL;
    row->label = c->label < count ? fields[c->label] : "";
}

static void label_file_from_words(prn_label_row *row, char *line)
{
    char *label = line + strlen(line);
    while (label > line && !is_blank(label[-1])) label--;
    row->label = label;
    if (label == line) return;
    char *end = label;
    while (end > line && is_blank(end[-1])) end--;
    *end = '\0';
    row->file = line;
}

static bool ends_with_csv(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && strcasecmp(dot, ".csv") == 0;
}

/* `fields` is room for those of a line. */
static prony_status label_file_read_list(prn_label_list *out, prn_bump *pool, const char *path, field_list *fields,
                                         prony_error *error)
{
    prn_text_lines text;
    columns c = {.file = 0, .label = 1};
    bool first = true;
    PRN_TRY(prn_text_lines_read(&text, pool, path, error));
    out->rows = prn_bump_alloc(pool, text.count, sizeof *out->rows);
    if (!out->rows) return prn_no_memory(error);
    const bool csv = ends_with_csv(path) || strchr(text.lines[0], ',');
    for (size_t i = 0; i < text.count; i++) {
        prn_label_row *row = &out->rows[out->count];
        char *line = (char *)(uintptr_t)text.lines[i];
        if (!*line) continue;
        *row = (prn_label_row){.line = i + 1};
        if (csv) {
            if (!split_fields(line, fields)) return prn_no_memory(error);
            if (first) c = find_columns(fields->items, fields->count);
            if (first && c.named) {
                first = false;
                continue;
            }
            from_fields(row, fields->items, fields->count, &c);
        } else {
            label_file_from_words(row, line);
        }
        first = false;
        if (!*row->label)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "'%.400s': line %zu has no label", path, i + 1);
        out->count++;
    }
    return PRONY_OK;
}

prony_status prn_label_list_read(prn_label_list *out, prn_bump *pool, const char *path, prony_error *error)
{
    field_list fields = {0};
    *out = (prn_label_list){0};
    const prony_status status = label_file_read_list(out, pool, path, &fields, error);
    prn_free(fields.items);
    return status;
}
