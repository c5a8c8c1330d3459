import sys
import threading

import numpy as np
import onnxruntime as ort

sys.path.insert(0, sys.argv[1])
import onnx_models  # noqa: E402: its folder is the argument

mlp, step, cached, slow = onnx_models.mlp(), onnx_models.step(), onnx_models.cached_step(), onnx_models.slow()

# classification
session = ort.InferenceSession(mlp, sess_options=ort.SessionOptions(), providers=["CPUExecutionProvider"])
given, made = session.get_inputs()[0], session.get_outputs()[0]
x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
[scores] = session.run([made.name], {given.name: x})
print(f"classification: input '{given.name}' {given.type} {given.shape}, output '{made.name}' {made.type} {made.shape}; "
      f"{scores.shape} {scores.dtype}")
print("batches:", [session.run(None, {given.name: np.zeros((n, 8), np.float32)})[0].shape for n in (1, 2, 5)])
print("providers:", session.get_providers())

# token generation: the whole text each time, and a state that is handed on
whole, stateful = ort.InferenceSession(step), ort.InferenceSession(cached)
tokens = np.array([[3]], np.int64)
for _ in range(5):
    logits = whole.run(None, {"tokens": tokens})[0]
    tokens = np.concatenate([tokens, logits[:, -1:].argmax(-1)], axis=1)
again, state = [3], np.zeros((1, 16), np.float32)
for _ in range(5):
    logits, state = stateful.run(["logits", "new_state"], {"token": np.array([again[-1]], np.int64), "state": state})
    again.append(int(logits.argmax()))
print(f"generation: {tokens.shape[1]} tokens, {tokens.dtype}, the same with and without a cache"
      if tokens[0].tolist() == again else f"generation: {tokens[0].tolist()} and {again}")

# io_binding
binding = session.io_binding()
out = ort.OrtValue.ortvalue_from_numpy(np.empty((4, 32), np.float32))
binding.bind_cpu_input("x", x)
binding.bind_ortvalue_output("y", out)
session.run_with_iobinding(binding)
same = np.array_equal(out.numpy(), scores) and np.array_equal(binding.copy_outputs_to_cpu()[0], scores)
print("io_binding: outputs are where they were bound" if same else "io_binding: differs")
y = np.empty((4, 32), np.float32)
binding = session.io_binding()
binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
session.run_with_iobinding(binding)
print("io_binding by address:", np.array_equal(y, scores))
[value] = session.run_with_ort_values(["y"], {"x": ort.OrtValue.ortvalue_from_numpy(x)})
print("ort values:", list(value.shape()), value.data_type(), value.element_type(), value.device_name(),
      np.array_equal(value.numpy(), scores))

# run_options: another thread ends the run
options, endless = ort.RunOptions(), ort.InferenceSession(slow)


def terminate():
    options.terminate = True


timer = threading.Timer(0.3, terminate)
timer.start()
try:
    endless.run(None, {"n": np.array(2**30, np.int64), "x": np.zeros((), np.float32)}, options)
    print("run_options: ended by itself")
except Exception as error:
    print("run_options: terminated" if "terminate" in str(error) else f"run_options: {error}")
timer.join()

# errors
kinds = []
for call in (lambda: session.run(None, {"x": x.astype(np.float64)}), lambda: session.run(None, {"x": x[:, :3]}),
             lambda: session.run(["nothing"], {"x": x}), lambda: session.run(None, {}),
             lambda: ort.InferenceSession(mlp, providers=["NoProvider"]), lambda: ort.InferenceSession("nowhere.onnx"),
             lambda: ort.InferenceSession(b"not a model")):
    try:
        call()
        kinds.append("nothing")
    except Exception as error:
        kinds.append(type(error).__name__)
print("errors:", *kinds)
