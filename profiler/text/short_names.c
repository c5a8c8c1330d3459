/* Each step works on the distinct names, sorted, and the next one runs only while a name is too wide. A step that would
 * make two names equal is not taken. */
#include "profiler/text/short_names.h"

#include "profiler/text/text_out.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOTS = 2, SPLITS = 24, FIRST_SPLIT = 8 /* of SPLITS: the end of a name tells more than its beginning */ };
#define SEPARATORS "/._:"

typedef struct short_name {
    const char *given; /* as the caller wrote it */
    const char *text;  /* what is left of it, without indent */
    const char *shown; /* the cut text; NULL: not decided */
    int indent;
    size_t first; /* index of the first name that equals it */
} short_name;

typedef struct name_list {
    short_name *names; /* sorted by `given` */
    size_t count;
    int columns;
    prn_bump *pool;
} name_list;

static int short_by_given(const void *left, const void *right)
{
    return strcmp(((const short_name *)left)->given, ((const short_name *)right)->given);
}

static int short_by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static int short_room(const name_list *list, const short_name *name)
{
    const int room = list->columns - name->indent;
    return room > 1 ? room : 1;
}

static bool short_fits(const name_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (prn_text_width(list->names[i].text) > short_room(list, &list->names[i])) return false;
    return true;
}

/* ---- parents, beginning and end ---- */

/* Leaves out each component of a path that the next one begins with: "a/a.1/a.1.b" becomes "a.1.b". */
static const char *short_without_parents(prn_bump *pool, const char *text)
{
    char *out = prn_bump_strndup(pool, text, strlen(text)), *end = out;
    if (!out) return NULL;
    for (const char *at = text; *at;) {
        const size_t length = strcspn(at, "/");
        const char *next = at[length] ? at + length + 1 : NULL;
        const bool repeated =
            length && next && strncmp(next, at, length) == 0 && strchr("._", next[length]) && next[length] != '\0';
        if (!repeated) {
            const size_t copied = length + (next ? 1 : 0);
            memcpy(end, at, copied);
            end += copied;
        }
        at = next ? next : at + length;
    }
    *end = '\0';
    return out;
}

/* Takes `texts` over unless two of them are equal. */
static bool short_take(name_list *list, const char **texts, const char **sorted)
{
    memcpy(sorted, texts, list->count * sizeof *texts);
    qsort(sorted, list->count, sizeof *sorted, short_by_text);
    for (size_t i = 1; i < list->count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0) return false;
    for (size_t i = 0; i < list->count; i++) list->names[i].text = texts[i];
    return true;
}

static bool short_drop_parents(name_list *list)
{
    const char **texts = prn_calloc(2 * list->count, sizeof *texts);
    bool ok = texts != NULL;
    for (size_t i = 0; ok && i < list->count; i++) {
        texts[i] = short_without_parents(list->pool, list->names[i].text);
        ok = texts[i] != NULL;
    }
    if (ok) short_take(list, texts, texts + list->count);
    prn_free(texts);
    return ok;
}

/* Bytes that all texts begin with, up to and with a separator, so that something is left of each. */
static size_t short_common_head(const name_list *list)
{
    const char *first = list->names[0].text;
    size_t common = strlen(first);
    for (size_t i = 0; i < list->count; i++) {
        const char *text = list->names[i].text;
        size_t equal = 0;
        while (equal < common && text[equal] == first[equal]) equal++;
        common = text[equal] ? equal : equal ? equal - 1 : 0;
    }
    while (common > 0 && !strchr(SEPARATORS, first[common - 1])) common--;
    return common;
}

/* The same at the end, of what is behind `head` bytes; the bytes begin with a separator. */
static size_t short_common_tail(const name_list *list, size_t head)
{
    const char *first = list->names[0].text;
    const size_t length = strlen(first);
    size_t common = length - head;
    for (size_t i = 0; i < list->count; i++) {
        const char *text = list->names[i].text;
        const size_t size = strlen(text);
        size_t equal = 0;
        while (equal < common && equal < size - head - 1 && text[size - 1 - equal] == first[length - 1 - equal])
            equal++;
        common = equal;
    }
    while (common > 0 && !strchr(SEPARATORS, first[length - common])) common--;
    return common;
}

