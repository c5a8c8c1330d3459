/* One plan for extents that change from run to run. The program is bound at extents that occur nowhere else in the
 * model, planned at the largest ones, and adapted to those of each run (engine/bind/dynamic_dims.h,
 * engine/plan/respecialize.c). */
#include "base/os/clock.h"
#include "engine/plan/planner.h"
#include "engine/rewrites/rewrite.h"
#include "engine/session/session.h"

#include <string.h>

/* ---- which dimensions ---- */

prony_status prn_open_dims_find(prony_session *session, prony_error *error)
{
    const prony_session_options *options = &session->options;
    const prn_graph *graph = &session->model->file->graph;
    size_t most = 1;
    for (size_t i = 0; i < session->input_count; i++)
        most += (size_t)(graph->inputs[i].shape.rank > 0 ? graph->inputs[i].shape.rank : 0);
    if (!options->max_dim_count) return PRONY_OK;
    session->open_dims = prn_bump_alloc(&session->pool, most, sizeof *session->open_dims);
    if (!session->open_dims) return prn_no_memory(error);
    for (size_t i = 0; i < session->input_count; i++) {
        const prony_value_info *port = &graph->inputs[i];
        for (int d = 0; port->kind == PRONY_TENSOR && d < port->shape.rank; d++) {
            size_t o = 0;
            while (o < options->max_dim_count && !prn_free_dim_is(port, d, options->max_dims[o].name)) o++;
            if (o < options->max_dim_count)
                session->open_dims[session->open_count++] =
                    (prn_open_dim){.input = i, .axis = d, .option = o, .most = options->max_dims[o].value};
        }
    }
    return PRONY_OK;
}

/* Makes the other growth's dimensions and plan those of the session. */
static void open_plan_swap(prony_session *session)
{
    const prn_parked_growth other = session->parked;
    session->parked = (prn_parked_growth){session->open_dims, session->grown_count,  session->options.max_dims,
                                          session->open,      session->open_settled, session->open_refused};
    session->open_dims = other.dims;
    session->grown_count = other.count;
    session->options.max_dims = other.option;
    session->options.max_dim_count = other.option ? 1 : 0;
    session->open = other.open;
    session->open_settled = other.settled;
    session->open_refused = other.refused;
    session->growth = session->growth == PRN_GROWTH_STEP ? PRN_GROWTH_CHUNK : PRN_GROWTH_STEP;
    if (session->current == &session->open) session->current = NULL;
}

prony_status prn_session_grow(prony_session *session, prn_growth growth, const prn_open_dim *dims, size_t count,
                              int64_t most, prony_error *error)
{
    if (session->growth != growth) open_plan_swap(session);
    prn_cached_release(&session->open);
    if (session->current == &session->open) session->current = NULL;
    session->open_settled = session->open_refused = false;
    prn_open_dim *own = prn_bump_alloc(&session->pool, count + 1, sizeof *own);
    prony_dim *option = prn_bump_alloc(&session->pool, 1, sizeof *option);
    if (!own || !option) return prn_no_memory(error);
    for (size_t k = 0; k < count; k++) {
        own[k] = dims[k];
        own[k].option = 0;
        own[k].most = most + dims[k].offset;
    }
    *option = (prony_dim){"*", most};
    session->options.max_dims = option;
    session->options.max_dim_count = 1;
    session->open_dims = own;
    session->grown_count = session->open_count = count;
    return PRONY_OK;
}

void prn_session_set_growth(prony_session *session, prn_growth growth)
{
    if (growth != PRN_GROWTH_NONE && session->growth != growth) open_plan_swap(session);
    session->open_count = growth == PRN_GROWTH_NONE ? 0 : session->grown_count;
    if (growth == PRN_GROWTH_NONE && session->current == &session->open) session->current = NULL;
}

