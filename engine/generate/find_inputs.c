/* The token ids, mask, positions and lengths of a decoder.
 *
 * Exact names come first, then words in a name ("l_attention_mask_", "positions"), then the graph: the only input of
 * integers that a table of embeddings is read by is the ids, and operands of attention operators say what they are. */
#include "base/shape.h"
#include "engine/generate/find.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct role_name {
    prn_role role;
    const char *name;
} role_name;

static const role_name role_names[] = {
    {PRN_ROLE_IDS, "decoder_input_ids"}, /* 'input_ids' beside it are the encoder's */
    {PRN_ROLE_IDS, "input_ids"},
    {PRN_ROLE_IDS, "ids"},
    {PRN_ROLE_IDS, "tokens"},
    {PRN_ROLE_IDS, "token_ids"},
    {PRN_ROLE_IDS, "input"},
    {PRN_ROLE_MASK, "decoder_attention_mask"},
    {PRN_ROLE_MASK, "attention_mask"},
    {PRN_ROLE_MASK, "attn_mask"},
    {PRN_ROLE_POSITIONS, "position_ids"},
    {PRN_ROLE_POSITIONS, "decoder_position_ids"},
    {PRN_ROLE_TYPES, "token_type_ids"},
    {PRN_ROLE_LENGTHS, "seqlens_k"},
    {PRN_ROLE_KEYS, "nonpad_kv_seqlen"},
    {PRN_ROLE_STARTS, "write_indices"},
    {PRN_ROLE_TOTAL, "total_sequence_length"},
    {PRN_ROLE_PAST_LENGTH, "past_sequence_length"},
    {PRN_ROLE_PAST_LENGTH, "past_seq_len"},
    {PRN_ROLE_ROWS, "cache_position"},
    {PRN_ROLE_USE_CACHE, "use_cache_branch"}};

/* Words in names, in the order of trial; two words of one row must both be there. */
static const struct role_words {
    prn_role role;
    const char *words[2];
} role_words[] = {{PRN_ROLE_IDS, {"input_id", NULL}},       {PRN_ROLE_IDS, {"token_id", NULL}},
                  {PRN_ROLE_MASK, {"mask", NULL}},          {PRN_ROLE_TYPES, {"token_type", NULL}},
                  {PRN_ROLE_PAST_LENGTH, {"past", "len"}},  {PRN_ROLE_PAST_LENGTH, {"n_past", NULL}},
                  {PRN_ROLE_TOTAL, {"total", "len"}},       {PRN_ROLE_POSITIONS, {"position", NULL}},
                  {PRN_ROLE_POSITIONS, {"pos", NULL}},      {PRN_ROLE_PAST_LENGTH, {"offset", NULL}},
                  {PRN_ROLE_IDS, {"tokens", NULL}},         {PRN_ROLE_USE_CACHE, {"use_cache", NULL}},
                  {PRN_ROLE_USE_CACHE, {"use_past", NULL}}, {PRN_ROLE_USE_CACHE, {"with_past", NULL}}};

/* Operands of attention operators that are inputs of the graph. */
static const struct operand_role {
    const char *domain, *op;
    size_t operand;
    prn_role role;
} operand_roles[] = {{"com.microsoft", "GroupQueryAttention", 5, PRN_ROLE_LENGTHS},
                     {"com.microsoft", "GroupQueryAttention", 6, PRN_ROLE_TOTAL},
                     {"", "Attention", 6, PRN_ROLE_KEYS},
                     {"", "TensorScatter", 2, PRN_ROLE_STARTS}};

const char *const prn_role_text[PRN_ROLE_CACHE + 1] = {
    [PRN_ROLE_OTHER] = NULL,      [PRN_ROLE_IDS] = "ids",
    [PRN_ROLE_MASK] = "mask",     [PRN_ROLE_POSITIONS] = "positions",
    [PRN_ROLE_TYPES] = "types",   [PRN_ROLE_LENGTHS] = "lengths",
    [PRN_ROLE_TOTAL] = "total",   [PRN_ROLE_KEYS] = "keys",
    [PRN_ROLE_STARTS] = "starts", [PRN_ROLE_PAST_LENGTH] = "past_length",
    [PRN_ROLE_ROWS] = "rows",     [PRN_ROLE_USE_CACHE] = "use_cache",
    [PRN_ROLE_CACHE] = "cache"};