static bool short_drop_ends(name_list *list, prn_short_names *out)
{
    if (list->count < 2) return true;
    const char *first = list->names[0].text;
    const size_t head = short_common_head(list), tail = short_common_tail(list, head);
    out->before = prn_bump_strndup(list->pool, first, head);
    out->after = prn_bump_strndup(list->pool, first + strlen(first) - tail, tail);
    for (size_t i = 0; i < list->count; i++) {
        const char *text = list->names[i].text;
        list->names[i].text = prn_bump_strndup(list->pool, text + head, strlen(text) - head - tail);
        if (!list->names[i].text) return false;
    }
    return out->before && out->after;
}

/* ---- dots ---- */

/* Bytes of the beginning that take at most `columns`. */
static size_t short_head_bytes(const char *text, int columns)
{
    const char *at = text;
    for (int used = 0; *at;) {
        const char *next = at;
        used += prn_text_next(&next);
        if (used > columns) break;
        at = next;
    }
    return (size_t)(at - text);
}

/* The end of `text`, of at most `columns`. */
static const char *short_tail(const char *text, int columns)
{
    int left = prn_text_width(text) - columns;
    while (*text && left > 0) left -= prn_text_next(&text);
    return text;
}

static uint64_t short_hash(uint64_t hash, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3U;
    return (hash ^ 0xff) * 0x100000001b3U;
}

typedef struct split_key {
    uint64_t hash;
    size_t index;
} split_key;

static int short_by_hash(const void *left, const void *right)
{
    const split_key *a = left, *b = right;
    return a->hash < b->hash ? -1 : a->hash > b->hash;
}

/* Cuts each undecided name that alone has this beginning and this end among all names. `part` of SPLITS of the kept
 * columns are its beginning. False: out of memory. */
static bool short_split(name_list *list, split_key *keys, int part)
{
    for (size_t i = 0; i < list->count; i++) {
        const short_name *name = &list->names[i];
        const int kept = short_room(list, name) - DOTS, head = kept * part / SPLITS;
        const char *tail = short_tail(name->text, kept - head);
        uint64_t hash =
            short_hash(0xcbf29ce484222325U + (uint64_t)name->indent, name->text, short_head_bytes(name->text, head));
        keys[i] = (split_key){short_hash(hash, tail, strlen(tail)), i};
    }
    qsort(keys, list->count, sizeof *keys, short_by_hash);
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0 && keys[i - 1].hash == keys[i].hash) continue;
        if (i + 1 < list->count && keys[i + 1].hash == keys[i].hash) continue;
        short_name *name = &list->names[keys[i].index];
        const int kept = short_room(list, name) - DOTS, head = kept * part / SPLITS;
        if (name->shown || kept < 2) continue;
        name->shown = prn_bump_printf(list->pool, "%.*s..%s", (int)short_head_bytes(name->text, head), name->text,
                                      short_tail(name->text, kept - head));
        if (!name->shown) return false;
    }
    return true;
}

static size_t short_equal_bytes(const char *a, const char *b)
{
    size_t equal = 0;
    while (a[equal] && a[equal] == b[equal]) equal++;
    while (equal > 0 && ((unsigned char)a[equal] & 0xc0) == 0x80) equal--;
    return equal;
}

/* "be..er.7..nv": the columns around the first character that tells the name from its neighbours in order. */
static bool short_around(name_list *list, short_name *name)
{
    const size_t i = (size_t)(name - list->names);
    size_t apart = i ? short_equal_bytes(name->text, name[-1].text) : 0;
    if (i + 1 < list->count && short_equal_bytes(name->text, name[1].text) > apart)
        apart = short_equal_bytes(name->text, name[1].text);
    const int kept = short_room(list, name) - 2 * DOTS, end = kept / 4, middle = kept - 2 * end;
    if (kept < 4) return true;
    char *before = prn_bump_strndup(list->pool, name->text, apart);
    if (!before) return false;
    const char *from = short_tail(before, middle / 2);
    from = name->text + (from - before);
    name->shown = prn_bump_printf(list->pool, "%.*s..%.*s..%s", (int)short_head_bytes(name->text, end), name->text,
                                  (int)short_head_bytes(from, middle), from, short_tail(name->text, end));
    return name->shown != NULL;
}

typedef struct shown_key {
    const char *shown;
    size_t index;
} shown_key;

