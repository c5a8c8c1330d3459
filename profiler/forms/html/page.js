/* The page's ground: the report that lies in it, numbers for people, the theme, cards, findings, details. Everything from
 * the report reaches the document as text, never as markup. */
'use strict';
const report = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);

/* Element with attributes, listeners (functions) and children. */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === 'function') element.addEventListener(key, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

/* ---- numbers ---- */

function digits3(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 || (Number.isInteger(value) && size < 1000) ? 0 : size >= 10 ? 1 : 2);
}
function scaled(value, step, units) {
  let unit = 0;
  while (Math.abs(value) >= step * 0.9995 && unit + 1 < units.length) {
    value /= step;
    unit++;
  }
  return digits3(value) + (units[unit] ? ' ' + units[unit] : '');
}
const known = value => value !== null && value !== undefined && !Number.isNaN(value);
const si = value =>
  !known(value)
    ? '–'
    : Math.abs(value) > 0 && Math.abs(value) < 1
      ? Number(value).toPrecision(2)
      : scaled(value, 1000, ['', 'k', 'M', 'G', 'T', 'P', 'E']);
const bytes = value => (known(value) ? scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']) : '–');
const time = ns => (known(ns) ? scaled(ns, 1000, ['ns', 'µs', 'ms', 's'].slice(0, 4)) : '–');
const percent = share => (known(share) ? (share * 100).toFixed(1) + ' %' : '–');
const grouped = value => (known(value) ? String(value).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f') : '–');
const shape = value =>
  !value ? '–' : !value.shape ? '?' : value.shape.length ? value.shape.map(d => d ?? '?').join('×') : 'scalar';
const plural = (count, noun, many) => grouped(count) + ' ' + (count === 1 ? noun : many || noun + 's');

/* ---- the report, joined ---- */

const layers = report.layers || [],
  operators = report.operators || [],
  modules = report.modules || [];
const memory = report.memory || null,
  latency = report.latency_ns || null;
const stamped = operators.some(o => o.time_ns);
const seconds = o => (o.time_ns ? o.time_ns.mean / 1e9 : 0);
for (const l of layers) {
  l.time = l.time_ns ? l.time_ns.mean : null;
  l.kernel =
    l.operator === null || l.operator === undefined || !operators[l.operator] ? '' : operators[l.operator].kernel || '';
  l.backend = l.kernel ? operators[l.operator].backend || '' : '';
  l.rate = l.time > 0 && l.flops ? (l.flops / l.time) * 1e9 : null;
  l.output = shape(l.outputs && l.outputs[0]);
}
for (const o of operators) {
  o.time = o.time_ns ? o.time_ns.mean : null;
  o.rate = o.flops_per_second ?? null;
  o.layer_count = o.layers.length;
  const several = o.parallel && o.threads > 1;
  o.cores = several ? o.parallel.achieved_cores : null;
  o.imbalance = several ? o.parallel.imbalance : null;
}
/* What runs in subgraphs hangs below the row that it is inside of: row.inside has a group per subgraph, each with its rows.
 * It is part of that row's figures, and in no sum. */
for (const [level, owners, rows] of [
  ['layers', layers, report.nested_layers || []],
  ['operators', operators, report.nested_operators || []],
])
  for (const row of rows) {
    const around = known(row.parent) ? rows[row.parent] : owners[row.owner];
    row.nested = level;
    row.time = row.time_ns && row.executions ? row.time_ns.mean : null;
    if (!row.executions) row.share = null;
    row.rate = row.time > 0 && row.flops ? (row.flops / row.time) * 1e9 : null;
    if (level === 'layers') {
      row.output = shape(row.outputs[0]);
      const by = known(row.operator) ? report.nested_operators[row.operator] : null;
      row.kernel = (by && by.kernel) || '';
      row.backend = (by && by.backend) || '';
    } else row.layer_count = row.layers.length;
    around.inside = around.inside || [];
    let group = around.inside[around.inside.length - 1];
    if (!group || group.name !== row.subgraph)
      around.inside.push((group = { heading: true, name: row.subgraph, executions: row.executions, depth: row.depth, rows: [] }));
    group.rows.push(row);
  }
const inside = row => (row.inside || []).flatMap(group => group.rows);
const allInside = row => inside(row).flatMap(child => [child, ...allInside(child)]);

for (const m of modules) {
  m.time = m.time_ns ?? null;
  m.name = m.path || '__root__';
}

/* Rows by operator type: of operators where they were timed, else of layers. */
const types = (() => {
  const byType = new Map();
  for (const row of stamped ? operators : layers) {
    let t = byType.get(row.op);
    if (!t)
      byType.set(
        row.op,
        (t = {
          name: row.op,
          op: row.op,
          count: 0,
          time: stamped ? 0 : null,
          share: stamped ? 0 : null,
          macs: 0,
          flops: 0,
          parameters: 0,
          bytes: 0,
        }),
      );
    t.count++;
    for (const key of ['macs', 'flops', 'parameters', 'bytes']) t[key] += row[key] || 0;
    if (stamped) {
      t.time += row.time || 0;
      t.share += row.share || 0;
    }
  }
  const all = [...byType.values()];
  for (const t of all) {
    t.flops_share = report.totals.flops ? t.flops / report.totals.flops : null;
    t.rate = t.time > 0 && t.flops ? (t.flops / t.time) * 1e9 : null;
  }
  return all.sort((a, b) => (stamped ? b.share - a.share : b.flops - a.flops));
})();

/* ---- theme ---- */

const themeListeners = [];
function storedTheme() {
  try {
    return localStorage.getItem('prony-theme');
  } catch (e) {
    return null;
  }
}
function applyTheme(name) {
  document.documentElement.dataset.theme = name;
  $('theme').textContent = name === 'dark' ? '☀ light' : '☾ dark';
  themeListeners.forEach(listener => listener());
}
const systemDark = matchMedia('(prefers-color-scheme: dark)');
systemDark.addEventListener('change', () => {
  if (!storedTheme()) applyTheme(systemDark.matches ? 'dark' : 'light');
});
$('theme').addEventListener('click', () => {
  const name = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem('prony-theme', name);
  } catch (e) {
    /* a page without storage keeps its theme for this visit */
  }
  applyTheme(name);
});

function download(name, type, text) {
  const link = h('a', { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
const modelName = (report.model.name || 'model').replace(/^.*\//, '');
const fileName = modelName.replace(/[^\w.-]+/g, '_');
$('download').addEventListener('click', () => download(fileName + '.json', 'application/json', $('data').textContent));

/* ---- heading, cards, findings ---- */

function heading() {
  const c = report.config,
    s = report.system;
  $('title').textContent = modelName;
  $('title').title = report.model.name;
  document.title = modelName + ' · Prony';
  $('subtitle').textContent = [
    s.cpu_model,
    c.intra_op_threads && plural(c.intra_op_threads, 'thread'),
    known(c.batch) && 'batch ' + c.batch,
    c.assumed_dims &&
      c.assumed_dims.length > 0 &&
      'assumed: ' + c.assumed_dims.map((d) => d.name + '=' + d.value + (d.reason && d.reason !== 'batch' ? ' (' + d.reason + ')' : '')).join(', '),
    c.precision,
    latency && plural(latency.runs, 'run'),
    'opset ' + report.model.opset,
    'prony ' + s.prony_version,
  ]
    .filter(Boolean)
    .join(' · ');
}

function card(label, value, note) {
  const [number, ...unit] = String(value).split(' ');
  $('cards').append(
    h(
      'div',
      { class: 'card' },
      h('div', { class: 'label' }, label),
      h('div', { class: 'value' }, number, unit.length ? h('small', {}, unit.join(' ')) : null),
      h('div', { class: 'note' }, note || ''),
    ),
  );
}

function cards() {
  const t = report.totals,
    rates = report.throughput || {};
  if (latency) {
    card(
      'Latency, median',
      time(latency.median),
      '95 % interval ' + time(latency.median_ci95[0]) + ' – ' + time(latency.median_ci95[1]),
    );
    const unsure = new Set(latency.unsupported_quantiles || []);
    const tail = ['p999', 'p99', 'p95', 'p90'].find(q => !unsure.has(q));
    const names = { p90: 'P90', p95: 'P95', p99: 'P99', p999: 'P99.9' };
    card(
      'Tail latency' + (tail ? ', ' + names[tail] : ''),
      tail ? time(latency[tail]) : '–',
      (tail ? '' : 'too few runs for a P90; ') + 'max ' + time(latency.max) + ', min ' + time(latency.min),
    );
    const whole = report.end_to_end_ns;
    if (whole) card('End to end, median', time(whole.median), 'with pre- and postprocessing; mean ' + time(whole.mean));
    if (known(rates.samples_per_second))
      card('Throughput', si(rates.samples_per_second) + ' samples/s', 'batch ' + report.config.batch);
    card('Arithmetic', si(rates.flops_per_second) + 'FLOP/s', roofShare());
  }
  card('MACs', si(t.macs), si(t.flops) + ' FLOPs' + (t.int_ops ? ', ' + si(t.int_ops) + ' integer operations' : ''));
  card('Parameters', si(t.parameters), bytes(report.model.parameter_bytes) + ' of weights');
  if (known(t.count)) card('Count, ' + report.config.count_preset, si(t.count), grouped(t.count));
  if (memory) {
    card(
      'Arena',
      bytes(memory.planned_bytes),
      percent(memory.plan_gap) + ' above the lower bound; average live ' + bytes(memory.average_live_bytes),
    );
    const held = memory.held;
    if (held)
      card(
        'Memory held',
        bytes(held.resident_bytes),
        'model file ' + bytes(held.file_bytes) + ' + packed weights, constants ' + bytes(held.packed_bytes) + ' + arena ' +
          bytes(held.arena_bytes) + ' + inputs ' + bytes(held.input_bytes) + ' + program and libraries ' +
          bytes(held.library_bytes) + ' + graphs, plans, samples ' + bytes(held.other_bytes) +
          (known(memory.peak_rss_bytes) ? '; peak ' + bytes(memory.peak_rss_bytes) : ''),
      );
    else
      card(
        'Process, peak',
        known(memory.peak_rss_bytes) ? bytes(memory.peak_rss_bytes) : '–',
        'resident; packed weights ' + bytes(memory.packed_weight_bytes),
      );
  }
  if (report.cpu)
    card(
      'CPU use',
      percent(report.cpu.utilisation),
      'of ' +
        plural(report.config.intra_op_threads, 'thread') +
        '; ' +
        plural(report.cpu.involuntary_switches, 'involuntary switch', 'involuntary switches'),
    );
  if (report.coverage && known(report.coverage.time_share))
    card('Inside operators', percent(report.coverage.time_share), "of the runs' wall time");
  const cost = report.overhead && report.overhead.paired;
  if (cost && cost.share_ci95[1] - cost.share_ci95[0] < Math.abs(cost.share))
    card(
      'Profiling costs',
      (cost.share * 100).toFixed(2) + ' %',
      cost.share_ci95.map((end) => (end * 100).toFixed(1)).join(' to ') + ' % (95 %), ' + plural(cost.pairs, 'pair') + ' of runs on and off',
    );
  else if (report.overhead)
    card(
      'Profiler overhead',
      (report.overhead.share * 100).toFixed(2) + ' %',
      report.overhead.ns_per_event.toFixed(0) + ' ns per event',
    );
  if (report.evaluation)
    card(
      report.evaluation.metric.replace(/_/g, ' '),
      report.evaluation.value <= 1 ? (report.evaluation.value * 100).toFixed(2) + ' %' : si(report.evaluation.value),
      (report.evaluation.further || []).map(f => f.metric.replace(/_/g, ' ') + ' ' + percent(f.value) + ', ').join('') +
        'on ' + plural(report.evaluation.samples, 'sample'),
    );
  card(
    'Layers',
    grouped(t.layers),
    (operators.length ? plural(operators.length, 'operator') + ' executed; ' : '') + t.folded_layers + ' folded',
  );
}

/* Roofs of this report's precision at its thread count, or the nearest below it. */
function roofs() {
  const nearest = (list, keep) => {
    const best = new Map();
    for (const r of list || []) {
      if (r.threads > report.config.intra_op_threads || !keep(r)) continue;
      const key = r.level || r.precision,
        other = best.get(key);
      if (!other || r.threads > other.threads) best.set(key, r);
    }
    return [...best.values()];
  };
  if (!report.roof) return null;
  const peak = nearest(report.roof.compute, r => r.precision === (report.config.precision || 'fp32'))[0];
  return { peak: peak ? peak.flops_per_second : null, levels: nearest(report.roof.memory, () => true) };
}
function roofShare() {
  const roof = roofs(),
    rate = report.throughput && report.throughput.flops_per_second;
  return roof && roof.peak && rate
    ? percent(rate / roof.peak) + " of the machine's peak"
    : 'useful operations of the model';
}

/* A heading, then what the figures say in words; computed, never guessed. */
function findings() {
  const items = [],
    t = report.totals;
  const key = stamped ? 'share' : 'flops_share',
    what = stamped ? 'time' : 'FLOPs';
  if (types.length && known(types[0][key])) {
    const top = types[0];
    items.push(
      top.op +
        ' takes ' +
        percent(top[key]) +
        ' of the ' +
        what +
        ' in ' +
        plural(top.count, stamped ? 'operator' : 'layer') +
        (stamped
          ? ', with ' + percent(top.flops_share) + ' of the FLOPs' + (top.rate ? ', at ' + si(top.rate) + 'FLOP/s' : '')
          : '') +
        '.',
    );
    const cheap = types.filter(x => stamped && x.share > 0.03 && x.flops_share < x.share / 5);
    if (cheap.length)
      items.push(
        'Much time for few FLOPs: ' +
          cheap
            .slice(0, 4)
            .map(x => x.op + ' (' + percent(x.share) + ' of the time)')
            .join(', ') +
          '.',
      );
  }
  const value = l => (stamped ? l.share || 0 : t.flops ? l.flops / t.flops : 0);
  const sorted = layers.filter(l => value(l) > 0).sort((a, b) => value(b) - value(a));
  if (sorted.length) {
    let sum = 0,
      half = 0;
    while (half < sorted.length && sum < 0.5) sum += value(sorted[half++]);
    items.push(
      half +
        ' of ' +
        plural(layers.length, 'layer') +
        ' take half of the ' +
        what +
        '; the first is ' +
        (sorted[0].name || sorted[0].op) +
        ' with ' +
        percent(value(sorted[0])) +
        '.',
    );
  }
  if (sorted.length && sorted[0].inside) {
    const most = allInside(sorted[0])
      .filter(row => !row.inside && value(row) > 0)
      .sort((a, b) => value(b) - value(a))[0];
    if (most)
      items.push(
        'Inside of ' +
          most.path +
          ', ' +
          most.name +
          ' (' +
          most.op +
          ') takes most, ' +
          percent(value(most)) +
          ' of the whole' +
          (known(most.executions) ? ', executed ' + plural(most.executions, 'time') + ' a run' : '') +
          '.',
      );
  }
  const bound = new Map();
  for (const o of operators) if (o.bound && o.share) bound.set(o.bound, (bound.get(o.bound) || 0) + o.share);
  if (bound.size)
    items.push(
      'Bound by: ' +
        [...bound]
          .sort((a, b) => b[1] - a[1])
          .map(([name, share]) => name + ' ' + percent(share))
          .join(', ') +
        ' of the time.',
    );
  if (memory && memory.timeline && memory.timeline.length) {
    const peak = memory.timeline.reduce((a, b) => (b.live_bytes > a.live_bytes ? b : a));
    items.push(
      'Live memory peaks at step ' +
        peak.step +
        (operators[peak.step] ? ' (' + operators[peak.step].name + ')' : '') +
        ' with ' +
        bytes(peak.live_bytes) +
        '.',
    );
  }
  if (latency && latency.samples && latency.samples.length > 20) {
    const [low, high] = fences(latency.samples),
      out = latency.samples.filter(x => x < low || x > high).length;
    items.push(
      out
        ? plural(out, 'run') +
            ' of ' +
            latency.samples.length +
            " lie outside of Tukey's fences (" +
            (low > 0 ? time(low) + ' – ' : 'above ') +
            time(high) +
            ').'
        : "No run lies outside of Tukey's fences.",
    );
  }
  if (report.phases_ns && report.phases_ns.first_run)
    items.push(
      'The first run took ' +
        time(report.phases_ns.first_run) +
        (latency ? ', ' + (report.phases_ns.first_run / latency.median).toFixed(1) + ' times the median' : '') +
        '; planning before it ' +
        time(report.phases_ns.plan) +
        '.',
    );
  if (t.conserved)
    items.push('Counts agree: model = sum of layers' + (operators.length ? ' = sum of operators' : '') + ', exactly.');
  $('findings').append(
    h('h2', {}, 'What dominates'),
    h(
      'ul',
      {},
      items.map(text => h('li', {}, text)),
    ),
  );
}

function fences(samples) {
  const s = [...samples].sort((a, b) => a - b),
    q1 = s[Math.floor((s.length - 1) / 4)],
    q3 = s[Math.floor(((s.length - 1) * 3) / 4)];
  return [q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)];
}

function warnings() {
  const list = [];
  if (report.disturbance && report.disturbance.text) list.push(report.disturbance.text + '.');
  if (report.unsupported_operators && report.unsupported_operators.length)
    list.push('This version cannot run: ' + report.unsupported_operators.join(', '));
  if (operators.length && report.totals.conserved === false)
    list.push('Counts differ between layers and operators: this is a defect of Prony.');
  if (report.overhead && report.overhead.dropped_events)
    list.push(plural(report.overhead.dropped_events, 'event') + ' found no room; operator times are incomplete.');
  if (latency && !latency.warmup_detected)
    list.push('No steady state was detected before measuring (' + report.config.warmup_runs + ' warm-up runs).');
  if (latency && (latency.unsupported_quantiles || []).length === 4)
    list.push('Only ' + plural(latency.runs, 'run') + ': no quantile above the median is supported by that many.');
  list.forEach(text => $('warnings').append(h('div', { class: 'warning' }, text)));
}

/* ---- details ---- */

function facts(pairs) {
  return h(
    'dl',
    {},
    pairs
      .filter(([, value]) => known(value) && value !== '')
      .flatMap(([key, value]) => [h('dt', {}, key), h('dd', {}, String(value))]),
  );
}
function ports(list) {
  return (list || []).map(p => p.name + ': ' + (p.type || p.kind || '?') + ' ' + shape(p)).join('; ');
}
function details() {
  const m = report.model,
    c = report.config,
    s = report.system,
    p = report.phases_ns || {};
  const panel = (title, pairs) => $('details').append(h('div', { class: 'panel' }, h('h2', {}, title), facts(pairs)));
  panel('Model', [
    ['name', m.name],
    ['inputs', ports(m.inputs)],
    ['outputs', ports(m.outputs)],
    ['opset', m.opset],
    ['IR version', m.ir_version],
    ['producer', m.producer],
    ['nodes', grouped(m.nodes)],
    ['file', bytes(m.file_bytes)],
    ['SHA-256', m.sha256],
    ["outputs' SHA-256", report.output_sha256],
  ]);
  panel('Run', [
    ['threads', c.intra_op_threads && c.intra_op_threads + ' intra-op, ' + c.inter_op_threads + ' inter-op'],
    ['affinity', c.affinity],
    ['batch', c.batch],
    [
      'free dimensions',
      Object.entries(c.dims || {})
        .map(([k, v]) => k + ' = ' + v)
        .join(', '),
    ],
    ['precision', c.precision],
    ['rewrites', c.rewrites ? 'on' : 'off'],
    ['reuse of memory', c.reuse === false ? 'off' : 'on'],
    ['warm-up runs', c.warmup_runs],
    ['runs', c.runs],
    ['stopped', latency && latency.stop_reason],
    ['called off in', latency && latency.stopped_at],
    ['seed', c.seed],
    ['load', known(p.load) ? time(p.load) : null],
    ['bind', known(p.bind) ? time(p.bind) : null],
    ['rewrite', known(p.rewrite) ? time(p.rewrite) : null],
    ['plan', known(p.plan) ? time(p.plan) : null],
    ['first run', known(p.first_run) ? time(p.first_run) : null],
  ]);
  panel('Machine and build', [
    ['host', s.host_name],
    ['CPU', s.cpu_model],
    ['cores', s.physical_cores && s.physical_cores + ' physical usable, ' + s.cpu_count + ' logical'],
    ['quota', s.quota_cpus && s.quota_cpus + ' CPUs'],
    ['instruction set', s.isa_used],
    ['governor', s.governor],
    ['load average', s.load_avg_1min],
    ['caches', (s.caches || []).map(x => 'L' + x.level + ' ' + (x.type || '') + ' ' + bytes(x.bytes)).join(', ')],
    ['memory', known(s.total_memory_bytes) ? bytes(s.total_memory_bytes) : null],
    ['system', [s.os, s.os_release].filter(Boolean).join(' ')],
    [
      'libraries',
      Object.entries(s.libraries || {})
        .map(([k, v]) => k + ' ' + v)
        .join(', '),
    ],
    [
      'prony',
      s.prony_version +
        (s.git_commit ? ' (' + s.git_commit.slice(0, 12) + (s.git_commit.includes('-') ? ', changed' : '') + ')' : ''),
    ],
    ['compiler', s.compiler],
    ['flags', s.compiler_flags],
  ]);
}

applyTheme(storedTheme() || (systemDark.matches ? 'dark' : 'light'));
heading();
warnings();
cards();
findings();
details();
