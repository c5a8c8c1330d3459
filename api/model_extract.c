/* prony_model_extract and prony_model_extract_save. Types that the file does not declare come from a static bind, which
 * is made when the first one is asked for. */
#include "base/os/file.h"
#include "base/option_struct.h"
#include "engine/session/static_types.h"
#include "loaders/onnx/graph_submodel.h"

#include <stdio.h>
#include <string.h>

typedef struct typing {
    prony_model *model;
    const prony_session_options *options;
    prn_program *program;
} typing;

static prony_status model_part_type_of(void *user, const char *name, prony_value *out, prony_error *error)
{
    typing *t = user;
    if (!t->program) PRN_TRY(prn_static_types(&t->program, t->model, t->options, error));
    for (size_t v = 0; v < t->program->value_count; v++) {
        if (strcmp(t->program->values[v]->name, name) != 0) continue;
        const prony_value *info = &t->program->values[v]->info;
        *out = (prony_value){.kind = info->kind, .dtype = info->dtype, .shape = info->shape};
        return PRONY_OK;
    }
    return PRONY_OK;
}

static prony_status model_part_write(uint8_t **data, size_t *size, prony_model *model, const prony_submodel *part,
                                     prony_error *error)
{
    prony_submodel own = PRONY_SUBMODEL_INIT;
    PRN_TRY(prn_options_read(&own, sizeof own, part, "part", error));
    part = &own;
    typing t = {.model = model, .options = part->options};
    prn_submodel p = {.from = part->from,
                      .to = part->to,
                      .from_count = part->from_count,
                      .to_count = part->to_count,
                      .values = part->values,
                      .type_of = model_part_type_of,
                      .user = &t};
    prn_budget *former = prn_budget_enter(model->budget);
    prony_status status = prn_part_write(data, size, model->file, &p, error);
    if (status == PRONY_LIMIT && error && !strstr(error->message, model->file->name))
        prn_error_prefix(error, "%s", model->file->name);
    prn_program_release(t.program);
    prn_budget_enter(former);
    return status;
}

prony_status prony_model_extract(prony_model **out, prony_model *model, const prony_submodel *part, prony_error *error)
{
    if (!out || !model || !part)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_model_extract: an argument is NULL");
    uint8_t *data = NULL;
    size_t size = 0;
    prony_model_options options = PRONY_MODEL_OPTIONS_INIT;
    options.registry = model->registry;
    PRN_TRY(model_part_write(&data, &size, model, part, error));
    const size_t name_bytes = strlen(model->file->name) + sizeof " (part)";
    char *name = prn_alloc(name_bytes);
    if (name) snprintf(name, name_bytes, "%s (part)", model->file->name);
    prony_status status = name ? prony_model_load_memory(out, name, data, size, &options, error) : prn_no_memory(error);
    prn_free(name);
    if (status == PRONY_OK)
        (*out)->owned = data;
    else
        prn_free(data);
    return status;
}

prony_status prony_model_extract_save(prony_model *model, const prony_submodel *part, const char *path,
                                      prony_error *error)
{
    if (!model || !part || !path)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_model_extract_save: an argument is NULL");
    uint8_t *data = NULL;
    size_t size = 0;
    prn_file_writer *writer = NULL;
    PRN_TRY(model_part_write(&data, &size, model, part, error));
    prony_status status = prn_file_create(&writer, path, error);
    if (status == PRONY_OK) {
        (void)prn_file_write(writer, (const char *)data, size); /* a failure shows at the commit */
        status = prn_file_commit(writer, error);
    }
    prn_free(data);
    return status;
}
