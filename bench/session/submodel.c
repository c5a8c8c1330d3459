/* Submodels. Uses at most three sessions: one that only resolves the model's inputs, one that runs up to the cut, and
 * the submodel's. Generated inputs depend on seed and name alone, so all of them have the same values. */
#include "bench/session/inputs.h"
#include "bench/process/interrupt.h"
#include "bench/session/submodel.h"

#include <stdlib.h>
#include <string.h>

bool is_submodel(const options *o)
{
    return o->model.from_count || o->model.to_count;
}

static bool submodel_has_input(const prony_model *model, const char *name)
{
    for (size_t i = 0; i < prony_model_input_count(model); i++)
        if (strcmp(prony_model_input(model, i)->name, name) == 0) return true;
    return false;
}

static bool is_cut(const options *o, const char *name)
{
    for (size_t i = 0; i < o->model.from_count; i++)
        if (strcmp(o->model.from[i], name) == 0) return true;
    return false;
}

/* Options for a submodel: the shapes in `settled` of the inputs that it kept, and -i for those. */
static int part_options(const options *o, const prony_model *part, prony_session *settled, model_options *out)
{
    prony_error error = {0};
    size_t count = prony_model_input_count(part);
    *out = o->model;
    out->dims = NULL;
    out->dim_count = 0;
    out->max_dims = NULL; /* the part's shapes are those of one run */
    out->max_dim_count = 0;
    out->batch = 0;
    out->shape_count = out->input_count = 0;
    out->shapes = calloc(count + 1, sizeof *out->shapes);
    out->inputs = calloc(o->model.input_count + 1, sizeof *out->inputs);
    if (!out->shapes || !out->inputs) return fail(o, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const char *name = prony_model_input(part, i)->name;
        prony_named_shape *shape = &out->shapes[out->shape_count];
        if (is_cut(o, name)) continue;
        if (prony_session_input_shape(settled, name, &shape->shape, &error) != PRONY_OK) return report_error(o, &error);
        shape->name = name;
        out->shape_count++;
    }
    for (size_t i = 0; i < o->model.input_count; i++)
        if (submodel_has_input(part, o->model.inputs[i].name)) out->inputs[out->input_count++] = o->model.inputs[i];
    return EXIT_DONE;
}

static int part_session(const options *o, prony_model *part, prony_session *settled, const prony_value *const *values,
                        bool profile, prony_session **session)
{
    prony_error error = {0};
    options own = *o;
    int code = part_options(o, part, settled, &own.model);
    prony_session_options s = session_options(&own);
    s.no_profile = !profile;
    if (code == EXIT_DONE && session_create(session, part, &s, &error) != PRONY_OK) code = report_error(o, &error);
    for (size_t k = 0; values && code == EXIT_DONE && k < o->model.from_count; k++)
        if (prony_session_set_input(*session, o->model.from[k], values[k], &error) != PRONY_OK)
            code = report_error(o, &error);
    if (code == EXIT_DONE) code = bind_inputs(&own, part, *session);
    free(own.model.shapes);
    free(own.model.inputs);
    return code;
}

static int make_part(const options *o, prony_model *whole, prony_model **part, const char *const *from,
                     size_t from_count, const char *const *to, size_t to_count, const prony_value *const *values)
{
    prony_error error = {0};
    prony_session_options s = session_options(o);
    prony_submodel p = PRONY_SUBMODEL_INIT;
    p.from = from;
    p.from_count = from_count;
    p.to = to;
    p.to_count = to_count;
    p.values = values;
    p.options = &s;
    interrupt_at_once(true);
    prony_status status = prony_model_extract(part, whole, &p, &error);
    interrupt_at_once(false);
    return status == PRONY_OK ? EXIT_DONE : report_session_error(o, whole, &error);
}

/* Runs up to --from; gives o->model.from_count values that live as long as *session. */
static int record_cut(const options *o, prony_model *whole, prony_session *settled, prony_model **model,
                      prony_session **session, const prony_value ***values)
{
    prony_error error = {0};
    options uncut = *o;
    uncut.model.from_count = 0;
    *values = calloc(o->model.from_count + 1, sizeof **values);
    int code = *values ? make_part(o, whole, model, NULL, 0, o->model.from, o->model.from_count, NULL)
                       : fail(o, "out of memory");
    if (code == EXIT_DONE) code = part_session(&uncut, *model, settled, NULL, false, session);
    if (code == EXIT_DONE && prony_session_run(*session, &error) != PRONY_OK) code = report_error(o, &error);
    for (size_t k = 0; code == EXIT_DONE && k < o->model.from_count; k++)
        if (prony_session_output(*session, k, &(*values)[k], &error) != PRONY_OK) code = report_error(o, &error);
    return code;
}

int open_submodel(const options *o, prony_model *whole, prony_model **part, prony_session **session, bool profile)
{
    prony_model *before = NULL;
    prony_session *settled = NULL, *recorded = NULL;
    const prony_value **values = NULL;
    int code = make_session(o, whole, &settled, false);
    if (code == EXIT_DONE && o->model.from_count) code = record_cut(o, whole, settled, &before, &recorded, &values);
    if (code == EXIT_DONE)
        code = make_part(o, whole, part, o->model.from, o->model.from_count, o->model.to, o->model.to_count, values);
    if (code == EXIT_DONE) code = part_session(o, *part, settled, values, profile, session);
    free(values);
    session_release(recorded);
    session_release(settled);
    prony_model_release(before);
    return code;
}
