/* Finds what a decoder's inputs and outputs are for: by the names that the caller gives, by those that exporters use, and
 * for caches by the graph as well, whatever they are called. */
#include "engine/generate/generator.h"

#include "base/shape.h"

#include <string.h>

typedef struct role_name {
    prn_role role;
    const char *name;
} role_name;

static const role_name role_names[] = {{PRN_ROLE_IDS, "input_ids"},
                                       {PRN_ROLE_IDS, "decoder_input_ids"},
                                       {PRN_ROLE_IDS, "ids"},
                                       {PRN_ROLE_IDS, "tokens"},
                                       {PRN_ROLE_IDS, "token_ids"},
                                       {PRN_ROLE_IDS, "input"},
                                       {PRN_ROLE_MASK, "attention_mask"},
                                       {PRN_ROLE_MASK, "decoder_attention_mask"},
                                       {PRN_ROLE_MASK, "attn_mask"},
                                       {PRN_ROLE_MASK, "causal_mask"},
                                       {PRN_ROLE_POSITIONS, "position_ids"},
                                       {PRN_ROLE_POSITIONS, "decoder_position_ids"},
                                       {PRN_ROLE_TYPES, "token_type_ids"},
                                       {PRN_ROLE_LENGTHS, "seqlens_k"},
                                       {PRN_ROLE_TOTAL, "total_sequence_length"},
                                       {PRN_ROLE_PAST_LENGTH, "past_sequence_length"},
                                       {PRN_ROLE_PAST_LENGTH, "past_seq_len"},
                                       {PRN_ROLE_ROWS, "cache_position"},
                                       {PRN_ROLE_USE_CACHE, "use_cache_branch"}};

static const prony_cache_names cache_names[] = {{"past_key_values.*", "present.*"},
                                                {"past_key_values.*", "present_key_values.*"},
                                                {"past_key_values_*", "present_key_values_*"},
                                                {"past.*", "present.*"},
                                                {"past_*", "present_*"},
                                                {"past*", "present*"}};

/* Operators that make a present output of a past input. */
typedef struct cache_operator {
    const char *domain, *name;
    size_t past, present; /* positions among inputs and outputs */
} cache_operator;

static const cache_operator cache_operators[] = {{"com.microsoft", "GroupQueryAttention", 3, 1},
                                                 {"com.microsoft", "GroupQueryAttention", 4, 2},
                                                 {"com.microsoft", "Attention", 4, 1},
                                                 {"com.microsoft", "MultiHeadAttention", 6, 1},
                                                 {"com.microsoft", "MultiHeadAttention", 7, 2},
                                                 {"", "Attention", 4, 1},
                                                 {"", "Attention", 5, 2},
                                                 {"", "Concat", 0, 0}};

typedef struct find_roles {
    prony_generator *g;
    const prony_generator_options *options;
    prn_decoder_names beside;  /* of genai_config.json */
    prn_names inputs, outputs; /* of the graph, to their indices */
    bool shared;               /* GroupQueryAttention makes a cache's present output */
} find_roles;

static prony_status find_roles_named(const find_roles *f, const char *name, const prn_names *names, const char *what,
                                     uint32_t *index, prony_error *error)
{
    if (prn_names_get(names, name, index)) return PRONY_OK;
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: %s '%s' does not exist", f->g->file, what, name);
}

static void find_take(prony_generator *g, size_t input, prn_role role)
{
    g->roles[input] = (uint8_t)role;
    g->role_of[role] = input;
}

/* Roles of inputs that are no caches. */
static prony_status find_roles_inputs(const find_roles *f, prony_error *error)
{
    prony_generator *g = f->g;
    const char *given[] = {f->options->input_ids, f->options->attention_mask, f->options->position_ids};
    const prn_role roles[] = {PRN_ROLE_IDS, PRN_ROLE_MASK, PRN_ROLE_POSITIONS};
    uint32_t index;
    for (size_t k = 0; k < sizeof roles / sizeof *roles; k++) {
        if (!given[k]) continue;
        PRN_TRY(find_roles_named(f, given[k], &f->inputs, "input", &index, error));
        find_take(g, index, roles[k]);
    }
    /* The file beside the model also names inputs that the model does not have. */
    const char *beside[] = {f->beside.input_ids, f->beside.attention_mask, f->beside.position_ids};
    for (size_t k = 0; k < sizeof roles / sizeof *roles; k++)
        if (!given[k] && beside[k] && prn_names_get(&f->inputs, beside[k], &index) && !g->roles[index])
            find_take(g, index, roles[k]);
    for (size_t k = 0; k < sizeof role_names / sizeof *role_names; k++) {
        const role_name *known = &role_names[k];
        if (g->role_of[known->role] != SIZE_MAX || !prn_names_get(&f->inputs, known->name, &index) || g->roles[index])
            continue;
        const prony_dtype type = g->graph->inputs[index].dtype;
        if (known->role == PRN_ROLE_IDS && type != PRONY_INT64 && type != PRONY_INT32) continue;
        find_take(g, index, known->role);
    }
    return PRONY_OK;
}

