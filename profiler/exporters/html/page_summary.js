/* The summary of the page: the answers, the cards, the findings as text; and last, the details. */
'use strict';
/* ---- heading, cards, findings ---- */

function heading() {
  const c = report.config,
    s = report.system;
  $('title').textContent = modelName;
  $('title').title = report.model.name;
  document.title = modelName + ' · Prony';
  $('subtitle').textContent = [
    s.cpu_model,
    c.intra_op_threads &&
      (c.inter_op_threads > 1 ? c.intra_op_threads + ' intra-op x ' + c.inter_op_threads + ' inter-op threads' : plural(c.intra_op_threads, 'thread')),
    known(c.batch) && 'batch ' + c.batch,
    c.assumed_dims &&
      c.assumed_dims.length > 0 &&
      'assumed: ' +
        c.assumed_dims
          .map(d => d.name + '=' + d.value + (d.reason && d.reason !== 'batch' ? ' (' + d.reason + ')' : ''))
          .join(', '),
    c.precision,
    latency && plural(latency.runs, 'run'),
    'opset ' + report.model.opset,
    'prony ' + s.prony_version,
  ]
    .filter(Boolean)
    .join(' · ');
}

/* ---- the four answers: how long, how sure, what dominates, how much memory ---- */

const split = text => {
  const [number, ...unit] = String(text).split(' ');
  return [number, unit.length ? h('small', {}, unit.join(' ')) : null];
};
/* A question and its answer; `parts` [[name, value, colour]] as one bar, `mood` good, fair or bad. */
function answer(question, value, notes, { parts, mood, format } = {}) {
  const whole = (parts || []).reduce((sum, part) => sum + part[1], 0);
  const tell = ([name, part]) => name + ' ' + (format ? format(part) : percent(part / whole));
  $('answers').append(
    h(
      'div',
      { class: 'answer ' + (mood || '') },
      h('h2', {}, question),
      h('div', { class: 'value' }, split(value)),
      whole > 0 &&
        h(
          'div',
          { class: 'stack', role: 'img', 'aria-label': parts.map(tell).join(', ') },
          parts.map(part =>
            h('i', { title: tell(part), style: 'flex-grow:' + part[1] / whole + ';background:' + part[2] }),
          ),
        ),
      notes.filter(Boolean).map(note => h('p', {}, note)),
    ),
  );
}

function latencyAnswers() {
  if (!latency) {
    answer('How much work is it?', si(report.totals.flops) + 'FLOPs', [
      si(report.totals.macs) + ' MACs',
      'The model was not run: prony profile measures how long it takes',
    ]);
    answer('How sure is that?', report.totals.conserved === false ? 'not' : 'exact', [
      'Counted from shapes, not measured; nothing here is a time',
    ]);
    return;
  }
  const unsure = new Set(latency.unsupported_quantiles || []),
    tail = ['p99', 'p95', 'p90'].find(q => !unsure.has(q)),
    rates = report.throughput || {};
  answer('How long does a run take?', time(latency.median), [
    'median; ' +
      (tail ? tail.toUpperCase() + ' ' + time(latency[tail]) + ', ' : '') +
      time(latency.min) +
      ' to ' +
      time(latency.max),
    known(rates.samples_per_second) && si(rates.samples_per_second) + ' samples/s at batch ' + report.config.batch,
  ]);
  const [low, high] = latency.median_ci95,
    width = (high - low) / 2 / latency.median,
    busy = report.disturbance && report.disturbance.verdict === 'busy',
    drifts = latency.steady === false,
    mood = busy || drifts || width > 0.1 ? 'bad' : width > 0.03 || latency.steady !== true ? 'fair' : 'good';
  answer(
    'How sure is that?',
    '±' + (width * 100).toFixed(width < 0.095 ? 1 : 0) + ' %',
    [
      'median between ' + time(low) + ' and ' + time(high) + ' (95 %)',
      plural(latency.runs, 'run') +
        ', ' +
        (latency.steady === true
          ? 'steady'
          : drifts
            ? 'not steady: drift ' + (latency.drift * 100).toFixed(0) + ' %'
            : 'steadiness unknown') +
        (busy ? '; other processes kept the processors busy' : ''),
    ],
    { mood },
  );
}