prony_status prn_open_dims_check(const prony_session *session, size_t input, const prony_shape *shape,
                                 prony_error *error)
{
    const bool of_generator = session->grown_count > 0; /* its own runs fit, and the caller's need not */
    for (size_t k = 0; k < session->open_count && !of_generator; k++) {
        const prn_open_dim *open = &session->open_dims[k];
        if (open->input != input || shape->rank <= open->axis || shape->dim[open->axis] <= open->most) continue;
        char text[PRN_FREE_DIM_NAME_BYTES];
        const prony_value_info *port = &session->model->file->graph.inputs[input];
        return prn_fail(error, PRONY_OUT_OF_RANGE,
                        "%s: input '%s': dimension '%s' (axis %d) is %lld, but its maximum is %lld",
                        session->model->file->name, port->name, prn_free_dim_name(port, open->axis, text), open->axis,
                        (long long)shape->dim[open->axis], (long long)open->most);
    }
    return PRONY_OK;
}

/* ---- extents to bind at ---- */

#define ATTEMPTS 7

/* The dimension's size in the current run. */
static int64_t extent_now(const prony_session *session, size_t option)
{
    for (size_t k = 0; k < session->open_count; k++) {
        const prn_open_dim *open = &session->open_dims[k];
        if (open->option == option) return session->inputs[open->input].value.shape.dim[open->axis] - open->offset;
    }
    return 0;
}

/* Extents for an attempt: primes, which are rare in models; extents below the largest, if primes are too large; finally
 * the largest and that of this run, or half of it, for models that need multiples. 0: none. */
static int64_t probe(const prony_session *session, size_t option, int attempt, bool second)
{
    static const uint8_t primes[] = {37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103};
    const int64_t most = session->options.max_dims[option].value;
    const size_t count = session->options.max_dim_count, place = 2 * option + second;
    if (attempt < 3) {
        const size_t at = place + (size_t)attempt * 5;
        return at < sizeof primes && primes[at] <= most ? primes[at] : 0;
    }
    if (attempt >= 5) return !second ? most : attempt == 5 ? extent_now(session, option) : most / 2;
    return most - (int64_t)(option + (second ? count : 0)) - (attempt - 3);
}

/* Sets the inputs to the extents of an attempt; false: no extents that differ from one another. */
static bool set_probes(const prony_session *session, int attempt, bool second, prony_value *inputs)
{
    for (size_t i = 0; i < session->input_count; i++) {
        inputs[i] = session->inputs[i].value;
        inputs[i].data = NULL;
        inputs[i].items = NULL;
        inputs[i].count = 0;
    }
    for (size_t o = 0; o < session->options.max_dim_count; o++) {
        const int64_t extent = probe(session, o, attempt, second), other = probe(session, o, attempt, !second);
        if (extent < 2 || extent == other) return false;
        for (size_t before = 0; before < o; before++)
            if (probe(session, before, attempt, second) == extent) return false;
    }
    for (size_t k = 0; k < session->open_count; k++) {
        const prn_open_dim *open = &session->open_dims[k];
        if (inputs[open->input].shape.rank <= open->axis) return false;
        inputs[open->input].shape.dim[open->axis] = probe(session, open->option, attempt, second) + open->offset;
    }
    return true;
}

/* true: another attempt, or a plan for one set of shapes, may succeed. */
static bool may_go_on(prony_status status, prony_error *error)
{
    if (status == PRONY_OK || status == PRONY_OUT_OF_MEMORY || status == PRONY_CANCELLED || status == PRONY_LIMIT ||
        status == PRONY_IO_ERROR)
        return false;
    if (error) *error = (prony_error){0};
    return true;
}

static bool same_names(const prn_program *a, const prn_program *b)
{
    for (size_t v = 0; v < a->value_count && v < b->value_count; v++)
        if (strcmp(a->values[v]->name, b->values[v]->name) != 0) return false;
    return a->value_count == b->value_count;
}

static prony_status bind_at(prony_session *session, prn_cached_plan *open, prn_bind_options *options,
                            const prony_value *second, bool *fits, prony_error *error)
{
    PRN_TRY(prn_program_bind(&open->program, session->model, session->graph, NULL, NULL, options, error));
    return prn_dynamic_dims_open(&open->extents, open->program, second, fits, error);
}

