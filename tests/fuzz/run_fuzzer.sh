#!/bin/bash
# Runs a libFuzzer target for a bounded time: run_fuzzer.sh TARGET TESTS_DIR WORK_DIR SECONDS
# Seeds: tests/fuzz/corpus/NAME if there, the digits model, the small models of libonnx-testdata, and what the target itself
# writes where PRN_FUZZ_SEEDS says (fuzz_run: a model of every operator case); for fuzz_files the images of the tests instead.
set -euo pipefail
target=$1 tests=$2 work=$3 seconds=$4
name=$(basename "$target")
mkdir -p "$work/found" "$work/seeds"
export PRN_FUZZ_SEEDS=$work/seeds
if [ -d "$tests/fuzz/corpus/$name" ]; then cp -r "$tests/fuzz/corpus/$name/." "$work/seeds/"; fi
if [ "$name" = fuzz_files ]; then
    cp "$tests"/data/images/*.png "$tests"/data/images/*.jpg "$tests"/data/images/*.npz "$work/seeds/"
    printf 'file,label\n"a, b.png",3\nc.png,4\n' >"$work/seeds/labels.csv"
    printf 'a b.png 3\nc.png 4\n' >"$work/seeds/labels.txt"
elif [ "$name" = fuzz_request ]; then
    : # the target writes its own
else
    cp "$tests/../models/digits.onnx" "$work/seeds/"
    for model in /usr/share/libonnx-testdata/data/*/test_*/model.onnx; do
        [ -f "$model" ] || continue
        folder=$(dirname "$model")
        cp "$model" "$work/seeds/$(basename "$folder").onnx"
    done
fi
cd "$work"
# Seeds stay although kernels report no coverage: each is the way to another operator.
exec "$target" -keep_seed=1 -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
    -verbosity=0 found seeds