function dominatingAnswer() {
  const key = stamped ? 'share' : 'flops_share',
    what = stamped ? 'time' : 'FLOPs',
    top = types[0];
  if (!top || !known(top[key])) return;
  const shown = types.slice(0, palette.length).filter(t => t[key] > 0),
    rest = types.slice(palette.length).reduce((sum, t) => sum + (t[key] || 0), 0),
    value = l => (stamped ? l.share || 0 : l.flops || 0),
    first = layers.reduce((best, l) => (value(l) > value(best) ? l : best), layers[0]);
  answer(
    'What dominates?',
    top.op + ' ' + percent(top[key]),
    [
      'of the ' + what + ', in ' + plural(top.count, stamped ? 'operator' : 'layer'),
      'first layer: ' +
        shortName(first.name || first.op) +
        ', ' +
        percent(stamped ? first.share : first.flops / (report.totals.flops || 1)),
    ],
    { parts: [...shown.map(t => [t.op, t[key], typeColor(t.op)]), ['others', rest, '#8892a0']], format: percent },
  );
}

/* The kinds of memory that the process holds; they sum up to it. */
const heldParts = held => [
  ['packed weights, constants', held.packed_bytes],
  ['model file', held.file_bytes],
  ['arena', held.arena_bytes],
  ['inputs', held.input_bytes],
  ['program and libraries', held.library_bytes],
  ['graphs, plans, samples', held.other_bytes],
];
function memoryAnswer() {
  const held = memory && memory.held;
  if (held) {
    const parts = heldParts(held).map(([name, part], i) => [name, part || 0, palette[i]]);
    const most = [...parts].sort((a, b) => b[1] - a[1]).slice(0, 3);
    answer(
      'How much memory does it hold?',
      bytes(held.resident_bytes),
      [
        most.map(([name, part]) => name + ' ' + bytes(part)).join(', '),
        known(memory.peak_rss_bytes) && 'peak of the process ' + bytes(memory.peak_rss_bytes),
      ],
      { parts, format: bytes },
    );
  } else if (memory)
    answer('How much memory?', bytes(memory.planned_bytes), [
      'arena; weights ' + bytes(report.model.parameter_bytes),
      known(memory.peak_rss_bytes) && 'peak of the process ' + bytes(memory.peak_rss_bytes),
    ]);
  else
    answer('How much memory?', bytes(report.model.parameter_bytes), [
      'weights; what a run needs is known when it runs',
    ]);
}

/* ---- the other figures ---- */

function card(label, value, note) {
  $('cards').append(
    h(
      'div',
      { class: 'card' },
      h('div', { class: 'label' }, label),
      h('div', { class: 'value' }, split(value)),
      h('div', { class: 'note' }, note || ''),
    ),
  );
}

