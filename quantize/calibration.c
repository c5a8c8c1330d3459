/* Calibrations: rows by name, and the file. Nothing in a file is trusted. */
#include "quantize/calibration.h"

#include "base/os/file.h"
#include "profiler/json/json_read.h"
#include "profiler/json/json_write.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "prony.calibration/1"

static const char *const methods[] = {[PRONY_CALIBRATE_MINMAX] = "minmax",
                                      [PRONY_CALIBRATE_PERCENTILE] = "percentile",
                                      [PRONY_CALIBRATE_ENTROPY] = "entropy"};
enum { METHODS = sizeof methods / sizeof *methods };

const char *prony_calibration_method_name(prony_calibration_method method)
{
    return (unsigned)method < METHODS ? methods[method] : "";
}

bool prony_calibration_method_find(prony_calibration_method *out, const char *name)
{
    for (unsigned i = 0; name && i < METHODS; i++) {
        if (strcmp(methods[i], name) != 0) continue;
        *out = (prony_calibration_method)i;
        return true;
    }
    return false;
}

void prony_calibration_release(prony_calibration *c)
{
    if (!c) return;
    prn_bump_release(&c->pool);
    prn_free(c);
}

int64_t prony_calibration_samples(const prony_calibration *c)
{
    return c ? c->samples : 0;
}

size_t prony_calibration_count(const prony_calibration *c)
{
    return c ? c->count : 0;
}

/* ---- rows ---- */

static int calibration_by_name(const void *a, const void *b)
{
    return strcmp(((const prn_calibrated *)a)->name, ((const prn_calibrated *)b)->name);
}

void prn_calibration_sort(prony_calibration *c)
{
    if (c->count) qsort(c->rows, c->count, sizeof *c->rows, calibration_by_name);
}

const prn_calibrated *prn_calibration_find(const prony_calibration *c, const char *name)
{
    const prn_calibrated key = {.name = name};
    return c->count ? bsearch(&key, c->rows, c->count, sizeof *c->rows, calibration_by_name) : NULL;
}

void prn_calibrated_resolve(prn_calibrated *row)
{
    const double span = row->high - row->low;
    row->scale = (double)(float)(span / 255);
    if (row->scale < (double)FLT_MIN) row->scale = span > 0 ? (double)FLT_MIN : 1; /* all zeros: any scale does */
    row->zero_point = (int64_t)fmin(fmax(rint(-row->low / row->scale), 0), 255);
}

prony_status prn_calibration_check(const prony_calibration *c, const prony_model *model, prony_error *error)
{
    char here[65];
    prn_model_hash(model->file, here);
    if (strcmp(here, c->sha256) == 0) return PRONY_OK;
    return prn_fail(error, PRONY_INVALID_ARGUMENT,
                    "%.300s: the calibration belongs to another model (sha256 %.12s…, this one has %.12s…)",
                    c->file ? c->file : model->file->name, c->sha256, here);
}

/* ---- the file ---- */

/* The file appears complete or not at all: prn_file_commit renames it if every write succeeded. */
prony_status prony_calibration_save(const prony_calibration *c, const char *path, prony_error *error)
{
    prn_file_writer *writer;
    if (!c || !path) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_calibration_save: an argument is NULL");
    PRN_TRY(prn_file_create(&writer, path, error));
    prn_json *json = prn_json_dated_document(SCHEMA, prn_file_write, writer, error);
    if (!json) {
        prn_file_abandon(writer);
        return prn_no_memory(error);
    }
    prn_json_string(json, "model_sha256", c->sha256);
    prn_json_string(json, "method", prony_calibration_method_name(c->method));
    prn_json_int(json, "samples", c->samples);
    prn_json_open(json, "values", '[', false);
    for (size_t i = 0; i < c->count; i++) {
        prn_json_open(json, NULL, '{', true);
        prn_json_string(json, "name", c->rows[i].name);
        prn_json_double(json, "low", c->rows[i].low);
        prn_json_double(json, "high", c->rows[i].high);
        prn_json_double(json, "scale", c->rows[i].scale);
        prn_json_int(json, "zero_point", c->rows[i].zero_point);
        prn_json_close(json, '}');
    }
    prn_json_close(json, ']');
    /* A disk that is full shows at the commit too, which names the file. */
    prony_status status = prn_json_finish(json), committed = prn_file_commit(writer, error);
    return committed != PRONY_OK ? committed : status;
}

