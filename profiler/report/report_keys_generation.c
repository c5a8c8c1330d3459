/* Keys of a measured generation. */
#include "profiler/report/report_keys.h"

#define G prony_generation
static const prn_key ttft_keys[] = {
    {"median", PRN_AT(G, ttft.median_ns), PRN_ALWAYS, "Median of the repetitions, ns"},
    {"min", PRN_AT(G, ttft.min_ns), PRN_LEAST_0, NULL},
    {"max", PRN_AT(G, ttft.max_ns), PRN_LEAST_0, NULL},
    {"ci95", PRN_TWO(G, ttft.median_ci95_ns), PRN_ALWAYS, "95 % interval of the median."},
    {0}};

static const prn_key step_keys[] = {
    {"mean", PRN_AT(G, step.mean_ns), PRN_LEAST_0, NULL},
    {"min", PRN_AT(G, step.min_ns), PRN_LEAST_0, NULL},
    {"p50", PRN_AT(G, step.p50_ns), PRN_LEAST_0, NULL},
    {"p90", PRN_AT(G, step.p90_ns), PRN_LEAST_0, NULL},
    {"p95", PRN_AT(G, step.p95_ns), PRN_LEAST_0, NULL},
    {"p99", PRN_AT(G, step.p99_ns), PRN_LEAST_0, NULL},
    {"max", PRN_AT(G, step.max_ns), PRN_LEAST_0, NULL},
    {"p95_valid", PRN_AT(G, step.p95_valid), PRN_ALWAYS, "true: enough steps support this percentile."},
    {"p99_valid", PRN_AT(G, step.p99_valid), PRN_ALWAYS, "true: enough steps support this percentile."},
    {"steps", PRN_AT(G, step.count), PRN_ALWAYS, "Measured steps of all repetitions."},
    {0}};

// clang-format off
const prn_key prn_generation_keys[] = {
    {"batch", PRN_AT(G, batch), PRN_LEAST_1, "Sequences."},
    {"prompt_tokens", PRN_AT(G, prompt_tokens), PRN_LEAST_1, "Tokens of each prompt."},
    {"new_tokens", PRN_AT(G, new_tokens), PRN_LEAST_1, "Generated tokens of each sequence."},
    {"warmup_repetitions", PRN_AT(G, warmup_repetitions), PRN_LEAST_0, "Repetitions before those that count."},
    {"repetitions", PRN_AT(G, repetitions), PRN_LEAST_1, "Measured repetitions: the prompt, then the new tokens."},
    {"cache", PRN_AT(G, cache), PRN_ALWAYS, "none: each step computes the whole sequence; shared: buffers or states of a fixed size.", "none|growing|shared"},
    {"convention", PRN_AT(G, convention), PRN_IF_SET | PRN_EMPTY, "Input and output of the first cache."},
    {"prefill_tokens_per_second", PRN_AT(G, prefill_tokens_per_second), PRN_LEAST_0, "Prompt tokens of all sequences, over the median time of the prompt."},
    {"prefill_ci95", PRN_TWO(G, prefill_ci95), PRN_ALWAYS, "95 % interval."},
    {"decode_tokens_per_second", PRN_AT(G, decode_tokens_per_second), PRN_LEAST_0, "New tokens of all sequences from the second on, over the median time of a repetition's steps; 0: new_tokens is 1."},
    {"decode_ci95", PRN_TWO(G, decode_ci95), PRN_ALWAYS, "95 % interval."},
    {"ttft_ns", PRN_AT(G, ttft.median_ns), PRN_LEAST_0, "Time to the first new token, median."},
    {"ttft", PRN_HERE(ttft_keys), PRN_OLD | PRN_ROW_DIRECT, "Time to the first new token, ns."},
    {"tpot_ns", PRN_HERE(step_keys), PRN_ROW_DIRECT, "Time between two new tokens, ns."},
    {"growth_ns_per_token", PRN_AT(G, step_growth_ns), PRN_ALWAYS, "By which a step takes longer for each token before it (median slope over pairs of positions)."},
    {"position_ns", PRN_LIST(G, position_ns, position_count), PRN_IF_SET | PRN_ROW_DIRECT | PRN_LEAST_0, "Median step by position: the second new token, the third, ..."},
    {"cache_tensors", PRN_AT(G, cache_tensors), PRN_ALWAYS, "Tensors that are fed back."},
    {"cache_bytes", PRN_AT(G, cache_bytes), PRN_ALWAYS, "Memory held for the cache."},
    {"cache_live_bytes", PRN_AT(G, cache_live_bytes), PRN_ALWAYS, "Keys and values of the tokens at the last position."},
    {"cache_bytes_copied_per_token", PRN_AT(G, cache_copied_bytes), PRN_ALWAYS, "Keys and values of earlier tokens that the last step copied."},
    {"weight_bytes_per_token", PRN_AT(G, weight_bytes), PRN_ALWAYS, "Weights that a step reads, in the layouts that kernels read."},
    {"bandwidth_share", PRN_AT(G, bandwidth_share), PRN_IF_FROM_0, "weight_bytes_per_token over the median step, over this machine's DRAM bandwidth; absent: `prony machine` has not been run."},
    {"prefill_flops_per_token", PRN_AT(G, prefill_flops), PRN_ALWAYS, "Mean over the prompt."},
    {"decode_flops_per_token", PRN_AT(G, decode_flops), PRN_ALWAYS, "At the last position."},
    {"cache_type", PRN_AT(G, cache_type), PRN_IF_SET | PRN_EMPTY, "Elements of a growing cache, and of a shared one in fewer bits.", "fp32|fp16|int8"},
    {"cache_error_tokens", PRN_AT(G, cache_error_tokens), PRN_IF_FROM_0, "Tokens whose logits were compared with those of a float32 cache; absent: they were not."},
    {"cache_error_max", PRN_AT(G, cache_error_max), PRN_IF_FROM_0, "Largest difference of a logit from that with a float32 cache."},
    {"cache_error_rms", PRN_AT(G, cache_error_rms), PRN_IF_FROM_0, "Root-mean-square difference of the logits."},
    {"cache_error_equal_ids", PRN_AT(G, cache_error_equal_ids), PRN_IF_FROM_0, "Share of tokens with the same most probable id as with a float32 cache."},
    {"computed_tokens_per_token", PRN_AT(G, computed_tokens), PRN_LEAST_0, "Tokens that a step computes for each new token, at the last position: 1 with a cache."},
    {0}};
// clang-format on
