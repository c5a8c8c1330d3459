/* Datasets of files with one sample each: folders per class, or a list of files and labels. A sample is
 * read when it is used; names and labels are resolved here. */
#include "evaluate/dataset.h"

#include "base/os/folder.h"
#include "base/shape.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- labels ---- */

static bool dataset_files_whole_number(const char *text, int64_t *out)
{
    int64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && at - text < 10; at++) value = 10 * value + (*at - '0');
    *out = value;
    return at > text && !*at;
}

static bool first_word_is(const char *line, const char *word)
{
    size_t length = strlen(word);
    return strncmp(line, word, length) == 0 && (line[length] == ' ' || line[length] == '\t');
}

/* A class by its name or number. */
static prony_status find_class(int64_t *out, const prony_dataset *data, const char *label, prony_error *error)
{
    const prn_text_lines *classes = &data->classes;
    *out = 0;
    if (data->unlabelled) return PRONY_OK;
    for (size_t i = 0; i < classes->count; i++) {
        if (strcmp(classes->lines[i], label) != 0) continue;
        *out = (int64_t)i;
        return PRONY_OK;
    }
    if (dataset_files_whole_number(label, out)) return PRONY_OK;
    for (size_t i = 0; i < classes->count; i++) {
        if (!first_word_is(classes->lines[i], label)) continue;
        *out = (int64_t)i;
        return PRONY_OK;
    }
    if (classes->count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "unknown class '%.100s'; %zu classes are named", label,
                        classes->count);
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "'%.100s' is not a class number, and no class names are given",
                    label);
}

static prony_status dataset_files_reserve(prony_dataset *data, size_t count, int64_t **labels, prony_error *error)
{
    if (count == 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "no samples: wanted .npy, .png, .jpg or .jpeg files");
    data->files = prn_bump_alloc(&data->pool, count, sizeof *data->files);
    data->labels = prn_calloc(1, sizeof *data->labels);
    if (!data->files || !data->labels) return prn_no_memory(error);
    *data->labels = (prony_value){.dtype = PRONY_INT64, .shape = {1, {(int64_t)count}}};
    data->labels->data = prn_alloc_aligned(64, count * sizeof **labels);
    *labels = data->labels->data;
    data->count = (int64_t)count;
    return *labels ? PRONY_OK : prn_no_memory(error);
}

static bool is_sample(const prn_folder_entry *entry)
{
    const char *dot = strrchr(entry->name, '.');
    return !entry->folder && dot && (strcasecmp(dot, ".npy") == 0 || prn_image_name(entry->name));
}

/* Entries that are samples, in their order, to the front. */
static size_t dataset_files_keep_samples(prn_folder *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (is_sample(&list->entries[i])) list->entries[kept++] = list->entries[i];
    return kept;
}

/* ---- folders per class ---- */

typedef struct class_folder {
    const char *path;
    int64_t label;
    prn_folder list;
    size_t samples;
} class_folder;

static bool all_numbers(const prn_folder *list)
{
    int64_t number;
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].folder && !dataset_files_whole_number(list->entries[i].name, &number)) return false;
    return true;
}

static prony_status read_class(prony_dataset *data, prn_bump *pool, class_folder *c, const char *path, const char *name,
                               bool numbers, int64_t order, prony_error *error)
{
    c->path = prn_bump_printf(pool, "%s/%s", path, name);
    if (!c->path) return prn_no_memory(error);
    c->label = order;
    if (numbers || data->classes.count) PRN_TRY(find_class(&c->label, data, name, error));
    PRN_TRY(prn_folder_read(&c->list, pool, c->path, error));
    c->samples = dataset_files_keep_samples(&c->list);
    if (c->samples == 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "'%.400s': no samples: wanted .npy, .png, .jpg or .jpeg files",
                        c->path);
    return PRONY_OK;
}

static prony_status dataset_files_read_classes(prony_dataset *data, prn_bump *pool, const char *path,
                                               const prn_folder *folders, prony_error *error)
{
    class_folder *classes = prn_bump_alloc(pool, folders->count + 1, sizeof *classes);
    size_t count = 0, samples = 0, at = 0;
    int64_t *labels = NULL;
    bool numbers = all_numbers(folders);
    if (!classes) return prn_no_memory(error);
    for (size_t i = 0; i < folders->count; i++) {
        if (!folders->entries[i].folder) continue;
        class_folder *c = &classes[count];
        PRN_TRY(read_class(data, pool, c, path, folders->entries[i].name, numbers, (int64_t)count, error));
        samples += c->samples;
        count++;
    }
    PRN_TRY(dataset_files_reserve(data, samples, &labels, error));
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < classes[i].samples; k++, at++) {
            data->files[at] = prn_bump_printf(&data->pool, "%s/%s", classes[i].path, classes[i].list.entries[k].name);
            if (!data->files[at]) return prn_no_memory(error);
            labels[at] = classes[i].label;
        }
    }
    return PRONY_OK;
}