static int short_by_shown(const void *left, const void *right)
{
    const shown_key *a = left, *b = right;
    const int order = strcmp(a->shown, b->shown);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

/* Numbers the names that are still shown alike. */
static bool short_number(name_list *list)
{
    shown_key *keys = prn_calloc(list->count, sizeof *keys);
    int number = 0;
    bool ok = keys != NULL;
    for (size_t i = 0; ok && i < list->count; i++) keys[i] = (shown_key){list->names[i].shown, i};
    if (ok) qsort(keys, list->count, sizeof *keys, short_by_shown);
    for (size_t i = 0; ok && i < list->count; i++) {
        const bool alike = (i > 0 && strcmp(keys[i - 1].shown, keys[i].shown) == 0) ||
                           (i + 1 < list->count && strcmp(keys[i + 1].shown, keys[i].shown) == 0);
        if (!alike) continue;
        char mark[16], cut[512];
        short_name *name = &list->names[keys[i].index];
        const int mark_columns = snprintf(mark, sizeof mark, "~%d", ++number);
        prn_text_shorten(cut, sizeof cut, name->text, short_room(list, name) - mark_columns);
        name->shown = prn_bump_printf(list->pool, "%s%s", cut, mark);
        ok = name->shown != NULL;
    }
    prn_free(keys);
    return ok;
}

static bool short_cut(name_list *list)
{
    split_key *keys = prn_calloc(list->count, sizeof *keys);
    bool ok = keys != NULL;
    for (size_t i = 0; i < list->count; i++)
        if (prn_text_width(list->names[i].text) <= short_room(list, &list->names[i]))
            list->names[i].shown = list->names[i].text;
    for (int turn = 0; ok && turn <= 2 * SPLITS; turn++) {
        const int part = FIRST_SPLIT + (turn & 1 ? (turn + 1) / 2 : -turn / 2);
        if (part >= 0 && part <= SPLITS) ok = short_split(list, keys, part);
    }
    prn_free(keys);
    for (size_t i = 0; ok && i < list->count; i++)
        if (!list->names[i].shown) ok = short_around(list, &list->names[i]);
    for (size_t i = 0; ok && i < list->count; i++) {
        short_name *name = &list->names[i];
        char cut[512];
        if (name->shown) continue;
        prn_text_shorten(cut, sizeof cut, name->text, short_room(list, name));
        name->shown = prn_bump_strndup(list->pool, cut, strlen(cut));
        ok = name->shown != NULL;
    }
    return ok && short_number(list);
}

/* ---- the whole ---- */

/* Copies a name as a terminal will show it, without its indent. */
static bool short_clean(prn_bump *pool, const char *given, short_name *name)
{
    const size_t size = strlen(given) + 2;
    char *clean = prn_bump_alloc(pool, size, 1);
    if (!clean) return false;
    name->indent = (int)strspn(given, " ");
    prn_text_shorten(clean, size, given + name->indent, (int)size - 1);
    name->given = given;
    name->text = clean;
    return true;
}

static bool short_make(prn_short_names *out, name_list *list, const char *const *names)
{
    short_name *all = list->names;
    size_t distinct = 0, *first = prn_calloc(out->count, sizeof *first);
    bool ok = first != NULL;
    for (size_t i = 0; ok && i < out->count; i++) {
        ok = short_clean(list->pool, names[i] ? names[i] : "", &all[i]);
        all[i].first = i;
    }
    if (ok) qsort(all, out->count, sizeof *all, short_by_given);
    for (size_t i = 0; ok && i < out->count; i++) {
        const size_t index = all[i].first;
        if (!distinct || strcmp(all[distinct - 1].given, all[i].given) != 0) all[distinct++] = all[i];
        first[index] = distinct - 1;
    }
    list->count = distinct;
    if (ok && !short_fits(list)) ok = short_drop_parents(list);
    if (ok && !short_fits(list)) ok = short_drop_ends(list, out);
    if (ok) ok = short_cut(list);
    for (size_t i = 0; ok && i < out->count; i++) {
        const short_name *name = &all[first[i]];
        out->shown[i] = prn_bump_printf(list->pool, "%*s%s", name->indent, "", name->shown);
        ok = out->shown[i] != NULL;
    }
    prn_free(first);
    return ok;
}

bool prn_short_names_make(prn_short_names *out, const char *const *names, size_t count, int columns)
{
    *out = (prn_short_names){.count = count, .before = "", .after = ""};
    if (count == 0) return true;
    name_list list = {prn_calloc(count, sizeof *list.names), 0, columns, &out->pool};
    out->shown = prn_calloc(count, sizeof *out->shown);
    const bool ok = list.names && out->shown && short_make(out, &list, names);
    prn_free(list.names);
    return ok;
}

void prn_short_names_free(prn_short_names *names)
{
    prn_bump_release(&names->pool);
    prn_free(names->shown);
    *names = (prn_short_names){.before = "", .after = ""};
}
