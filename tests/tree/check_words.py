"""Refuses words that this project no longer uses: check_words.py ROOT

CONTRIBUTING.md ("Words we use") has the words that replaced them. RETIRED are names and phrases as they stood in identifiers,
comments and messages; each has the word to write instead."""
import pathlib
import re
import sys

RETIRED = [  # a pattern, and what to write
    (r"\bprn_crew\w*|\bcrews?\b", "executor"),
    (r"\bprn_team\w*", "thread pool (prn_thread_pool)"),
    (r"\bprn_desk\w*|\bdesks?\b", "job slot"),
    (r"\bprn_stop(ped|_\w+)?\b|\bcalled off\b", "cancel, cancelled"),
    (r"\bprn_extents\w*|\bPRN_EXTENTS\w*", "dynamic dimensions (prn_dynamic_dims)"),
    (r"\bprn_recipe\w*|\bPRN_RECIPE\w*", "lazy constant"),
    (r"\bprn_shared_\w+|\bprn_shared\b", "weight cache (prn_weight_cache)"),
    (r"\bprn_lent_\w+|\blent_bytes\b", "user-bound buffer (prn_user_buffer)"),
    (r"\bprn_dead_\w+|\bdead_bytes\b|\bbury\b", "poison, unpoison"),
    (r"\bheaviest[_ ]set\b", "maximum-weight antichain"),
    (r"\bprn_site\b|\bprn_binder\b", "node environment, bind pass"),
    (r"\bprn_live_\w+", "dynamic tensor"),
    (r"\bprn_code_\w+|\bPRN_CODE_\w+|\bprn_coded\b", "qint8"),
    (r"\bprn_split_\w+|\bPRN_SPLIT_\w+|\bprn_\w+_split_(?!flag)\w*worth\b", "bf16x3"),
    (r"\bprn_stored\w*|\bPRN_STORED\w*", "low-bit packed weights (prn_lowbit)"),
    (r"\bprn_bit_\w+", "N-bit block-quantised weights (prn_nbit)"),
    (r"\bprn_conv_(flat|stem)\w*|\bprn_flat_\w+", "row-vectorised direct, first-layer convolution"),
    (r"\bprn_winograd_cut\w*|\bprn_direct_end\w*", "tiling, epilogue"),
    (r"\bprn_product\w*", "matmul"),
    (r"\bprn_host\b|\bprn_engine_host\b|\bhost table\b", "engine services (prn_services)"),
    (r"\bprn_value_place\b|\bprn_plan_place\w*", "memory space"),
    (r"\bprn_form\b", "tensor type"),
    (r"\bprn_\w+_(usable|worth)\b", "supported, profitable"),
    (r"\bprony_evidence\w*", "basis"),
    (r"\bprony_port\b", "value info (prony_value_info)"),
    (r"\bprony_figure\b|\bprony_error_figures\b", "prony_quantity, prony_error_metrics"),
    (r"\bprony_pool(_\w+)?\b", "thread pool (prony_thread_pool)"),
    (r"\bprony_part\b|\bprony_model_(save_)?part\b", "submodel (prony_model_extract)"),
    (r"\bprony_compare_part\b", "prony_compare_row"),
    (r"\bprony_sessions_profile\b", "prony_profile_interleaved"),
    (r"\bprony_accuracy_against\b", "prony_accuracy_expected"),
    (r"\bprony_model_has_codes\b", "prony_model_is_quantized"),
]
FOLDERS = ("api", "base", "bench", "engine", "evaluate", "include", "loaders", "ops", "profiler", "python", "quantize", "tests")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    patterns = [(re.compile(pattern), instead) for pattern, instead in RETIRED]
    problems = count = 0
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in (".c", ".h", ".inc")):
        count += 1
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for pattern, instead in patterns:
                for match in pattern.finditer(line):
                    print(f"{path.relative_to(root)}:{number}: '{match.group()}' is retired; write: {instead}")
                    problems += 1
    print(f"{count} files, {problems} retired words")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())