function cards() {
  const t = report.totals,
    rates = report.throughput || {};
  if (latency) {
    const unsure = new Set(latency.unsupported_quantiles || []),
      tail = ['p999', 'p99', 'p95', 'p90'].find(q => !unsure.has(q)),
      names = { p90: 'P90', p95: 'P95', p99: 'P99', p999: 'P99.9' };
    card(
      'Tail latency' + (tail ? ', ' + names[tail] : ''),
      tail ? time(latency[tail]) : '–',
      (tail ? '' : 'too few runs for a P90; ') + 'max ' + time(latency.max) + ', min ' + time(latency.min),
    );
    const whole = report.end_to_end_ns;
    if (whole) card('End to end, median', time(whole.median), 'with pre- and postprocessing; mean ' + time(whole.mean));
    card('Arithmetic', si(executedRate()) + 'FLOP/s', roofShare());
  }
  card('MACs', si(t.macs), si(t.flops) + ' FLOPs' + (t.int_ops ? ', ' + si(t.int_ops) + ' integer operations' : ''));
  card('Parameters', si(t.parameters), bytes(report.model.parameter_bytes) + ' of weights');
  if (known(t.count)) card('Count, ' + report.config.count_preset, si(t.count), grouped(t.count));
  if (memory)
    card(
      'Arena',
      bytes(memory.planned_bytes),
      percent(memory.plan_gap) + ' above the lower bound; average live ' + bytes(memory.average_live_bytes),
    );
  if (memory && !memory.held)
    card(
      'Process, peak',
      known(memory.peak_rss_bytes) ? bytes(memory.peak_rss_bytes) : '–',
      'resident; packed weights ' + bytes(memory.packed_weight_bytes),
    );
  if (report.cpu)
    card(
      'CPU use',
      percent(report.cpu.utilisation),
      'of ' +
        plural(runThreads(), 'thread') +
        '; ' +
        plural(report.cpu.involuntary_switches, 'involuntary switch', 'involuntary switches'),
    );
  const device = report.device;
  if (device && known(device.busy_share))
    card(
      'Device use',
      percent(device.busy_share),
      device.info.name +
        ': ' +
        plural(device.operators_on_device, 'operator') +
        ' there, ' +
        device.operators_on_host +
        ' on the host; copies ' +
        percent(device.copy_share) +
        ', ' +
        bytes(device.to_device_bytes + device.from_device_bytes) +
        ' a run; memory ' +
        bytes(device.values_bytes + device.constants_bytes),
    );
  const roofed = ((device && device.operators) || []).filter(row => known(row.percent_of_roof) && row.busy_ns > 0);
  if (device && device.peaks && roofed.length) {
    const busy = roofed.reduce((sum, row) => sum + row.busy_ns, 0);
    card(
      'Device roof',
      percent(roofed.reduce((sum, row) => sum + (row.percent_of_roof / 100) * row.busy_ns, 0) / busy),
      "mean of its operators by time; the device's roofs: " +
        si(device.peaks.flops_per_second) +
        'FLOP/s, ' +
        si(device.peaks.bytes_per_second) +
        'B/s',
    );
  }
  const sensors = device && device.sensors;
  if (sensors && known(sensors.power_mean_w))
    card(
      'Device power',
      sensors.power_mean_w.toFixed(0) + ' W',
      [
        'at most ' + sensors.power_max_w.toFixed(0) + ' W',
        known(sensors.clock_mean_mhz) && sensors.clock_mean_mhz.toFixed(0) + ' MHz',
        known(sensors.temperature_max_c) && sensors.temperature_max_c.toFixed(0) + ' °C',
        known(sensors.memory_used_bytes) && bytes(sensors.memory_used_bytes) + ' in use',
      ]
        .filter(Boolean)
        .join(', '),
    );
  if (report.coverage && known(report.coverage.time_share))
    card('Inside operators', percent(report.coverage.time_share), "of the runs' wall time");
  const cost = report.overhead && report.overhead.paired;
  if (cost && cost.share_ci95[1] - cost.share_ci95[0] < Math.abs(cost.share))
    card(
      'Profiling costs',
      (cost.share * 100).toFixed(2) + ' %',
      cost.share_ci95.map(end => (end * 100).toFixed(1)).join(' to ') +
        ' % (95 %), ' +
        plural(cost.pairs, 'pair') +
        ' of runs with and without it',
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
        'on ' +
        plural(report.evaluation.samples, 'sample'),
    );
  card(
    'Layers',
    grouped(t.layers),
    (operators.length ? plural(operators.length, 'operator') + ' executed; ' : '') + t.folded_layers + ' folded',
  );
}

