/* Rows and cells of a document. */
#include "profiler/documents/document.h"

#include "profiler/text/number_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL, and the reader's error. */
static void *document_no_memory(prn_document *d)
{
    if (d->reader.status == PRONY_OK) d->reader.status = prn_no_memory(d->reader.error);
    return NULL;
}

/* The object that holds the last member of `path`; *key is that member's name. */
static const prn_json_value *document_owner(prn_document *d, const prn_json_value *row, const char *path,
                                            const char **key)
{
    const prn_json_value *at = row ? row : d->root;
    const char *dot;
    while (at && (dot = strchr(path, '.'))) {
        char *name = prn_bump_strndup(&d->pool, path, (size_t)(dot - path));
        if (!name) return document_no_memory(d);
        at = prn_json_get_object(&d->reader, at, name, false);
        path = dot + 1;
    }
    *key = path;
    return at && prn_json_has(at, path) ? at : NULL;
}

/* "configuration@plan.configurations.intra_op_threads": the element that the row's index names. */
static const prn_json_value *document_element(prn_document *d, const prn_json_value *row, const char *path,
                                              const char **key)
{
    const char *list = strchr(path, '@'), *member = strrchr(path, '.'), *leaf;
    char *index_key = prn_bump_strndup(&d->pool, path, (size_t)(list - path)),
         *list_path = prn_bump_strndup(&d->pool, list + 1, (size_t)(member - list - 1));
    uint64_t index = 0;
    if (!index_key || !list_path) return document_no_memory(d);
    if (!prn_json_get_u64(&d->reader, row, index_key, false, &index)) return NULL;
    const prn_json_value *element = prn_document_at(d, NULL, list_path, &leaf);
    for (element = element ? prn_json_first(element) : NULL; element && index > 0; index--)
        element = prn_json_next(element);
    *key = member + 1;
    return element && prn_json_has(element, *key) ? element : NULL;
}

static const prn_json_value *document_holder(prn_document *d, const prn_json_value *row, const char *path,
                                             const char **key)
{
    return strchr(path, '@') ? document_element(d, row, path, key) : document_owner(d, row, path, key);
}

const prn_json_value *prn_document_at(prn_document *d, const prn_json_value *row, const char *path, const char **key)
{
    const prn_json_value *owner = document_holder(d, row, path, key);
    for (const prn_json_value *member = owner ? prn_json_first(owner) : NULL; member; member = prn_json_next(member))
        if (strcmp(prn_json_key(member), *key) == 0) return member;
    return NULL;
}

bool prn_document_number(prn_document *d, const prn_json_value *row, const char *path, double *out)
{
    const char *key;
    const prn_json_value *owner = document_holder(d, row, path, &key);
    return owner && prn_json_get_double(&d->reader, owner, key, false, out);
}

const char *prn_document_text(prn_document *d, const prn_json_value *row, const char *path)
{
    const char *key, *text = NULL;
    const prn_json_value *owner = document_holder(d, row, path, &key);
    return owner && prn_json_get_string(&d->reader, owner, key, false, &text) ? text : NULL;
}

/* ---- rows ---- */

typedef struct ordered_row {
    const prn_json_value *row;
    double weight;
    size_t index;
} ordered_row;