static void release_program(prn_cached_plan *open)
{
    prn_program_release(open->program);
    prn_dynamic_dims_release(open->extents);
    open->program = NULL;
    open->extents = NULL;
}

/* Binds once more, if constants follow from the extents and are always the same. */
static prony_status bind_fixed(prony_session *session, prn_cached_plan *open, prn_bind_options *options,
                               const prony_value *second, bool *fits, prony_error *error)
{
    bool any, *fixed = prn_calloc(open->program->value_count + 1, sizeof *fixed);
    if (!fixed) return prn_no_memory(error);
    prn_dynamic_dims_fixed(open->extents, fixed, &any);
    prn_cached_plan again = {0};
    options->fixed = fixed;
    options->fixed_count = open->program->value_count;
    prony_status status = any ? bind_at(session, &again, options, second, fits, error) : PRONY_OK;
    if (any && (status != PRONY_OK || !*fits || same_names(open->program, again.program))) {
        prn_cached_plan before = *open;
        open->program = again.program;
        open->extents = again.extents;
        again.program = before.program;
        again.extents = before.extents;
    }
    release_program(&again);
    prn_free(fixed);
    return status;
}

/* Binds open->program at two sets of extents; *fits false: these extents do not tell the dimensions apart, and the
 * caller tries others. Rewriting may break that too, so it is checked again after it. `inputs` and `caches` share one
 * allocation. Times are ns. */
static prony_status bind_open(prony_session *session, prn_cached_plan *open, const prony_value *first,
                              const prony_value *second, bool *fits, prony_error *error)
{
    bool *inputs = prn_calloc(2 * session->input_count + 1, sizeof *inputs);
    if (!inputs) return prn_no_memory(error);
    bool *caches = inputs + session->input_count;
    prn_bind_options options = {.inputs = first, .input_count = session->input_count, .open = inputs, .caches = caches};
    for (size_t k = 0; k < session->open_count; k++) {
        const prn_open_dim *dim = &session->open_dims[k];
        inputs[dim->input] = true;
        caches[dim->input] = dim->rows > 0;
        if (dim->rows) options.cache_rows = dim->rows;
        if (dim->rows) options.cache_type = dim->stored;
        if (dim->most > options.largest) options.largest = dim->most;
    }
    const int64_t start = prn_now_ns();
    session->preparations.bound++;
    prony_status status = bind_at(session, open, &options, second, fits, error);
    if (status == PRONY_OK && *fits) status = bind_fixed(session, open, &options, second, fits, error);
    prn_free(inputs);
    PRN_TRY(status);
    const int64_t bound = prn_now_ns();
    if (!*fits) return PRONY_OK;
    if (!session->options.no_rewrites) PRN_TRY(prn_program_rewrite(open->program, error));
    PRN_TRY(prn_dynamic_dims_rewritten(open->extents, fits, error));
    open->bind_ns = bound - start;
    open->rewrite_ns = prn_now_ns() - bound;
    return PRONY_OK;
}

/* Makes a program for all extents; leaves none if no attempt fits the model. */
static prony_status try_binds(prony_session *session, prn_cached_plan *open, prony_value *first, prony_value *second,
                              prony_error *error)
{
    PRN_TRY(prn_model_unchanged(session->model->file, error));
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        bool fits = false;
        if (!set_probes(session, attempt, false, first) || !set_probes(session, attempt, true, second)) continue;
        prony_status status = bind_open(session, open, first, second, &fits, error);
        if (status == PRONY_OK && fits) return PRONY_OK;
        release_program(open);
        if (status != PRONY_OK && !may_go_on(status, error)) return status;
    }
    return PRONY_OK;
}

/* ---- its plan ---- */