prony_status prn_find_named(const find_roles *f, const char *name, const prn_names *names, const char *what,
                            uint32_t *index, prony_error *error)
{
    if (prn_names_get(names, name, index)) return PRONY_OK;
    return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: %s '%s' does not exist", f->g->file, what, name);
}

static bool find_inputs_is_integer(const prony_value_info *input)
{
    return input->kind == PRONY_TENSOR && (input->dtype == PRONY_INT64 || input->dtype == PRONY_INT32);
}

/* true: an input of this type may have the role. Names beside it decide. */
static bool find_inputs_suits(const prony_value_info *input, prn_role role)
{
    if (role == PRN_ROLE_MASK) return input->kind == PRONY_TENSOR && input->dtype != PRONY_STRING;
    if (role == PRN_ROLE_USE_CACHE) return input->dtype == PRONY_BOOL && input->shape.rank <= 1;
    return find_inputs_is_integer(input);
}

/* Positions are one a row of each sequence, one a row of all sequences, one a sequence, or the first one alone. The
 * declared shape decides. */
static prn_role find_inputs_positions(const prony_generator *g, const prony_value_info *input, prn_role role)
{
    if (role != PRN_ROLE_POSITIONS && role != PRN_ROLE_ROWS && role != PRN_ROLE_PAST_LENGTH) return role;
    if (input->shape.rank == 2) return PRN_ROLE_POSITIONS;
    if (input->shape.rank != 1) return input->shape.rank ? role : PRN_ROLE_PAST_LENGTH;
    const prony_value_info *ids =
        g->role_of[PRN_ROLE_IDS] == SIZE_MAX ? NULL : &g->graph->inputs[g->role_of[PRN_ROLE_IDS]];
    const bool one_row = ids && ids->shape.rank >= 1 && ids->shape.dim[ids->shape.rank - 1] == 1;
    const char *batch = ids && ids->shape.rank == 2 ? ids->dim_names[0] : NULL, *own = input->dim_names[0];
    if (input->shape.dim[0] == 1) return one_row && role == PRN_ROLE_ROWS ? PRN_ROLE_ROWS : PRN_ROLE_PAST_LENGTH;
    if (batch && own && *own && strcmp(batch, own) == 0) return PRN_ROLE_STARTS;
    return role == PRN_ROLE_PAST_LENGTH ? role : PRN_ROLE_ROWS;
}

static void find_inputs_take(prony_generator *g, size_t input, prn_role role)
{
    role = find_inputs_positions(g, &g->graph->inputs[input], role);
    if (g->role_of[role] != SIZE_MAX) return;
    g->roles[input] = (uint8_t)role;
    g->role_of[role] = input;
}

static bool find_inputs_has_word(const char *name, const char *word)
{
    const size_t length = strlen(word), all = strlen(name);
    for (size_t at = 0; at + length <= all; at++) {
        size_t k = 0;
        while (k < length && tolower((unsigned char)name[at + k]) == word[k]) k++;
        /* "pos" must be a whole word: "post_norm" is another one */
        const bool begins = at == 0 || !isalpha((unsigned char)name[at - 1]);
        if (k < length) continue;
        if (length > 3 || (begins && (strcmp(word, "pos") != 0 || !isalpha((unsigned char)name[at + length]))))
            return true;
    }
    return false;
}

