/* genai_config.json beside a model: the names that ONNX Runtime GenAI gives a decoder's tensors. */
#ifndef PRN_API_GENAI_CONFIG_H
#define PRN_API_GENAI_CONFIG_H

#include "engine/bind/engine_model.h"

/* Reads the file, if it exists and is about this model; strings are in the pool. Otherwise *out stays as it is. */
PRN_MUST_USE prony_status prn_genai_config_read(prn_decoder_names *out, const char *model, prn_bump *pool,
                                                prony_error *error);

#endif