/* Plans for the largest extents, so that memory suffices; if they do not fit the model, for the extents of this run. */
static prony_status plan_largest(prony_session *session, prn_cached_plan *open, prony_value *inputs, prony_error *error)
{
    bool fits;
    for (size_t i = 0; i < session->input_count; i++) inputs[i] = open->inputs[i];
    for (size_t k = 0; k < session->open_count; k++)
        inputs[session->open_dims[k].input].shape.dim[session->open_dims[k].axis] = session->open_dims[k].most;
    prony_status status = prn_dynamic_dims_set(open->extents, inputs, &fits, error);
    if (status != PRONY_OK && !may_go_on(status, error)) return status;
    return status == PRONY_OK && fits ? prn_cached_plan_program(session, open, error) : PRONY_OK;
}

static prony_status open_plan_create(prony_session *session, prn_cached_plan *open, prony_error *error)
{
    prony_value *first = prn_calloc(2 * session->input_count + 1, sizeof *first);
    if (!first) return prn_no_memory(error);
    prony_status status = prn_cached_inputs(session, open, error);
    if (status == PRONY_OK) status = try_binds(session, open, first, first + session->input_count, error);
    if (status == PRONY_OK && open->program) status = plan_largest(session, open, first, error);
    prn_free(first);
    return status;
}

static prony_status open_plan_again(prony_session *session, prn_cached_plan *open, bool *follows, prony_error *error)
{
    prony_status status = open->plan ? prn_plan_respecialize(open->plan, follows, error) : PRONY_OK;
    if (*follows && status == PRONY_OK) return PRONY_OK;
    prn_plan_release(open->plan);
    open->plan = NULL;
    if (status == PRONY_OK) status = prn_cached_plan_program(session, open, error);
    if (status == PRONY_OK) return PRONY_OK;
    prn_plan_release(open->plan);
    open->plan = NULL;
    return status;
}

/* true: the plan's addresses do not depend on extents: no output goes to bytes of the user. */
static bool addresses_stay(const prony_session *session)
{
    const size_t count = session->outputs ? session->model->file->graph.output_count : 0;
    bool stay = !session->model->stage;
    for (size_t k = 0; k < count; k++) stay = stay && !session->outputs[k].user_bytes;
    return stay;
}

/* Takes the program and its plan to the extents of the inputs. */
static prony_status take_extents(prony_session *session, prn_cached_plan *open, bool *fits, prony_error *error)
{
    bool follows = false;
    const bool pointed = open->pointed && addresses_stay(session);
    session->open_settled = open->pointed = false;
    prony_status status = prn_cached_inputs(session, open, error);
    if (status == PRONY_OK) status = prn_dynamic_dims_set(open->extents, open->inputs, fits, error);
    if (status == PRONY_OK && *fits) status = open_plan_again(session, open, &follows, error);
    *fits &= status == PRONY_OK;
    session->open_settled = *fits;
    open->pointed = pointed && follows && *fits;
    session->preparations.respecialized += follows && *fits;
    return status;
}

static bool same_types(const prony_session *session, const prn_cached_plan *open)
{
    for (size_t i = 0; i < session->input_count; i++)
        if (open->inputs[i].kind != session->inputs[i].value.kind ||
            open->inputs[i].dtype != session->inputs[i].value.dtype)
            return false;
    return true;
}

prony_status prn_open_plan(prony_session *session, prn_cached_plan **out, prony_error *error)
{
    prn_cached_plan *open = &session->open;
    bool fits = session->open_settled && prn_cached_fits(session, open);
    prony_status status = PRONY_OK;
    if (!fits && !open->program) {
        status = open_plan_create(session, open, error);
        session->open_refused = status == PRONY_OK && !open->program;
        if (status != PRONY_OK || session->open_refused) prn_cached_release(open);
    }
    if (!fits && status == PRONY_OK && open->program && open->graph == session->graph && same_types(session, open))
        status = take_extents(session, open, &fits, error);
    if (fits) *out = open;
    return status != PRONY_OK && may_go_on(status, error) ? PRONY_OK : status;
}