/* true: the input belongs to an encoder or to another kind of data. "decoder" does not have the word "encoder". */
static bool find_inputs_is_foreign(const char *name)
{
    static const char *const words[] = {"encoder", "cross", "image", "pixel", "audio", "label", "embeds"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (find_inputs_has_word(name, words[k])) return true;
    return false;
}

/* true: an input without "decoder" in its name, in a model of an encoder and a decoder with ids of their own. */
static bool find_inputs_is_encoders(const find_roles *f, const char *name)
{
    uint32_t index;
    return !find_inputs_has_word(name, "decoder") && prn_names_get(&f->inputs, "input_ids", &index) &&
           prn_names_get(&f->inputs, "decoder_input_ids", &index);
}

/* true: a name with the role's word has another meaning: a mask of heads, one that is 1 at pads, a number of tokens. */
static bool find_inputs_is_other(const char *name, prn_role role)
{
    if (role == PRN_ROLE_MASK) return find_inputs_has_word(name, "head") || find_inputs_has_word(name, "pad");
    return role == PRN_ROLE_IDS && (find_inputs_has_word(name, "num") || find_inputs_has_word(name, "len"));
}

/* The only input with the words, for a role that no other input has; SIZE_MAX: none, or several. */
static size_t find_inputs_by_words(const find_roles *f, const struct role_words *wanted)
{
    const prony_generator *g = f->g;
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < g->graph->input_count; i++) {
        const prony_value_info *input = &g->graph->inputs[i];
        if (g->roles[i] != PRN_ROLE_OTHER || !find_inputs_suits(input, wanted->role)) continue;
        if (g->role_of[find_inputs_positions(g, input, wanted->role)] != SIZE_MAX) continue;
        if (wanted->role != PRN_ROLE_USE_CACHE && input->shape.rank > (wanted->role == PRN_ROLE_MASK ? 4 : 2)) continue;
        if (find_inputs_is_encoders(f, input->name) || find_inputs_is_foreign(input->name) ||
            find_inputs_is_other(input->name, wanted->role) || !find_inputs_has_word(input->name, wanted->words[0]) ||
            (wanted->words[1] && !find_inputs_has_word(input->name, wanted->words[1])))
            continue;
        if (found != SIZE_MAX) return SIZE_MAX;
        found = i;
    }
    return found;
}

/* Operands of operators that say what an input is; they go before words in names. */
static void find_inputs_by_operand(const find_roles *f)
{
    prony_generator *g = f->g;
    for (size_t n = 0; n < g->graph->node_count; n++) {
        const prn_model_node *node = &g->graph->nodes[n];
        for (size_t k = 0; k < sizeof operand_roles / sizeof *operand_roles; k++) {
            const struct operand_role *known = &operand_roles[k];
            uint32_t index;
            if (strcmp(node->op_type, known->op) != 0 || strcmp(node->domain, known->domain) != 0 ||
                known->operand >= node->input_count || !prn_names_get(&f->inputs, node->inputs[known->operand], &index))
                continue;
            const prony_value_info *input = &g->graph->inputs[index];
            if (g->roles[index] == PRN_ROLE_OTHER && find_inputs_is_integer(input) && input->shape.rank <= 1)
                find_inputs_take(g, index, known->role);
        }
    }
}

/* Inputs of integers, by index, that rows of a table are gathered by: *first is one of them. */
static bool find_inputs_gathers(const find_roles *f, size_t *count, size_t first[2])
{
    static const char *const passes[] = {"Cast", "Reshape", "Identity", "Unsqueeze", "Squeeze", "Flatten"};
    const prony_generator *g = f->g;
    prn_names from = {0};
    bool ok = true;
    *count = 0;
    for (size_t i = 0; i < g->graph->input_count && ok; i++) {
        const prony_value_info *input = &g->graph->inputs[i];
        if (g->roles[i] == PRN_ROLE_OTHER && find_inputs_is_integer(input) &&
            (input->shape.rank == 1 || input->shape.rank == 2))
            ok = prn_names_put(&from, input->name, (uint32_t)i);
    }
    for (size_t n = 0; n < g->graph->node_count && ok; n++) {
        const prn_model_node *node = &g->graph->nodes[n];
        uint32_t index;
        for (size_t k = 0; k < sizeof passes / sizeof *passes && ok; k++)
            if (strcmp(node->op_type, passes[k]) == 0 && node->input_count && node->output_count &&
                prn_names_get(&from, node->inputs[0], &index))
                ok = prn_names_put(&from, node->outputs[0], index);
        const prn_attr *axis = prn_attr_find(&node->attributes, "axis");
        if (strncmp(node->op_type, "Gather", 6) != 0 || node->input_count < 2 || (axis && axis->i != 0) ||
            !prn_names_get(&from, node->inputs[1], &index) || (*count && first[0] == index))
            continue;
        if (*count < 2) first[*count] = index;
        ++*count;
    }
    prn_names_free(&from);
    return ok;
}

