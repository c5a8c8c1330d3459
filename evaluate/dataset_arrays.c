/* Datasets of arrays: an .npz, or a folder of .npy files, with the same rules for names. Arrays that no input wants are
 * not read. */
#include "evaluate/dataset.h"

#include "base/os/folder.h"
#include "loaders/tensors/npz.h"
#include "loaders/tensors/tensor_file.h"

#include <stdio.h>
#include <string.h>

/* Either of the two; names live in the pool or in the archive. */
typedef struct array_source {
    prn_npz *npz;
    const char *folder;
    const char **names;
    size_t count;
    prn_bump pool;
} array_source;

static const char *const label_names[] = {"labels", "label", "y", "targets", "target", "y_test", "arr_1", NULL};
static const char *const input_names[] = {"x", "images", "image", "inputs", "input", "data", "x_test", "arr_0", NULL};

static prony_status dataset_arrays_list_folder(array_source *s, prony_error *error)
{
    prn_folder list;
    PRN_TRY(prn_folder_read(&list, &s->pool, s->folder, error));
    s->names = prn_bump_alloc(&s->pool, list.count + 1, sizeof *s->names);
    if (!s->names) return prn_no_memory(error);
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.entries[i].name;
        size_t length = strlen(name);
        if (list.entries[i].folder || length <= 4 || strcmp(name + length - 4, ".npy") != 0) continue;
        s->names[s->count] = prn_bump_strndup(&s->pool, name, length - 4);
        if (!s->names[s->count++]) return prn_no_memory(error);
    }
    return PRONY_OK;
}

static prony_status list_archive(array_source *s, const char *path, prony_error *error)
{
    PRN_TRY(prn_npz_open(&s->npz, path, error));
    s->count = prn_npz_count(s->npz);
    s->names = prn_bump_alloc(&s->pool, s->count + 1, sizeof *s->names);
    if (!s->names) return prn_no_memory(error);
    for (size_t i = 0; i < s->count; i++) s->names[i] = prn_npz_name(s->npz, i);
    return PRONY_OK;
}

static prony_status read_array(prony_value **out, array_source *s, size_t index, prony_error *error)
{
    if (s->npz) return prn_npz_read(out, s->npz, index, error);
    const char *path = prn_bump_printf(&s->pool, "%s/%s.npy", s->folder, s->names[index]);
    return path ? prn_value_file_load(out, path, PRONY_TENSOR, error) : prn_no_memory(error);
}

/* SIZE_MAX: none. */
static size_t dataset_arrays_find(const array_source *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->names[i], name) == 0) return i;
    return SIZE_MAX;
}

static size_t find_any(const array_source *s, const char *const *names, size_t but)
{
    for (; *names; names++) {
        size_t index = dataset_arrays_find(s, *names);
        if (index != SIZE_MAX && index != but) return index;
    }
    return SIZE_MAX;
}

static prony_status nothing_for(const array_source *s, const char *what, prony_error *error)
{
    char names[512] = "none";
    size_t used = 0;
    for (size_t i = 0; i < s->count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", i ? ", " : "", s->names[i]);
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "no array is %s; found: %s", what, names);
}

/* The array of the model's only input, where none has its name. */
static size_t only_array(const array_source *s, size_t labels)
{
    size_t index = find_any(s, input_names, labels);
    if (index == SIZE_MAX && labels == SIZE_MAX && s->count == 1) index = 0;
    if (index == SIZE_MAX && labels != SIZE_MAX && s->count == 2) index = 1 - labels;
    return index;
}

static prony_status read_inputs(prony_dataset *data, array_source *s, const prony_model *model, size_t labels,
                                prony_error *error)
{
    size_t inputs = prony_model_input_count(model);
    for (size_t i = 0; i < inputs; i++) {
        const char *name = prony_model_input(model, i)->name;
        size_t index = dataset_arrays_find(s, name);
        prony_value *value = NULL;
        if (index == labels) index = SIZE_MAX;
        if (index == SIZE_MAX && inputs == 1) index = only_array(s, labels);
        if (index == SIZE_MAX) continue;
        PRN_TRY(read_array(&value, s, index, error));
        PRN_TRY(prn_dataset_add_array(data, model, i, s->names[index], value, error));
    }
    if (data->array_count) return PRONY_OK;
    char what[200];
    snprintf(what, sizeof what, "for input '%.100s'", inputs ? prony_model_input(model, 0)->name : "");
    return nothing_for(s, what, error);
}

static prony_status dataset_arrays_read_source(prony_dataset *data, array_source *s, const prony_model *model,
                                               prony_error *error)
{
    size_t labels = find_any(s, label_names, SIZE_MAX);
    prony_value *value = NULL;
    if (labels == SIZE_MAX && data->unlabelled) return read_inputs(data, s, model, labels, error);
    if (labels == SIZE_MAX) return nothing_for(s, "called labels, label, y, targets, target, y_test or arr_1", error);
    PRN_TRY(read_array(&value, s, labels, error));
    PRN_TRY(prn_dataset_set_labels(data, value, error));
    return read_inputs(data, s, model, labels, error);
}

prony_status prn_dataset_read_arrays(prony_dataset *data, const char *path, const prony_model *model,
                                     prony_error *error)
{
    bool folder = prn_is_folder(path);
    array_source source = {.folder = folder ? path : NULL};
    prony_status status = folder ? dataset_arrays_list_folder(&source, error) : list_archive(&source, path, error);
    if (status == PRONY_OK) status = dataset_arrays_read_source(data, &source, model, error);
    prn_npz_close(source.npz);
    prn_bump_release(&source.pool);
    return status;
}
