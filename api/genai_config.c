/* Reads model.decoder.inputs and .outputs of genai_config.json:
 *
 *   {"model": {"decoder": {"filename": "model.onnx",
 *     "inputs": {"input_ids": "…", "past_key_names": "past_key_values.%d.key", …},
 *     "outputs": {"logits": "…", "present_key_names": "present.%d.key", …}}}}
 *
 * Other members are skipped. */
#include "api/genai_config.h"

#include "base/os/file.h"
#include "profiler/json/json_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOST_CONFIG_BYTES ((size_t)16 << 20)

/* "past_key_values.%d.key" as the pattern "past_key_values.*.key". */
static const char *genai_config_pattern(const char *text, prn_bump *pool)
{
    const char *digit = text ? strstr(text, "%d") : NULL;
    if (!digit) return text;
    return prn_bump_printf(pool, "%.*s*%s", (int)(digit - text), text, digit + 2);
}

static void genai_config_read_names(prn_json_reader *j, const prn_json_value *decoder, prn_decoder_names *out)
{
    static const char *const pasts[] = {"past_key_names", "past_value_names", "past_names"}, *const presents[] = {
                                                                                                 "present_key_names",
                                                                                                 "present_value_names",
                                                                                                 "present_names"};
    const prn_json_value *inputs = prn_json_get_object(j, decoder, "inputs", false),
                         *outputs = prn_json_get_object(j, decoder, "outputs", false);
    if (inputs) {
        static const char *const names[PRN_DECODER_INPUTS] = {
            "input_ids",           "attention_mask", "position_ids", "current_sequence_length", "total_sequence_length",
            "past_sequence_length"};
        for (size_t k = 0; k < PRN_DECODER_INPUTS; k++)
            prn_json_get_string(j, inputs, names[k], false, &out->inputs[k]);
    }
    if (outputs) prn_json_get_string(j, outputs, "logits", false, &out->logits);
    for (size_t k = 0; k < PRN_DECODER_CACHES && inputs && outputs; k++) {
        prn_json_get_string(j, inputs, pasts[k], false, &out->past[k]);
        prn_json_get_string(j, outputs, presents[k], false, &out->present[k]);
        out->past[k] = genai_config_pattern(out->past[k], j->pool);
        out->present[k] = genai_config_pattern(out->present[k], j->pool);
    }
}

static prony_status genai_config_parse(prn_decoder_names *out, const char *file, const char *model, const prn_map *map,
                                       prn_bump *pool, prony_error *error)
{
    prn_json_value *root;
    if (map->size > MOST_CONFIG_BYTES) return prn_fail(error, PRONY_LIMIT, "%s: %zu bytes", file, map->size);
    PRN_TRY(prn_json_document_parse(&root, file, (const char *)map->data, map->size, error));
    prn_json_reader reader = {.pool = pool, .file = file, .error = error}, *j = &reader;
    const char *name = NULL;
    const prn_json_value *section = prn_json_get_object(j, root, "model", false),
                         *decoder = section ? prn_json_get_object(j, section, "decoder", false) : NULL;
    if (decoder) prn_json_get_string(j, decoder, "filename", false, &name);
    if (decoder && (!name || strcmp(name, model) == 0)) {
        out->file = file;
        genai_config_read_names(j, decoder, out);
    }
    prn_json_document_release(root);
    return reader.status;
}

prony_status prn_genai_config_read(prn_decoder_names *out, const char *model, prn_bump *pool, prony_error *error)
{
    const char *slash = strrchr(model, '/');
    const int folder = slash ? (int)(slash - model) + 1 : 0;
    const char *file = prn_bump_printf(pool, "%.*sgenai_config.json", folder, model);
    prn_map map;
    if (!file) return prn_no_memory(error);
    if (access(file, F_OK) != 0) return PRONY_OK;
    PRN_TRY(prn_map_read(&map, file, error));
    const prony_status status = genai_config_parse(out, file, model + folder, &map, pool, error);
    prn_map_close(&map);
    return status;
}
