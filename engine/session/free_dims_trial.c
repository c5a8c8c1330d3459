/* Tries sizes of open dimensions: infers shapes for several extents, without running or reading weights. A trial owns
 * its program only during the call. */
#include "base/shape.h"
#include "base/threads/cancel.h"
#include "engine/bind/names.h"
#include "engine/bind/program.h"
#include "engine/session/free_dims.h"
#include "loaders/onnx/declared.h"

#include <ctype.h>
#include <string.h>

/* Bounds of the trials; chosen without measurement. */
enum { MOST_TRIALS = 24, LARGEST_EXTENT = 1 << 16, MOST_DOUBLINGS = 5 };

/* The probable meaning of an open dimension; it only selects the tried examples. */
typedef enum role { ROLE_HEIGHT, ROLE_WIDTH, ROLE_SEQUENCE, ROLE_SAMPLES, ROLE_OTHER, ROLES } role;

typedef struct extents {
    int64_t of[ROLES];
} extents;

static bool named(const char *symbol, const char *word)
{
    size_t n = strlen(word);
    for (; symbol && *symbol; symbol++) {
        size_t k = 0;
        while (k < n && tolower((unsigned char)symbol[k]) == word[k]) k++;
        if (k == n) return true;
    }
    return false;
}

static role role_of(const prony_value_info *port, int axis)
{
    const char *symbol = port->dim_names[axis];
    int rank = port->shape.rank;
    const int64_t *dim = port->shape.dim;
    bool channels_last = rank >= 3 && dim[rank - 1] >= 1 && dim[rank - 1] <= 4;
    if (named(symbol, "height")) return ROLE_HEIGHT;
    if (named(symbol, "width")) return ROLE_WIDTH;
    if (named(symbol, "seq") || named(symbol, "token")) return ROLE_SEQUENCE;
    if (named(symbol, "sample") || named(symbol, "time")) return ROLE_SAMPLES;
    if (rank == 4 || (rank == 3 && (channels_last || dim[0] == 1 || dim[0] == 3))) {
        int width = channels_last ? rank - 2 : rank - 1;
        return axis == width ? ROLE_WIDTH : axis == width - 1 ? ROLE_HEIGHT : ROLE_OTHER;
    }
    if (rank == 3 && axis == 1 && dim[0] > 0 && dim[2] > 0)
        return ROLE_OTHER; /* the state of a recurrent layer: its batch */
    if (prn_dtype_is_integer(port->dtype)) return ROLE_SEQUENCE;
    return rank == 2 || rank == 3 ? ROLE_SAMPLES : ROLE_OTHER;
}

/* ---- one trial ---- */

typedef struct trial {
    const prony_model *model;
    const prony_shape *shapes; /* per input, with open dimensions */
    const prn_port *declared;
    size_t declared_count;
    prony_value *inputs;
} trial;

static void fill_inputs(trial *t, const extents *e)
{
    const prn_graph *graph = &t->model->file->graph;
    for (size_t i = 0; i < graph->input_count; i++) {
        const prony_value_info *port = &graph->inputs[i];
        t->inputs[i] = (prony_value){.kind = port->kind, .dtype = port->dtype, .shape = t->shapes[i]};
        for (int d = 0; d < t->shapes[i].rank; d++)
            if (t->shapes[i].dim[d] < 0) t->inputs[i].shape.dim[d] = e->of[role_of(port, d)];
    }
}

static bool agrees(const prn_port *declared, const prony_shape *shape)
{
    if (shape->rank != declared->shape.rank) return shape->rank < 0;
    for (int d = 0; d < shape->rank; d++)
        if (declared->shape.dim[d] >= 0 && shape->dim[d] >= 0 && declared->shape.dim[d] != shape->dim[d]) return false;
    return true;
}