/* Roofs of this report's precision at its thread count, or the nearest below it. */
/* That may work at once, of all workers. */
function runThreads() {
  return report.config.intra_op_threads * Math.max(1, report.config.inter_op_threads || 1);
}
function roofs() {
  const nearest = (list, keep) => {
    const best = new Map();
    for (const r of list || []) {
      if (r.threads > runThreads() || !keep(r)) continue;
      const key = r.level || r.precision,
        other = best.get(key);
      if (!other || r.threads > other.threads) best.set(key, r);
    }
    return [...best.values()];
  };
  if (!report.roof) return null;
  const rates = nearest(report.roof.compute, () => true),
    rate = precision => (rates.find(r => r.precision === precision) || { flops_per_second: 0 }).flops_per_second,
    products = o => (o.kernel_facts || {}).bf16_products;
  /* Some kernels make a product of float32 of several of bfloat16. */
  const peak = (report.operators || []).reduce((p, o) => (products(o) ? Math.max(p, rate('bf16') / products(o)) : p), rate('fp32'));
  return { peak: peak || null, levels: nearest(report.roof.memory, () => true) };
}
/* Of what kernels execute, which the peak is a peak of; the model's FLOPs over the same time are another rate. */
function executedRate() {
  const executed = report.totals.executed_flops ?? report.totals.flops;
  return report.throughput && (report.totals.flops ? (report.throughput.flops_per_second * executed) / report.totals.flops : 0);
}
function roofShare() {
  const roof = roofs(),
    rate = executedRate(),
    model = report.throughput && report.throughput.flops_per_second;
  return [
    'executed by kernels',
    roof && roof.peak && rate && percent(rate / roof.peak) + " of the machine's peak" + (report.roof.busy ? ', measured on a busy machine' : ''),
    Math.abs(rate - model) > 0.005 * model && si(model) + "FLOP/s by the model's FLOPs",
  ]
    .filter(Boolean)
    .join('; ');
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
        (half === 1 ? ' takes' : ' take') +
        ' half of the ' +
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
        'Inside ' +
          most.path +
          ', ' +
          most.name +
          ' (' +
          most.op +
          ') takes most, ' +
          percent(value(most)) +
          ' of the whole' +
          (known(most.executions) ? ', executed ' + (most.executions === 1 ? 'once' : plural(most.executions, 'time')) + ' per run' : '') +
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
            " lie outside Tukey's fences (" +
            (low > 0 ? time(low) + ' – ' : 'above ') +
            time(high) +
            ').'
        : "No run lies outside Tukey's fences.",
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
    h('h2', {}, 'In words'),
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
    list.push(plural(report.overhead.dropped_events, 'event') + ' were dropped for lack of room; operator times are incomplete.');
  if (latency && !latency.warmup_detected)
    list.push('No steady state was detected before measuring (' + report.config.warmup_runs + ' warm-up runs).');
  if (latency && (latency.unsupported_quantiles || []).length === 4)
    list.push('Only ' + plural(latency.runs, 'run') + ': too few for quantiles above the median.');
  if (list.length)
    $('warnings').append(
      h(
        'ul',
        { class: 'warning', role: 'note' },
        list.map(text => h('li', {}, text)),
      ),
    );
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
    ['cancelled in', latency && latency.stopped_at],
    ['seed', c.seed],
    ['load', known(p.load) ? time(p.load) : null],
    ['bind', known(p.bind) ? time(p.bind) : null],
    ['rewrite', known(p.rewrite) ? time(p.rewrite) : null],
    ['plan', known(p.plan) ? time(p.plan) : null],
    ['first run', known(p.first_run) ? time(p.first_run) : null],
  ]);
  if (memory)
    panel('Memory', [
      ...(memory.held
        ? [
            ['held', bytes(memory.held.resident_bytes)],
            ...heldParts(memory.held).map(([name, part]) => [name, bytes(part)]),
          ]
        : [['packed weights', bytes(memory.packed_weight_bytes)]]),
      ['peak of the process', known(memory.peak_rss_bytes) ? bytes(memory.peak_rss_bytes) : null],
      ['arena, planned', bytes(memory.planned_bytes)],
      ['lower bound of any plan', bytes(memory.lower_bound_bytes)],
      ['average live', bytes(memory.average_live_bytes)],
      ['scratch', known(memory.scratch_bytes) ? bytes(memory.scratch_bytes) : null],
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
latencyAnswers();
dominatingAnswer();
memoryAnswer();
cards();
findings();
details();