static prony_status find_inputs_no_ids(const find_roles *f, size_t count, const size_t several[2], prony_error *error)
{
    const prn_graph *graph = f->g->graph;
    char text[PRN_SHAPE_TEXT_BYTES];
    if (count > 1)
        return prn_fail(
            error, PRONY_INVALID_MODEL,
            "%s: not a decoder: no input of token ids is known: it may be '%s' or '%s'; name it as the role "
            "'ids' (--roles ids=NAME)",
            f->g->file, graph->inputs[several[0]].name, graph->inputs[several[1]].name);
    for (size_t i = 0; i < graph->input_count; i++)
        if (find_inputs_has_word(graph->inputs[i].name, "embeds"))
            return prn_fail(error, PRONY_INVALID_MODEL,
                            "%s: not a decoder: no input of token ids; input '%s' takes embeddings: export the model "
                            "with its table of embeddings",
                            f->g->file, graph->inputs[i].name);
    const prony_value first = {.dtype = graph->input_count ? graph->inputs[0].dtype : PRONY_UNDEFINED,
                               .shape = graph->input_count ? graph->inputs[0].shape : prn_shape_unknown()};
    return prn_fail(error, PRONY_INVALID_MODEL,
                    "%s: not a decoder: no input of token ids (wanted 'input_ids', integers [batch, length]); the "
                    "first input is '%s', %s",
                    f->g->file, graph->input_count ? graph->inputs[0].name : "",
                    graph->input_count ? prn_value_text(&first, text) : "none");
}

/* Roles that the caller gives, by name. */
static prony_status find_inputs_given(const find_roles *f, prony_error *error)
{
    prony_generator *g = f->g;
    const prony_generator_options *o = f->options;
    uint32_t index;
    const char *given[] = {o->input_ids, o->attention_mask, o->position_ids};
    const prn_role roles[] = {PRN_ROLE_IDS, PRN_ROLE_MASK, PRN_ROLE_POSITIONS};
    for (size_t k = 0; k < sizeof roles / sizeof *roles; k++) {
        if (!given[k]) continue;
        PRN_TRY(prn_find_named(f, given[k], &f->inputs, "input", &index, error));
        find_inputs_take(g, index, roles[k]);
    }
    for (size_t k = 0; k < o->role_count; k++) {
        prn_role role = PRN_ROLE_IDS;
        while (role < PRN_ROLE_CACHE && strcmp(prn_role_text[role], o->roles[k].role) != 0) role++;
        if (role == PRN_ROLE_CACHE)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: role '%s' is unknown", g->file, o->roles[k].role);
        PRN_TRY(prn_find_named(f, o->roles[k].input, &f->inputs, "input", &index, error));
        g->roles[index] = (uint8_t)role;
        g->role_of[role] = index;
    }
    /* The file beside the model also names inputs that the model does not have. */
    for (size_t k = 0; k < PRN_DECODER_INPUTS; k++) {
        static const prn_role beside[PRN_DECODER_INPUTS] = {PRN_ROLE_IDS,     PRN_ROLE_MASK,  PRN_ROLE_POSITIONS,
                                                            PRN_ROLE_LENGTHS, PRN_ROLE_TOTAL, PRN_ROLE_PAST_LENGTH};
        if (f->beside.inputs[k] && prn_names_get(&f->inputs, f->beside.inputs[k], &index) && !g->roles[index])
            find_inputs_take(g, index, beside[k]);
    }
    return PRONY_OK;
}

prony_status prn_find_inputs(const find_roles *f, prony_error *error)
{
    prony_generator *g = f->g;
    uint32_t index;
    size_t count = 0, several[2] = {0};
    PRN_TRY(find_inputs_given(f, error));
    find_inputs_by_operand(f);
    for (size_t k = 0; k < sizeof role_names / sizeof *role_names; k++) {
        const role_name *known = &role_names[k];
        if (g->role_of[known->role] != SIZE_MAX || !prn_names_get(&f->inputs, known->name, &index) || g->roles[index])
            continue;
        if (known->role == PRN_ROLE_IDS && !find_inputs_is_integer(&g->graph->inputs[index])) continue;
        if (find_inputs_is_encoders(f, known->name)) continue;
        find_inputs_take(g, index, known->role);
    }
    for (size_t k = 0; k < sizeof role_words / sizeof *role_words; k++) {
        const size_t found = find_inputs_by_words(f, &role_words[k]);
        if (found != SIZE_MAX) find_inputs_take(g, found, role_words[k].role);
    }
    if (g->role_of[PRN_ROLE_IDS] != SIZE_MAX) return PRONY_OK;
    if (!find_inputs_gathers(f, &count, several)) return prn_no_memory(error);
    if (count != 1) return find_inputs_no_ids(f, count, several, error);
    find_inputs_take(g, several[0], PRN_ROLE_IDS);
    return PRONY_OK;
}