static prony_status count_differences(const trial *t, const prn_program *program, uint64_t *out, prony_error *error)
{
    prn_names names = {0};
    bool enough = true;
    for (size_t v = 0; v < program->value_count && enough; v++)
        enough = prn_names_put(&names, program->values[v]->name, (uint32_t)v);
    for (size_t k = 0; k < t->declared_count && enough; k++) {
        uint32_t id;
        if (prn_names_get(&names, t->declared[k].name, &id))
            *out += !agrees(&t->declared[k], &program->values[id]->info.shape);
    }
    prn_names_free(&names);
    return enough ? PRONY_OK : prn_no_memory(error);
}

/* *misfits: UINT64_MAX if the shapes do not fit; else the number of misfit nodes in branches plus declared shapes that
 * differ. */
static prony_status try_extents(trial *t, const extents *e, uint64_t *misfits, prony_error *error)
{
    prony_error own = {0};
    prn_program *program = NULL;
    prn_bind_options bind = {
        .inputs = t->inputs, .input_count = t->model->file->graph.input_count, .static_only = true};
    fill_inputs(t, e);
    *misfits = UINT64_MAX;
    prony_status status = prn_program_bind(&program, t->model, &t->model->file->graph, NULL, NULL, &bind, &own);
    if (status == PRONY_OUT_OF_MEMORY) return prn_no_memory(error);
    if (status == PRONY_CANCELLED) return prn_cancel_check(error);
    if (status != PRONY_OK) return PRONY_OK;
    *misfits = program->misfits;
    status = count_differences(t, program, misfits, error);
    prn_program_release(program);
    return status;
}

static prony_status trial_begin(trial *t, const prony_model *model, const prony_shape *shapes, prony_error *error)
{
    *t = (trial){.model = model, .shapes = shapes};
    t->inputs = prn_calloc(model->file->graph.input_count + 1, sizeof *t->inputs);
    return t->inputs ? PRONY_OK : prn_no_memory(error);
}

/* ---- examples ---- */

prony_status prn_free_dims_example(prony_shape *shapes, const prony_model *model, prony_error *error)
{
    static const extents usual[] = {{{224, 224, 128, 16000, 1}}, {{256, 256, 512, 512, 1}}, {{320, 320, 64, 1536, 1}},
                                    {{640, 640, 256, 8000, 1}},  {{512, 512, 16, 256, 1}},  {{128, 128, 1, 128, 1}},
                                    {{48, 192, 32, 80, 2}},      {{48, 320, 77, 64, 4}},    {{64, 64, 1024, 32, 16}},
                                    {{32, 32, 8, 400, 64}},      {{28, 28, 2, 1, 128}}};
    trial t;
    uint64_t best = UINT64_MAX;
    prony_status status = trial_begin(&t, model, shapes, error);
    size_t chosen = 0;
    for (size_t i = 0; status == PRONY_OK && best > 0 && i < sizeof usual / sizeof *usual; i++) {
        uint64_t misfits;
        status = try_extents(&t, &usual[i], &misfits, error);
        if (status != PRONY_OK || misfits >= best) continue;
        best = misfits;
        chosen = i;
    }
    if (status == PRONY_OK && best < UINT64_MAX) {
        fill_inputs(&t, &usual[chosen]);
        for (size_t i = 0; i < model->file->graph.input_count; i++) shapes[i] = t.inputs[i].shape;
    }
    prn_free(t.inputs);
    return status;
}

/* ---- sizes implied by declared shapes ---- */

/* Roles of the open dimensions, as bits. */
static unsigned open_roles(const prony_shape *shapes, const prony_model *model)
{
    unsigned roles = 0;
    for (size_t i = 0; i < model->file->graph.input_count; i++)
        for (int d = 0; d < shapes[i].rank; d++)
            if (shapes[i].dim[d] < 0) roles |= 1u << role_of(&model->file->graph.inputs[i], d);
    return roles;
}