/* ---- caches */

/* The text that '*' stands for in `pattern`; false: the name does not match. */
static bool find_match(const char *pattern, const char *name, const char **text, size_t *length)
{
    const char *star = strchr(pattern, '*');
    *text = name;
    *length = 0;
    if (!star) return strcmp(pattern, name) == 0;
    const size_t before = (size_t)(star - pattern), after = strlen(star + 1), all = strlen(name);
    if (all < before + after || strncmp(pattern, name, before) != 0 || strcmp(star + 1, name + all - after) != 0)
        return false;
    *text = name + before;
    *length = all - before - after;
    return true;
}

/* The axis along which a cache grows: the only free dimension that is not the batch; else the last but one. */
static int find_roles_axis(const prony_generator *g, const prony_value_info *past)
{
    const char *batch = g->graph->inputs[g->role_of[PRN_ROLE_IDS]].dim_names[0];
    int found = -1, free_dims = 0;
    for (int d = 0; d < past->shape.rank; d++) {
        if (past->shape.dim[d] >= 0 || d == (past->shape.rank == 5)) continue;
        if (batch && past->dim_names[d] && strcmp(batch, past->dim_names[d]) == 0) continue;
        found = d;
        free_dims++;
    }
    return free_dims == 1 ? found : past->shape.rank - 2;
}

/* True for a cache of the encoder's keys and values: "past_key_values.0.encoder.key". */
static bool find_is_cross(const char *name)
{
    return strstr(name, "encoder") || strstr(name, "cross");
}

static void find_add_cache(find_roles *f, size_t input, size_t output, int axis)
{
    prony_generator *g = f->g;
    const prony_value_info *past = &g->graph->inputs[input];
    g->roles[input] = PRN_ROLE_CACHE;
    g->caches[g->cache_count++] = (prn_generator_cache){.input = input,
                                                        .output = output,
                                                        .axis = axis < 0 ? find_roles_axis(g, past) : axis,
                                                        .cross = find_is_cross(past->name),
                                                        .value = {.dtype = past->dtype, .shape = past->shape}};
}

static prony_status find_by_name(find_roles *f, const prony_cache_names *names, prony_error *error)
{
    prony_generator *g = f->g;
    for (size_t i = 0; i < g->graph->input_count; i++) {
        const char *name = g->graph->inputs[i].name, *text;
        size_t length;
        uint32_t output;
        if (g->roles[i] != PRN_ROLE_OTHER || !find_match(names->past, name, &text, &length)) continue;
        const char *star = strchr(names->present, '*');
        char *present = star ? prn_bump_printf(&g->pool, "%.*s%.*s%s", (int)(star - names->present), names->present,
                                               (int)length, text, star + 1)
                             : prn_bump_strndup(&g->pool, names->present, strlen(names->present));
        if (!present) return prn_no_memory(error);
        if (prn_names_get(&f->outputs, present, &output)) find_add_cache(f, i, output, -1);
    }
    return PRONY_OK;
}

static const cache_operator *find_operator(const prn_model_node *node, size_t k)
{
    for (size_t n = k; n < sizeof cache_operators / sizeof *cache_operators; n++)
        if (strcmp(node->op_type, cache_operators[n].name) == 0 && strcmp(node->domain, cache_operators[n].domain) == 0)
            return &cache_operators[n];
    return NULL;
}

/* Pairs that an operator ties together; also tells that GroupQueryAttention makes the outputs. */
static void find_by_graph(find_roles *f)
{
    prony_generator *g = f->g;
    for (size_t n = 0; n < g->graph->node_count; n++) {
        const prn_model_node *node = &g->graph->nodes[n];
        const cache_operator *op;
        for (size_t k = 0; (op = find_operator(node, k)); k = (size_t)(op - cache_operators) + 1) {
            uint32_t input, output;
            if (op->past >= node->input_count || op->present >= node->output_count ||
                !prn_names_get(&f->inputs, node->inputs[op->past], &input) ||
                !prn_names_get(&f->outputs, node->outputs[op->present], &output))
                continue;
            f->shared = f->shared || strcmp(op->name, "GroupQueryAttention") == 0;
            const prn_attr *axis = prn_attr_find(&node->attributes, "axis");
            const int rank = g->graph->inputs[input].shape.rank;
            if (g->roles[input] == PRN_ROLE_OTHER && rank >= 3)
                find_add_cache(f, input, output, axis ? (int)(axis->i < 0 ? axis->i + rank : axis->i) : -1);
        }
    }
}