static int document_rows_by_weight(const void *left, const void *right)
{
    const ordered_row *a = left, *b = right;
    if (a->weight > b->weight || a->weight < b->weight) return a->weight > b->weight ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static bool document_sort(prn_document *d, const char *order, prn_document_rows *out)
{
    ordered_row *list = prn_calloc(out->count + 1, sizeof *list);
    if (!list) return false;
    for (size_t i = 0; i < out->count; i++) {
        double weight = 0;
        const char *key;
        const prn_json_value *value = prn_document_at(d, out->rows[i], order, &key);
        if (value && prn_json_is_bool(value))
            weight = prn_json_is_true(value);
        else
            prn_document_number(d, out->rows[i], order, &weight);
        list[i] = (ordered_row){out->rows[i], fabs(weight), i};
    }
    qsort(list, out->count, sizeof *list, document_rows_by_weight);
    for (size_t i = 0; i < out->count; i++) out->rows[i] = list[i].row;
    prn_free(list);
    return true;
}

bool prn_document_rows_of(prn_document *d, const prn_document_table *table, prn_document_rows *out)
{
    const char *key;
    *out = (prn_document_rows){NULL, 0};
    const prn_json_value *value = prn_document_at(d, NULL, table->path, &key), *first;
    if (!value) return true;
    size_t count = 0;
    first = prn_json_first(value);
    if (!first) return true;
    const bool object = *prn_json_key(first) != '\0';
    for (const prn_json_value *row = first; row; row = prn_json_next(row)) count++;
    out->rows = prn_bump_alloc(&d->pool, count, sizeof(prn_json_value *));
    if (!out->rows) return false;
    if (object) {
        out->rows[out->count++] = value;
        return true;
    }
    for (const prn_json_value *row = first; row; row = prn_json_next(row)) out->rows[out->count++] = row;
    return !table->order || document_sort(d, table->order, out);
}

bool prn_document_has_column(prn_document *d, const prn_document_rows *rows, const prn_document_column *column)
{
    const char *key;
    for (size_t i = 0; i < rows->count; i++)
        if (document_holder(d, rows->rows[i], column->path, &key)) return true;
    return false;
}

/* ---- cells ---- */

/* One number as text. A metric's kind follows from the unit in its row. Shares from 1000 % on are cut to keep their
 * column; integers below 1e15 are exact, since a double holds them all. */
static const char *document_number_text(prn_document *d, const prn_json_value *row, prn_cell_kind kind, double value,
                                        prn_number_text text)
{
    if (kind == PRN_CELL_METRIC) {
        const char *unit = prn_document_text(d, row, "unit");
        kind = !unit                           ? PRN_CELL_COUNT
               : strcmp(unit, "ns") == 0       ? PRN_CELL_TIME
               : strcmp(unit, "B") == 0        ? PRN_CELL_BYTES
               : strcmp(unit, "fraction") == 0 ? PRN_CELL_SHARE
                                               : PRN_CELL_COUNT;
    }
    switch (kind) {
    case PRN_CELL_TIME:
        return prn_number_time(text, (int64_t)value, 4, " ");
    case PRN_CELL_BYTES:
        return prn_number_bytes(text, value, 4, " ");
    case PRN_CELL_SHARE:
        if (fabs(value) >= 10) return strcpy(text, value > 0 ? "> 999 %" : "< -999 %");
        prn_number_fixed(text, 100 * value, 1);
        return strcat(text, " %");
    case PRN_CELL_RATIO:
        return prn_number_fixed(text, value, 3);
    case PRN_CELL_NUMBER:
        if (floor(value) == value && fabs(value) < 1e15) return prn_number_fixed(text, value, 0);
        return fabs(value) < 0.001 ? prn_number_exact(text, value)
                                   : prn_number_fixed(text, value, fabs(value) < 10 ? 3 : 1);
    default:
        if (fabs(value) < 1) return value == 0 ? strcpy(text, "0") : prn_number_fixed(text, value, 4);
        return prn_number_si(text, value, 4, " ");
    }
}

static const char *document_signed(prn_document *d, const prn_json_value *row, prn_cell_kind kind, double value)
{
    prn_number_text text;
    const bool negative = value < 0 && (kind == PRN_CELL_TIME || kind == PRN_CELL_BYTES || kind == PRN_CELL_METRIC);
    const char *shown = document_number_text(d, row, kind, negative ? -value : value, text);
    const char *whole = prn_bump_printf(&d->pool, "%s%s", negative ? "-" : "", shown);
    return whole ? whole : document_no_memory(d);
}

static const char *document_interval(prn_document *d, const prn_json_value *row, prn_cell_kind kind,
                                     const prn_json_value *low)
{
    double ends[2];
    const prn_json_value *high = prn_json_next(low);
    if (!high || prn_json_is_null(low) || prn_json_is_null(high)) return "";
    if (!prn_json_element_double(&d->reader, low, "interval", &ends[0]) ||
        !prn_json_element_double(&d->reader, high, "interval", &ends[1]))
        return "";
    const char *from = document_signed(d, row, kind, ends[0]), *to = document_signed(d, row, kind, ends[1]);
    const char *whole = from && to ? prn_bump_printf(&d->pool, "%s to %s", from, to) : NULL;
    return whole ? whole : document_no_memory(d);
}

const char *prn_document_cell(prn_document *d, const prn_json_value *row, const prn_document_column *column)
{
    const char *key, *text = NULL;
    double number;
    bool flag;
    const prn_json_value *owner = document_holder(d, row, column->path, &key);
    if (!owner) return "";
    if (column->kind == PRN_CELL_TEXT)
        return prn_json_get_string(&d->reader, owner, key, false, &text) && text ? text : "";
    if (column->kind == PRN_CELL_FLAG)
        return !prn_json_get_bool(&d->reader, owner, key, false, &flag) ? "" : flag ? "yes" : "no";
    const prn_json_value *value = prn_document_at(d, row, column->path, &key);
    const prn_json_value *low = value ? prn_json_first(value) : NULL;
    if (low) return document_interval(d, row, column->kind, low);
    return prn_json_get_double(&d->reader, owner, key, false, &number) ? document_signed(d, row, column->kind, number)
                                                                       : "";
}

/* ---- JSON ---- */

int prn_document_collect(void *user, const char *data, size_t size)
{
    prn_document_json *json = user;
    if (!PRN_GROW(json->data, json->capacity, json->size + size + 1)) return -1;
    memcpy(json->data + json->size, data, size);
    json->size += size;
    json->data[json->size] = '\0';
    return 0;
}
