/* Compares a plan with measured kernels with the default plan. Operators that are faster alone may be slower together,
 * because of caches and Reorders between them. Both plans exist meanwhile. */
#include "base/os/clock.h"
#include "base/cpu/machine.h"
#include "base/threads/cancel.h"
#include "engine/plan/device_split.h"
#include "engine/plan/planner.h"
#include "engine/plan/tune.h"
#include "engine/session/session.h"

#include <string.h>

/* Shorter runs keep their data in the caches; an untimed run before replaces the other plan's data. Chosen without
 * measurement. */
#define SHORT_NS INT64_C(5000000)

typedef struct race {
    prony_session *session;
    prn_plan *standard, *tuned;
    void **blocks; /* of inputs; NULL: the session's own value */
    int64_t last_ns[2];
} race;

/* ---- the session's tuning ---- */

static prn_tune_key tune_key(const prony_session *session)
{
    return (prn_tune_key){session->model, session->options.precision, session->asked_threads,
                          session->options.inter_op_threads};
}

/* The tuning of the session's plans; NULL: not requested. */
static prony_status begin_tuning(prony_session *session, prn_tuning **out, prony_error *error)
{
    *out = NULL;
    if (session->options.tune == PRONY_TUNE_OFF) return PRONY_OK;
    if (!session->tuning) {
        const prn_tune_files *files = session->model->tune_files;
        const prn_tune_key key = tune_key(session);
        PRN_TRY(prn_tuning_create(&session->tuning, error));
        if (session->precision == PRONY_PRECISION_FP32_STRICT)
            prn_tuning_add_note(session->tuning, "fp32-strict chooses its kernels by the problem alone");
        else if (session->open_count)
            prn_tuning_add_note(session->tuning, "plans for dynamic dimensions choose their kernels by shapes");
        else if (files)
            files->load(session->tuning, &key, session->options.tune == PRONY_TUNE_NO_CACHE);
    }
    *out = session->tuning;
    return PRONY_OK;
}

static void keep_tuning(prony_session *session)
{
    const prn_tune_key key = tune_key(session);
    if (session->tuning && session->tuning->unsaved && session->model->tune_files)
        session->model->tune_files->save(session->tuning, &key);
}

/* ---- plans ---- */

/* Measures with the threads that will run the plan: one worker uses the shared pool. */
static prony_status tuned_plan_create(prony_session *session, prn_program *program, const prn_plan_options *options,
                                      prn_plan **out, prony_error *error)
{
    if (!options->tuning || !session->team || options->workers > 1)
        return prn_plan_create_split(out, program, options, error);
    prn_thread_context former = prn_thread_pool_join(session->team);
    const prony_status status = prn_plan_create_split(out, program, options, error);
    prn_thread_pool_leave(former);
    return status;
}

static bool is_no_room(prony_status status)
{
    return status == PRONY_LIMIT || status == PRONY_OUT_OF_MEMORY;
}

/* true: the program has users' operators, which may only run in requested runs. */
static bool has_users_operators(const prn_program *program)
{
    for (size_t n = 0; n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        if (node->dead) continue;
        if (prn_registry_is_custom(program->model->registry, node->info.domain, node->info.op_type, node->info.opset))
            return true;
        for (uint32_t c = 0; c < node->child_count; c++)
            if (node->children[c].program && has_users_operators(node->children[c].program)) return true;
    }
    return false;
}

/* ---- their inputs ---- */

/* true: the input is replaced by generated floating-point data, as for single kernels. Other inputs, which control the
 * model, keep the session's value; user-bound memory may not be filled yet, so it is replaced too. */
static bool is_made_up(const prn_session_input *input)
{
    const prony_value *value = &input->value;
    if (value->kind != PRONY_TENSOR || value->dtype == PRONY_STRING) return false;
    return input->user_bytes || value->dtype == PRONY_FLOAT32 || value->dtype == PRONY_FLOAT16 ||
           value->dtype == PRONY_BFLOAT16 || value->dtype == PRONY_FLOAT64;
}

