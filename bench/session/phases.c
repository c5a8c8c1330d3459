/* Preprocessing and postprocessing of run and profile. A `phases` owns its rows and names. The report has the times,
 * because images are decoded and classes ranked around every measured run. */
#include "bench/session/inputs.h"
#include "bench/session/phases.h"

#include <stdlib.h>
#include <string.h>

static prony_status bind_images(void *user, prony_session *session, prony_error *error)
{
    const phases *p = user;
    prony_status status = PRONY_OK;
    for (size_t i = 0; i < p->o->model.input_count && status == PRONY_OK; i++) {
        const named_file *in = &p->o->model.inputs[i];
        prony_value *value = NULL;
        if (!prony_image_is_file(in->file)) continue;
        status = load_image(p->o, session, in->name, in->file, &value, error);
        if (status == PRONY_OK) status = prony_session_set_input(session, in->name, value, error);
        prony_value_release(value);
    }
    return status;
}

/* Room for `samples` times topk rows. */
static bool phases_reserve(phases *p, int64_t samples)
{
    if (samples == p->samples) return true;
    size_t count = (size_t)samples;
    prony_class_row *rows = reallocarray(p->rows, count * (size_t)p->o->shown.topk, sizeof *rows);
    if (rows) p->rows = rows;
    size_t *found = reallocarray(p->found, count, sizeof *found);
    if (found) p->found = found;
    p->samples = rows && found ? samples : 0;
    return rows && found;
}

static prony_status rank_classes(void *user, prony_session *session, prony_error *error)
{
    phases *p = user;
    const prony_value *output;
    prony_status status = prony_session_output(session, 0, &output, error);
    if (status != PRONY_OK) return status;
    int64_t samples = output->kind == PRONY_TENSOR && output->shape.rank > 1 ? output->shape.dim[0] : 1;
    if (!phases_reserve(p, samples)) return PRONY_OUT_OF_MEMORY;
    size_t k = (size_t)p->o->shown.topk;
    for (int64_t i = 0; i < samples && status == PRONY_OK; i++)
        status = prony_top_classes(p->rows + (size_t)i * k, k, &p->found[i], output, i, error);
    return status;
}

int phases_begin(phases *p, const options *o, const prony_model *model, prony_profile_options *profile)
{
    prony_error error = {0};
    *p = (phases){.o = o, .model = model};
    profile->phase_user = p;
    for (size_t i = 0; i < o->model.input_count; i++)
        if (prony_image_is_file(o->model.inputs[i].file)) profile->preprocess = bind_images;
    if (o->shown.topk) profile->postprocess = rank_classes;
    if (o->shown.labels && !o->shown.topk) {
        fail(o, "--labels needs --topk N");
        return EXIT_USAGE;
    }
    if (!o->shown.labels) return EXIT_DONE;
    return prony_labels_load(&p->labels, &p->label_count, o->shown.labels, &error) == PRONY_OK
               ? EXIT_DONE
               : report_error(o, &error);
}

void phases_print(const phases *p)
{
    size_t k = (size_t)p->o->shown.topk;
    if (!k) return;
    for (int64_t i = 0; i < p->samples; i++) {
        if (p->samples > 1) printf("sample %lld\n", (long long)i);
        for (size_t r = 0; r < p->found[i]; r++) {
            const prony_class_row *row = &p->rows[(size_t)i * k + r];
            printf("%4zu.  %6.2f %%  score %-11.6g  class %lld", r + 1, row->probability * 100, row->score,
                   (long long)row->index);
            if ((size_t)row->index < p->label_count) {
                fputs("  ", stdout);
                put_text(stdout, p->labels[row->index].name);
            }
            putchar('\n');
        }
    }
}

void phases_end(phases *p)
{
    free(p->rows);
    free(p->found);
    prony_rows_release(p->labels);
    *p = (phases){0};
}