/* ---- lists ---- */

/* Lines of a label alone: one for each of the folder's samples. */
static prony_status match_order(prony_dataset *data, const char *folder, const prn_label_list *rows, int64_t *labels,
                                const char *list_path, prony_error *error)
{
    prn_folder list;
    PRN_TRY(prn_folder_read(&list, &data->pool, folder, error));
    size_t samples = dataset_files_keep_samples(&list);
    if (samples != rows->count)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "'%.400s' has %zu labels for %zu files", list_path, rows->count,
                        samples);
    for (size_t i = 0; i < rows->count; i++) {
        data->files[i] = prn_bump_printf(&data->pool, "%s/%s", folder, list.entries[i].name);
        if (!data->files[i]) return prn_no_memory(error);
        PRN_TRY(find_class(&labels[i], data, rows->rows[i].label, error));
    }
    return PRONY_OK;
}

static prony_status match_rows(prony_dataset *data, const char *folder, const prn_label_list *rows, int64_t *labels,
                               const char *list_path, prony_error *error)
{
    for (size_t i = 0; i < rows->count; i++) {
        const prn_label_row *row = &rows->rows[i];
        if (!row->file)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "'%.400s': line %zu names no file, but others do", list_path,
                            row->line);
        data->files[i] = row->file[0] == '/' ? row->file : prn_bump_printf(&data->pool, "%s/%s", folder, row->file);
        if (!data->files[i]) return prn_no_memory(error);
        prony_status status = find_class(&labels[i], data, row->label, error);
        if (status != PRONY_OK) {
            prn_error_prefix(error, "'%.400s': line %zu", list_path, row->line);
            return status;
        }
    }
    return PRONY_OK;
}

static prony_status dataset_files_read_rows(prony_dataset *data, const char *folder, const char *list_path,
                                            prony_error *error)
{
    prn_label_list rows;
    int64_t *labels = NULL;
    bool alone = true;
    PRN_TRY(prn_label_list_read(&rows, &data->pool, list_path, error));
    for (size_t i = 0; i < rows.count; i++) alone = alone && !rows.rows[i].file;
    PRN_TRY(dataset_files_reserve(data, rows.count, &labels, error));
    for (size_t i = 0; alone && data->unlabelled && i < rows.count; i++) rows.rows[i].file = rows.rows[i].label;
    return alone && !data->unlabelled ? match_order(data, folder, &rows, labels, list_path, error)
                                      : match_rows(data, folder, &rows, labels, list_path, error);
}

prony_status prn_dataset_read_list(prony_dataset *data, const char *path, prony_error *error)
{
    const char *slash = strrchr(path, '/');
    const char *folder = slash ? prn_bump_strndup(&data->pool, path, (size_t)(slash - path) + (slash == path)) : ".";
    return folder ? dataset_files_read_rows(data, folder, path, error) : prn_no_memory(error);
}

/* A folder's own files, without labels. */
static prony_status dataset_files_read(prony_dataset *data, const char *path, prn_folder *list, prony_error *error)
{
    int64_t *labels = NULL;
    PRN_TRY(dataset_files_reserve(data, dataset_files_keep_samples(list), &labels, error));
    for (int64_t i = 0; i < data->count; i++) {
        labels[i] = 0;
        data->files[i] = prn_bump_printf(&data->pool, "%s/%s", path, list->entries[i].name);
        if (!data->files[i]) return prn_no_memory(error);
    }
    return PRONY_OK;
}

static prony_status read_folder(prony_dataset *data, prn_bump *pool, const char *path, prony_error *error)
{
    static const char *const lists[] = {"labels.csv", "labels.txt"};
    prn_folder list;
    PRN_TRY(prn_folder_read(&list, pool, path, error));
    for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
        for (size_t i = 0; i < list.count; i++) {
            if (list.entries[i].folder || strcmp(list.entries[i].name, lists[k]) != 0) continue;
            const char *list_path = prn_bump_printf(pool, "%s/%s", path, lists[k]);
            return list_path ? dataset_files_read_rows(data, path, list_path, error) : prn_no_memory(error);
        }
    }
    for (size_t i = 0; i < list.count; i++)
        if (list.entries[i].folder) return dataset_files_read_classes(data, pool, path, &list, error);
    if (data->unlabelled) return dataset_files_read(data, path, &list, error);
    return prn_fail(error, PRONY_INVALID_ARGUMENT,
                    "no labels: wanted labels.npy, labels.csv, labels.txt or a folder per class");
}

prony_status prn_dataset_read_folder(prony_dataset *data, const char *path, prony_error *error)
{
    prn_bump pool = {0};
    prony_status status = read_folder(data, &pool, path, error);
    prn_bump_release(&pool);
    return status;
}