static bool add_candidate(extents *list, size_t *count, int64_t first, int64_t second)
{
    if (*count == MOST_TRIALS || first <= 0 || second <= 0 || first > LARGEST_EXTENT || second > LARGEST_EXTENT)
        return false;
    for (size_t i = 0; i < *count; i++)
        if (list[i].of[ROLE_HEIGHT] == first && list[i].of[ROLE_WIDTH] == second) return false;
    list[(*count)++] = (extents){{first, second, first, first, first}};
    return true;
}

/* Candidate extents: those of declared tensors, the earliest ones first, and their multiples by 2, because networks
 * halve extents. */
static size_t candidates(extents list[MOST_TRIALS], const trial *t, bool pairs)
{
    size_t count = 0;
    for (int shift = 0; shift <= MOST_DOUBLINGS; shift++) {
        for (size_t k = 0; k < t->declared_count && k < 8; k++) {
            const prony_shape *s = &t->declared[k].shape;
            for (int d = 1; d < s->rank; d++) {
                int64_t next = pairs && d + 1 < s->rank ? s->dim[d + 1] : s->dim[d];
                if (s->dim[d] > 1 && next > 1 && (!pairs || d + 1 < s->rank))
                    add_candidate(list, &count, s->dim[d] << shift, next << shift);
            }
        }
    }
    return count;
}

static prony_status resolve_implied(prn_input_shapes *s, const prony_model *model, const extents *e, prony_error *error)
{
    const prn_graph *graph = &model->file->graph;
    for (size_t i = 0; i < graph->input_count; i++) {
        const prony_value_info *port = &graph->inputs[i];
        for (int d = 0; d < s->shapes[i].rank; d++) {
            if (s->shapes[i].dim[d] >= 0) continue;
            int64_t value = e->of[role_of(port, d)];
            s->shapes[i].dim[d] = value;
            if (!PRN_GROW(s->assumed.items, s->assumed.capacity, s->assumed.count + 1)) return prn_no_memory(error);
            s->assumed.items[s->assumed.count++] = (prn_assumed){i, d, value, "declared shapes"};
            if (port->dim_names[d] && *port->dim_names[d])
                PRN_TRY(prn_dims_put(&s->dims, port->dim_names[d], value, model->file->name, port->name, error));
        }
    }
    s->open = 0;
    return PRONY_OK;
}

static prony_status imply(prn_input_shapes *s, trial *t, bool pairs, prony_error *error)
{
    extents list[MOST_TRIALS];
    size_t count = candidates(list, t, pairs), fitting = 0, found = 0, differing = 0;
    for (size_t i = 0; i < count && fitting < 2; i++) {
        uint64_t misfits;
        PRN_TRY(try_extents(t, &list[i], &misfits, error));
        if (misfits == 0) {
            fitting++;
            found = i;
        } else {
            differing++;
        }
    }
    if (fitting != 1) return PRONY_OK;
    /* If no declared shape depends on the dimension, any size would fit. */
    extents other = list[found];
    uint64_t misfits = 1;
    for (int r = 0; r < ROLES; r++) other.of[r] *= 2;
    PRN_TRY(try_extents(t, &other, &misfits, error));
    return misfits > 0 && (differing || misfits != UINT64_MAX) ? resolve_implied(s, t->model, &list[found], error)
                                                               : PRONY_OK;
}

prony_status prn_free_dims_imply(prn_input_shapes *s, const prony_model *model, prony_error *error)
{
    unsigned roles = open_roles(s->shapes, model), image = 1u << ROLE_HEIGHT | 1u << ROLE_WIDTH;
    bool pairs = roles == image;
    if (!pairs && (roles & (roles - 1)) != 0) return PRONY_OK; /* several unknowns of different kinds */
    prn_bump pool = {0};
    trial t;
    prony_status status = trial_begin(&t, model, s->shapes, error);
    if (status == PRONY_OK) status = prn_declared_values(model->file, &pool, &t.declared, &t.declared_count, error);
    if (status == PRONY_OK && t.declared_count) status = imply(s, &t, pairs, error);
    prn_bump_release(&pool);
    prn_free(t.inputs);
    return status;
}