static prony_status find_caches(find_roles *f, prony_error *error)
{
    prony_generator *g = f->g;
    g->caches = prn_bump_alloc(&g->pool, g->graph->input_count + 1, sizeof *g->caches);
    if (!g->caches) return prn_no_memory(error);
    for (size_t k = 0; k < f->options->cache_count; k++) {
        const size_t before = g->cache_count;
        PRN_TRY(find_by_name(f, &f->options->caches[k], error));
        if (g->cache_count == before)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: no input and output match the cache '%s=%s'", g->file,
                            f->options->caches[k].past, f->options->caches[k].present);
    }
    for (size_t k = 0; k < PRN_DECODER_CACHES && !f->options->cache_count; k++) {
        const prony_cache_names names = {f->beside.past[k], f->beside.present[k]};
        if (names.past && names.present) PRN_TRY(find_by_name(f, &names, error));
    }
    for (size_t k = 0; k < sizeof cache_names / sizeof *cache_names && !f->options->cache_count; k++)
        PRN_TRY(find_by_name(f, &cache_names[k], error));
    find_by_graph(f);
    return PRONY_OK;
}

/* ---- logits */

/* The named output; else that of the file beside the model; else 'logits'; else the first output of floats that is no
 * cache. */
static prony_status find_logits(const find_roles *f, prony_error *error)
{
    prony_generator *g = f->g;
    uint32_t index;
    if (f->options->logits) {
        PRN_TRY(find_roles_named(f, f->options->logits, &f->outputs, "output", &index, error));
        g->logits = index;
        return PRONY_OK;
    }
    bool found = (f->beside.logits && prn_names_get(&f->outputs, f->beside.logits, &index)) ||
                 prn_names_get(&f->outputs, "logits", &index);
    for (size_t k = 0; k < g->graph->output_count && !found; k++) {
        const prony_value_info *output = &g->graph->outputs[k];
        found = prn_dtype_is_float(output->dtype) &&
                (output->shape.rank < 0 || output->shape.rank == 2 || output->shape.rank == 3);
        for (size_t c = 0; c < g->cache_count && found; c++) found = g->caches[c].output != k;
        index = (uint32_t)k;
    }
    if (!found)
        return prn_fail(error, PRONY_INVALID_MODEL,
                        "%s: not a decoder: no output of logits (wanted 'logits', or float[batch, length, vocabulary])",
                        g->file);
    g->logits = index;
    return PRONY_OK;
}

static prony_status find_all(find_roles *f, prony_error *error)
{
    prony_generator *g = f->g;
    char text[PRN_SHAPE_TEXT_BYTES];
    const prn_graph *graph = g->graph;
    for (size_t k = 0; k < graph->input_count; k++)
        if (!prn_names_put(&f->inputs, graph->inputs[k].name, (uint32_t)k)) return prn_no_memory(error);
    for (size_t k = 0; k < graph->output_count; k++)
        if (!prn_names_put(&f->outputs, graph->outputs[k].name, (uint32_t)k)) return prn_no_memory(error);
    const prony_model *model = g->session->model;
    if (model->read_names) PRN_TRY(model->read_names(&f->beside, g->file, &g->pool, error));
    PRN_TRY(find_roles_inputs(f, error));
    if (g->role_of[PRN_ROLE_IDS] == SIZE_MAX) {
        const prony_value first = {.dtype = graph->input_count ? graph->inputs[0].dtype : PRONY_UNDEFINED,
                                   .shape = graph->input_count ? graph->inputs[0].shape : prn_shape_unknown()};
        return prn_fail(error, PRONY_INVALID_MODEL,
                        "%s: not a decoder: no input of token ids (wanted 'input_ids', integers [batch, length]); the "
                        "first input is '%s', %s",
                        g->file, graph->input_count ? graph->inputs[0].name : "",
                        graph->input_count ? prn_value_text(&first, text) : "none");
    }
    const prony_value_info *ids = &graph->inputs[g->role_of[PRN_ROLE_IDS]];
    if ((ids->dtype != PRONY_INT64 && ids->dtype != PRONY_INT32) || ids->shape.rank != 2) {
        const prony_value value = {.dtype = ids->dtype, .shape = ids->shape};
        return prn_fail(error, PRONY_INVALID_MODEL,
                        "%s: not a decoder: input '%s' is %s; wanted integers [batch, length]", g->file, ids->name,
                        prn_value_text(&value, text));
    }
    PRN_TRY(find_caches(f, error));
    return find_logits(f, error);
}

prony_status prn_generator_find(prony_generator *generator, const prony_generator_options *options, prony_error *error)
{
    find_roles f = {.g = generator, .options = options};
    generator->roles = prn_bump_alloc(&generator->pool, generator->graph->input_count + 1, 1);
    if (!generator->roles) return prn_no_memory(error);
    for (size_t r = 0; r <= PRN_ROLE_CACHE; r++) generator->role_of[r] = SIZE_MAX;
    prony_status status = find_all(&f, error);
    prn_names_free(&f.inputs);
    prn_names_free(&f.outputs);
    if (status != PRONY_OK) return status;
    generator->kind = !generator->cache_count ? PRONY_CACHE_NONE : f.shared ? PRONY_CACHE_SHARED : PRONY_CACHE_GROWING;
    const prn_generator_cache *first = generator->caches;
    const char *text = generator->cache_count
                           ? prn_bump_printf(&generator->pool, "%s -> %s", generator->graph->inputs[first->input].name,
                                             generator->graph->outputs[first->output].name)
                           : "";
    generator->convention = text;
    return text ? PRONY_OK : prn_no_memory(error);
}