static prony_status make_inputs(race *r, prony_error *error)
{
    const prony_session *session = r->session;
    const size_t count = session->input_count + session->optional_count;
    r->blocks = prn_calloc(count + 1, sizeof *r->blocks);
    if (!r->blocks) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        const prony_value *value = &session->inputs[i].value;
        if (!is_made_up(&session->inputs[i])) continue;
        const size_t bytes = prn_value_bytes(value);
        r->blocks[i] = prn_alloc_aligned(64, bytes + 64);
        if (!r->blocks[i]) return prn_no_memory(error);
        prn_tune_fill(r->blocks[i], bytes, value->dtype);
    }
    return PRONY_OK;
}

static void tuned_plan_point_inputs(const race *r, prn_plan *plan)
{
    size_t next = 0; /* index among the program's inputs, which exclude optional ones that are not given */
    for (size_t i = 0; i < r->session->input_count + r->session->optional_count; i++) {
        if (i >= r->session->input_count && !r->session->inputs[i].set) continue;
        prony_value *value = &plan->values[plan->program->inputs[next++]]->value;
        const prony_value *given = &r->session->inputs[i].value;
        value->data = r->blocks[i] ? r->blocks[i] : given->data;
        value->items = given->items;
        value->count = given->count;
        if (given->kind != PRONY_TENSOR) value->dtype = given->dtype;
    }
    prn_plan_point(plan, plan->memory.base);
}

/* ---- both of them ---- */

static prony_status run_one(void *data, bool tuned, int64_t *time_ns, prony_error *error)
{
    race *r = data;
    prn_plan *plan = tuned ? r->tuned : r->standard;
    int64_t (*const now_ns)(void) = plan->options.tuning->now_ns;
    if (r->last_ns[tuned] && r->last_ns[tuned] < SHORT_NS) PRN_TRY(prn_session_run_plan(r->session, plan, NULL, error));
    const int64_t start = now_ns();
    PRN_TRY(prn_session_run_plan(r->session, plan, NULL, error));
    *time_ns = r->last_ns[tuned] = now_ns() - start;
    return PRONY_OK;
}

static prony_status race_plans(race *r, prn_tune_verdict *verdict, prony_error *error)
{
    prony_status status = prn_plan_staff(r->session, r->standard, error);
    if (status == PRONY_OK) status = prn_plan_staff(r->session, r->tuned, error);
    if (status == PRONY_OK) status = make_inputs(r, error);
    if (status == PRONY_OK) {
        tuned_plan_point_inputs(r, r->standard);
        tuned_plan_point_inputs(r, r->tuned);
        status = prn_tune_judge(verdict, run_one, r, error);
        prn_plan_forget(r->tuned);
        prn_plan_forget(r->standard);
    }
    for (size_t i = 0; r->blocks && i < r->session->input_count + r->session->optional_count; i++)
        if (r->blocks[i]) prn_free_aligned(r->blocks[i]);
    prn_free(r->blocks);
    return status;
}

/* A failing run does not refuse the model: the default plan fails when it is asked to run. */
static prony_status tuned_plan_find_verdict(race *r, const char *program, prn_tune_verdict **out, prony_error *error)
{
    prn_tuning *tuning = r->tuned->options.tuning;
    prony_error own = {0};
    prn_tune_verdict *verdict = prn_bump_alloc(&tuning->pool, 1, sizeof *verdict);
    if (!verdict) return prn_no_memory(error);
    verdict->program = prn_bump_strndup(&tuning->pool, program, strlen(program));
    verdict->default_ns = verdict->tuned_ns = -1;
    if (!verdict->program) return prn_no_memory(error);
    prony_status status = race_plans(r, verdict, &own);
    if (status == PRONY_CANCELLED) return prn_cancel_check(error);
    if (is_no_room(status)) {
        prn_tuning_add_note(tuning, "not compared as a whole: %.200s", own.message);
        return PRONY_OK;
    }
    if (status != PRONY_OK) {
        verdict->reverted = true;
        verdict->failure = prn_bump_strndup(&tuning->pool, own.message, strnlen(own.message, 200));
        if (!verdict->failure) return prn_no_memory(error);
        prn_tuning_add_note(tuning, PRN_TUNE_FAILED, verdict->failure);
    }
    if (!prn_tuning_set_verdict(tuning, verdict)) return prn_no_memory(error);
    tuning->unsaved = true;
    *out = verdict;
    return PRONY_OK;
}

/* The reason why two plans cannot exist or run; NULL: they can. */
static const char *find_obstacle(const prn_plan *plan, uint64_t plan_bytes)
{
    const uint64_t available = prn_machine_available_bytes();
    if (has_users_operators(plan->program)) return "it has user-registered operators";
    if (available && plan_bytes > available / 2) return "memory does not suffice for two plans";
    return NULL;
}

