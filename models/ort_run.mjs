// Runs one ONNX model in ONNX Runtime on .npy inputs and writes its outputs, in model order, as OUT/output_K.npy.
//
//   node models/ort_run.mjs PACKAGES MODEL OUT [--optimise LEVEL] NAME=FILE.npy ...
//
// PACKAGES is the folder that holds node_modules. One thread; LEVEL is disabled, basic, extended or all (default).
import { createRequire } from 'node:module';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const TYPES = {
  '<f4': ['float32', Float32Array], '<f8': ['float64', Float64Array], '<i8': ['int64', BigInt64Array],
  '<i4': ['int32', Int32Array], '|i1': ['int8', Int8Array], '|u1': ['uint8', Uint8Array], '|b1': ['bool', Uint8Array],
};

function readNpy(file) {
  const bytes = readFileSync(file);
  if (bytes.toString('latin1', 1, 6) !== 'NUMPY' || bytes[6] !== 1) throw new Error(`${file}: not an .npy file of version 1`);
  const start = 10 + bytes.readUInt16LE(8);
  const header = bytes.toString('latin1', 10, start);
  const descr = header.match(/'descr': '([^']+)'/)[1];
  const dims = header.match(/'shape': \(([^)]*)\)/)[1].split(',').filter((d) => d.trim()).map(Number);
  if (!TYPES[descr] || /True/.test(header)) throw new Error(`${file}: ${descr} or column order is not supported`);
  const [type, Array_] = TYPES[descr];
  const data = new Array_(Uint8Array.from(bytes.subarray(start)).buffer); // a copy, because typed arrays must be aligned
  return { type, data, dims };
}

function writeNpy(file, tensor) {
  const descr = Object.keys(TYPES).find((key) => TYPES[key][0] === tensor.type);
  if (!descr) throw new Error(`${file}: output type ${tensor.type} is not supported`);
  const shape = tensor.dims.map((d) => `${d},`).join('');
  let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape}), }`;
  header = header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11) + '\n';
  const magic = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8]);
  const { buffer, byteOffset, byteLength } = tensor.data;
  writeFileSync(file, Buffer.concat([magic, Buffer.from(header, 'latin1'), Buffer.from(buffer, byteOffset, byteLength)]));
}

async function main() {
  const [packages, model, out, ...rest] = process.argv.slice(2);
  const level = rest[0] === '--optimise' ? rest.splice(0, 2)[1] : 'all';
  const ort = createRequire(join(resolve(packages), 'package.json'))('onnxruntime-node');
  const session = await ort.InferenceSession.create(model, {
    graphOptimizationLevel: level, intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3,
  });
  const feeds = {};
  for (const pair of rest) {
    const cut = pair.indexOf('=');
    const { type, data, dims } = readNpy(pair.slice(cut + 1));
    feeds[pair.slice(0, cut)] = new ort.Tensor(type, data, dims);
  }
  const results = await session.run(feeds);
  mkdirSync(out, { recursive: true });
  session.outputNames.forEach((name, k) => writeNpy(join(out, `output_${k}.npy`), results[name]));
}

main().catch((error) => {
  console.error(`ort_run: ${error.message}`);
  process.exit(1);
});