static void calibration_read_row(prn_json_reader *j, const prn_json_value *object, prn_calibrated *row)
{
    if (!prn_json_get_string(j, object, "name", true, &row->name)) return;
    prn_json_get_double(j, object, "low", true, &row->low);
    prn_json_get_double(j, object, "high", true, &row->high);
    prn_json_get_double(j, object, "scale", true, &row->scale);
    prn_json_get_i64(j, object, "zero_point", true, &row->zero_point);
    if (j->status != PRONY_OK) return;
    if (!(row->low <= row->high) || !isfinite(row->low) || !isfinite(row->high))
        prn_json_bad(j, "low", "the range of '%.100s' is %g to %g", row->name, row->low, row->high);
    else if (!((float)row->scale >= FLT_MIN) || !isfinite((float)row->scale))
        prn_json_bad(j, "scale", "the scale of '%.100s' is %g, wanted a positive float32", row->name, row->scale);
    else if (row->zero_point < 0 || row->zero_point > 255)
        prn_json_bad(j, "zero_point", "the zero point of '%.100s' is %lld, wanted 0 to 255", row->name,
                     (long long)row->zero_point);
    row->scale = (double)(float)row->scale;
}

static void calibration_read_rows(prn_json_reader *j, const prn_json_value *root, prony_calibration *c)
{
    size_t count = 0;
    const prn_json_value *rows = prn_json_get_array(j, root, "values", true, &count);
    if (!rows) return;
    if (count == 0) prn_json_bad(j, "values", "it has no ranges");
    c->rows = prn_json_room(j, count, sizeof *c->rows);
    for (const prn_json_value *row = prn_json_first(rows); row && c->rows && j->status == PRONY_OK;
         row = prn_json_next(row))
        if (prn_json_element_is_object(j, row, "values")) calibration_read_row(j, row, &c->rows[c->count++]);
    if (j->status != PRONY_OK) return;
    prn_calibration_sort(c);
    for (size_t i = 1; i < c->count; i++)
        if (strcmp(c->rows[i - 1].name, c->rows[i].name) == 0) {
            prn_json_bad(j, "values", "'%.100s' appears twice", c->rows[i].name);
            return;
        }
}

static prony_status calibration_read_file(prony_calibration *c, const char *path, const prn_map *map,
                                          prony_error *error)
{
    prn_json_value *root;
    const char *schema = NULL, *hash = NULL, *method = NULL;
    PRN_TRY(prn_json_document_parse(&root, path, (const char *)map->data, map->size, error));
    prn_json_reader reader = {.pool = &c->pool, .file = path, .error = error}, *j = &reader;
    if (prn_json_get_string(j, root, "schema", true, &schema) && strcmp(schema, SCHEMA) != 0)
        prn_json_bad(j, "schema", "found \"%.60s\", wanted \"" SCHEMA "\"", schema);
    if (prn_json_get_string(j, root, "model_sha256", true, &hash) && strlen(hash) != 64)
        prn_json_bad(j, "model_sha256", "\"%.80s\" is not a SHA-256", hash);
    if (prn_json_get_string(j, root, "method", true, &method) && !prony_calibration_method_find(&c->method, method))
        prn_json_bad(j, "method", "unknown method \"%.40s\"; known: minmax, percentile or entropy", method);
    if (prn_json_get_i64(j, root, "samples", true, &c->samples) && c->samples < 1)
        prn_json_bad(j, "samples", "%lld", (long long)c->samples);
    if (j->status == PRONY_OK) memcpy(c->sha256, hash, sizeof c->sha256);
    if (j->status == PRONY_OK) calibration_read_rows(j, root, c);
    prn_json_document_release(root);
    return j->status;
}

prony_status prony_calibration_load(prony_calibration **out, const char *path, prony_error *error)
{
    prn_map map;
    if (!out || !path) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_calibration_load: an argument is NULL");
    PRN_TRY(prn_map_open(&map, path, error));
    prony_calibration *c = prn_calloc(1, sizeof *c);
    prony_status status = c ? PRONY_OK : prn_no_memory(error);
    if (c) c->file = prn_bump_strndup(&c->pool, path, strlen(path));
    if (status == PRONY_OK) status = c->file ? calibration_read_file(c, path, &map, error) : prn_no_memory(error);
    prn_map_close(&map);
    if (status == PRONY_OK)
        *out = c;
    else
        prony_calibration_release(c);
    return status;
}
