#!/bin/bash
# Tests an OpenCL device and measures models on it and on the processor: check_device.sh DEVICE OUT [MODEL...]
# DEVICE is as --device takes it: opencl, opencl:1. OUT receives devices.json, and of each model reports of both and the device's
# page. Without models: the digits network. Builds in build-device/.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -lt 2 ]; then
    echo "usage: check_device.sh DEVICE OUT [MODEL...]" >&2
    exit 2
fi
device=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- models/digits.onnx
mkdir -p "$out"
cmake -S . -B build-device -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=ON >/dev/null
cmake --build build-device -j "$(nproc)" --target prony_command test_opencl test_opencl_rows test_opencl_copies test_opencl_generate test_op_device
prony=build-device/prony
"$prony" devices --json "$out/devices.json"
failed=0
for test in test_opencl test_opencl_rows test_opencl_copies test_opencl_generate test_op_device; do
    if build-device/tests/"$test" >"$out/$test.log" 2>&1; then echo "$test: passed"; else
        echo "$test: FAILED, see $out/$test.log"
        failed=1
    fi
done
for model in "$@"; do
    name=$(basename "$model" .onnx)
    "$prony" bench "$model" -t 3 --json "$out/$name.host.json" >"$out/$name.host.txt" || failed=1
    "$prony" bench "$model" -t 3 --device "$device" --json "$out/$name.device.json" >"$out/$name.device.txt" || failed=1
    "$prony" profile "$model" -t 3 --device "$device" --json "$out/$name.profile.json" --html "$out/$name.html" \
        --trace "$out/$name.trace.json" >"$out/$name.profile.txt" || failed=1
    "$prony" compare "$out/$name.host.json" "$out/$name.device.json" || true
done
exit "$failed"
