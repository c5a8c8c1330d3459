// Greedy ids of a decoder in ONNX Runtime, one line.
//
//   node models/ort_generate.mjs PACKAGES MODEL NEW ID,ID,...
//
// PACKAGES is the folder that holds node_modules. One thread, one sequence; caches are past_* and present* as export_decoders.py names
// them, and are handed over as they come.
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const int64 = (ort, values, dims) => new ort.Tensor('int64', BigInt64Array.from(values, BigInt), dims);

function largest(logits) {
  const [, rows, width] = logits.dims;
  const row = logits.data.subarray((rows - 1) * width, rows * width);
  let best = 0;
  for (let k = 1; k < width; k++) if (row[k] > row[best]) best = k;
  return best;
}

async function main() {
  const [packages, model, count, prompt] = process.argv.slice(2);
  const ort = createRequire(join(resolve(packages), 'package.json'))('onnxruntime-node');
  const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3 });
  const present = (name) => name.replace('past_key_values', 'present').replace('past_', 'present_');
  const pasts = session.inputNames.filter((name) => name.startsWith('past'));
  const caches = {};
  for (const { name, shape } of session.inputMetadata) {
    if (!pasts.includes(name)) continue;
    const dims = shape.map((d) => (typeof d === 'number' ? d : d.startsWith('batch') ? 1 : 0));
    caches[name] = new ort.Tensor('float32', new Float32Array(0), dims);
  }
  const tokens = prompt.split(',').map(Number), made = [];
  for (let step = 0, past = 0; step < Number(count); step++) {
    const ids = tokens.slice(past), total = past + ids.length;
    const feeds = { input_ids: int64(ort, ids, [1, ids.length]), ...caches };
    if (session.inputNames.includes('attention_mask')) feeds.attention_mask = int64(ort, Array(total).fill(1), [1, total]);
    if (session.inputNames.includes('position_ids')) feeds.position_ids = int64(ort, ids.map((_, k) => past + k), [1, ids.length]);
    const results = await session.run(feeds);
    for (const name of pasts) caches[name] = results[present(name)];
    if (pasts.length) past = total;
    made.push(largest(results.logits));
    tokens.push(made[step]);
  }
  console.log(made.join(','));
}

main().catch((error) => {
  console.error(`ort_generate: ${error.message}`);
  process.exit(1);
});