/* *plan has measured kernels; replaces it by the default plan if that is not slower. */
static prony_status tuned_plan_judge(prony_session *session, prn_plan **plan, const char *program, uint64_t plan_bytes,
                                     prony_error *error)
{
    prn_plan_options options = (*plan)->options;
    prony_error own = {0};
    race r = {.session = session, .tuned = *plan};
    const char *obstacle = find_obstacle(*plan, plan_bytes);
    options.standard_kernels = true;
    prony_status status =
        obstacle ? PRONY_OK : tuned_plan_create(session, (*plan)->program, &options, &r.standard, &own);
    if (obstacle || is_no_room(status)) {
        prn_tuning_add_note(options.tuning, "not compared as a whole: %.200s", obstacle ? obstacle : own.message);
        return PRONY_OK;
    }
    if (status != PRONY_OK) {
        if (error) *error = own;
        return status;
    }
    prn_tune_verdict *verdict = NULL;
    status = tuned_plan_find_verdict(&r, program, &verdict, error);
    const bool reverted = status == PRONY_OK && verdict && verdict->reverted;
    if (reverted) prn_plan_tune_note(r.standard, r.tuned);
    *plan = reverted ? r.standard : r.tuned;
    (*plan)->verdict = verdict;
    prn_plan_release(reverted ? r.tuned : r.standard);
    return status;
}

/* Makes the default plan, by an earlier verdict; *out stays NULL if a problem of that verdict had to be measured again.
 */
static prony_status plan_by_default(prony_session *session, prn_program *program, const prn_plan_options *given,
                                    const prn_tune_verdict *verdict, prn_plan **out, prony_error *error)
{
    prn_tuning *tuning = given->tuning;
    const size_t measured = tuning->measured, left = tuning->left;
    prn_plan_options options = *given;
    prn_plan *kernels = NULL;
    options.kernels_only = true;
    PRN_TRY(tuned_plan_create(session, program, &options, &kernels, error));
    prony_status status = PRONY_OK;
    if (tuning->measured == measured && prn_plan_tune_changes(kernels) > 0) {
        options.kernels_only = false;
        options.standard_kernels = true;
        status = tuned_plan_create(session, program, &options, out, error);
        if (status == PRONY_OK) {
            prn_plan_tune_note(*out, kernels);
            (*out)->verdict = verdict;
        }
    } else {
        tuning->left = left; /* they are counted again */
    }
    prn_plan_release(kernels);
    return status;
}

/* Makes the plan of an earlier verdict on the program; else a measured plan with a new verdict. */
static prony_status plan_tuned(prony_session *session, prn_program *program, const prn_plan_options *options,
                               prn_plan **out, prony_error *error)
{
    prn_tuning *tuning = options->tuning;
    char text[PRN_TUNE_PROBLEM_BYTES];
    prn_tune_describe(program, options, text);
    const prn_tune_verdict *verdict = prn_tuning_verdict(tuning, text);
    const size_t measured = tuning->measured;
    if (verdict && verdict->reverted) PRN_TRY(plan_by_default(session, program, options, verdict, out, error));
    if (*out) return PRONY_OK;
    const uint64_t before = prn_budget_held(session->budget);
    PRN_TRY(tuned_plan_create(session, program, options, out, error));
    if (prn_plan_tune_changes(*out) == 0) return PRONY_OK;
    if (verdict && !verdict->reverted && tuning->measured == measured) {
        (*out)->verdict = verdict;
        return PRONY_OK;
    }
    const int64_t start = prn_now_ns();
    const uint64_t held = prn_budget_held(session->budget);
    const prony_status status = tuned_plan_judge(session, out, text, held > before ? held - before : 0, error);
    tuning->spent_ns += prn_now_ns() - start;
    return status;
}

prony_status prn_session_create_plan(prony_session *session, prn_program *program, prn_plan_options *options,
                                     prn_plan **out, prony_error *error)
{
    PRN_TRY(begin_tuning(session, &options->tuning, error));
    if (!options->tuning) return tuned_plan_create(session, program, options, out, error);
    const prony_status status = plan_tuned(session, program, options, out, error);
    if (status == PRONY_OK) keep_tuning(session);
    return status;
}
