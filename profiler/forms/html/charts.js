/* The charts, drawn by Chart.js. Each is a function that returns a configuration for the colours of the theme; a change of
 * theme draws all of them again. */
'use strict';
const palette = ['#3b78c4', '#e0862a', '#2f9e6b', '#b55bb0', '#c2453c', '#3aa6b0', '#8a7a2e', '#7a6ff0'];
const color = name =>
  getComputedStyle(document.documentElement)
    .getPropertyValue('--' + name)
    .trim();
const typeOrder = new Map(types.map((t, i) => [t.op, i]));
const typeColor = op => {
  const i = typeOrder.get(op) ?? 99;
  return i < palette.length ? palette[i] : '#8892a0';
};
const faint = (hex, alpha) =>
  hex +
  Math.round(alpha * 255)
    .toString(16)
    .padStart(2, '0');
/* As many of the last parts of a path as a label holds. */
const shortName = name => {
  const parts = name.split('/').filter(Boolean);
  let text = parts.pop() || name;
  while (parts.length && (parts[parts.length - 1] + text).length < 33) text = parts.pop() + '/' + text;
  return text.length > 34 ? '…' + text.slice(-33) : text;
};
/* White or black, whichever is read better on a colour. */
const inkOn = hex => {
  const [r, g, b] = [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 150 ? '#10151c' : '#ffffff';
};
const drawn = new Map();

/* A panel with a heading, a line below it, controls and a canvas. `config` may return null: nothing to draw. */
function panel(id, title, sub, config, options = {}) {
  const canvas = h('canvas', { id: 'chart-' + id, role: 'img', 'aria-label': title });
  const note = h('p', { class: 'sub' }, sub);
  const box = h(
    'div',
    { class: 'panel' + (options.wide ? ' wide' : ''), id: 'panel-' + id },
    h('div', { class: 'head' }, h('h2', {}, title), options.controls || []),
    note,
    h('div', { class: 'canvas ' + (options.size || '') }, canvas),
    options.below || [],
  );
  $('charts').append(box);
  const draw = () => {
    if (drawn.has(id)) drawn.get(id).destroy();
    drawn.delete(id);
    const chosen = config(note);
    if (chosen) drawn.set(id, new Chart(canvas, chosen));
  };
  themeListeners.push(draw);
  return { draw, canvas, note };
}

function scale(title, format, extra = {}) {
  const { ticks, ...rest } = extra;
  return {
    title: { display: !!title, text: title, color: color('soft') },
    grid: { color: color('line') },
    border: { color: color('line') },
    ticks: {
      color: color('soft'),
      ...(format ? { callback: value => format(value) } : {}),
      maxRotation: 0,
      autoSkipPadding: 12,
      ...ticks,
    },
    ...rest,
  };
}
function base(scales, tooltip, extra = {}) {
  return {
    responsive: true,
    maintainAspectRatio: false,
    animation: false,
    scales,
    plugins: {
      legend: { display: false, labels: { color: color('ink'), boxWidth: 12 } },
      tooltip: { callbacks: tooltip, displayColors: false },
      ...extra.plugins,
    },
    ...extra.options,
  };
}

/* A step for byte axes: a power of two, so that the labels are round. */
const byteStep = most => 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, most) / 6)));

/* Writes the value behind each horizontal bar, where there is room. */
const values = {
  id: 'values',
  afterDatasetsDraw(chart, args, options) {
    if (!options.text) return;
    const { ctx, chartArea: area } = chart;
    ctx.save();
    ctx.font = '11px sans-serif';
    ctx.textBaseline = 'middle';
    chart.data.datasets.forEach((set, d) =>
      chart.getDatasetMeta(d).data.forEach((bar, i) => {
        const label = options.text(d, i),
          width = ctx.measureText(label).width,
          inside = bar.x + width + 8 > area.right;
        if (inside && bar.x - area.left < width + 12) return;
        const fill = Array.isArray(set.backgroundColor) ? set.backgroundColor[i] : set.backgroundColor;
        ctx.fillStyle = inside ? inkOn(fill) : color('soft');
        ctx.textAlign = inside ? 'right' : 'left';
        ctx.fillText(label, bar.x + (inside ? -5 : 5), bar.y);
      }),
    );
    ctx.restore();
  },
};

/* ---- time by layer, by type ---- */

function layerChart() {
  const by = h(
    'select',
    { 'aria-label': 'Figure', change: () => chart.draw() },
    [
      stamped && ['time', 'time'],
      ['flops', 'FLOPs'],
      ['bytes', 'bytes moved'],
      ['parameters', 'parameters'],
      ['memory_bytes', 'output bytes'],
    ]
      .filter(Boolean)
      .map(([v, t]) => h('option', { value: v }, t)),
  );
  const count = h(
    'select',
    { 'aria-label': 'How many', change: () => chart.draw() },
    [20, 50, 100].map(n => h('option', { value: n }, 'top ' + n)),
  );
  const chart = panel(
    'layers',
    'Layers that take most',
    '',
    note => {
      const key = by.value,
        format = key === 'time' ? time : /bytes/.test(key) ? bytes : si;
      const rows = layers
        .filter(l => l[key] > 0)
        .sort((a, b) => b[key] - a[key])
        .slice(0, +count.value);
      const sum = layers.reduce((total, l) => total + (l[key] || 0), 0),
        here = rows.reduce((total, l) => total + l[key], 0);
      note.textContent = rows.length
        ? 'The ' +
          rows.length +
          ' shown are ' +
          percent(here / sum) +
          ' of all ' +
          by.selectedOptions[0].textContent +
          '; coloured by operator type; click a bar for its row'
        : 'No layer has any.';
      chart.canvas.parentNode.style.height = Math.max(330, rows.length * 17 + 60) + 'px';
      return {
        type: 'bar',
        plugins: [values],
        data: {
          labels: rows.map(l => shortName(l.name || l.op)),
          datasets: [
            { data: rows.map(l => l[key]), backgroundColor: rows.map(l => typeColor(l.op)), maxBarThickness: 15 },
          ],
        },
        options: base(
          {
            x: scale('', format, { beginAtZero: true }),
            y: scale('', null, { grid: { display: false }, ticks: { autoSkip: false, font: { size: 11 } } }),
          },
          {
            title: items => rows[items[0].dataIndex].name,
            label: item => {
              const l = rows[item.dataIndex];
              return [
                l.op + ': ' + format(l[key]) + '  ' + percent(l[key] / sum),
                time(l.time) + (l.time_attributed ? ' (an estimate)' : '') + ', ' + si(l.flops) + ' FLOPs',
                l.kernel,
                l.output,
              ];
            },
          },
          {
            plugins: { values: { text: (d, i) => format(rows[i][key]) + '  ' + percent(rows[i][key] / sum) } },
            options: {
              indexAxis: 'y',
              onClick: (event, found) => found.length && showRow('layers', rows[found[0].index]),
            },
          },
        ),
      };
    },
    { controls: [by, count] },
  );
  chart.draw();
}

function typeChart() {
  const rows = types.slice(0, 14);
  panel(
    'types',
    stamped ? 'Time and FLOPs by type' : 'FLOPs by type',
    stamped
      ? "Share of the operators' time beside share of the FLOPs: where they part, the time is not spent on arithmetic"
      : 'Share of the FLOPs',
    () => ({
      type: 'bar',
      plugins: [values],
      data: {
        labels: rows.map(t => t.op),
        datasets: [
          ...(stamped
            ? [{ label: 'time', data: rows.map(t => t.share), backgroundColor: color('time'), maxBarThickness: 14 }]
            : []),
          {
            label: 'FLOPs',
            data: rows.map(t => t.flops_share || 0),
            backgroundColor: color('accent'),
            maxBarThickness: 14,
          },
        ],
      },
      options: base(
        {
          x: scale('', v => (v * 100).toFixed(0) + ' %', { beginAtZero: true }),
          y: scale('', null, { grid: { display: false }, ticks: { autoSkip: false } }),
        },
        {
          label: item => {
            const t = rows[item.dataIndex];
            return [
              item.dataset.label + ' ' + percent(item.raw),
              'n = ' +
                t.count +
                ', ' +
                time(t.time) +
                ', ' +
                si(t.flops) +
                ' FLOPs' +
                (t.rate ? ', ' + si(t.rate) + 'FLOP/s' : ''),
            ];
          },
        },
        {
          options: { indexAxis: 'y', onClick: (event, found) => found.length && filterType(rows[found[0].index].op) },
          plugins: {
            values: {
              text: (d, i) =>
                stamped && d === 0
                  ? time(rows[i].time) + '  ' + percent(rows[i].share)
                  : si(rows[i].flops) + '  ' + percent(rows[i].flops_share || 0),
            },
            legend: { display: true, labels: { color: color('ink'), boxWidth: 12 } },
          },
        },
      ),
    }),
  ).draw();
}

/* ---- roofline ---- */

function rooflineChart() {
  if (!stamped) return;
  const points = operators.filter(o => o.rate > 0 && o.arithmetic_intensity > 0),
    roof = roofs();
  const left = operators.length - points.length;
  const sub =
    (roof ? 'Points at the roof cannot go faster on this machine' : 'No roofs: prony machine has not been run here') +
    '; area is the share of time' +
    (left ? '; ' + plural(left, 'operator') + ' without FLOPs not shown' : '');
  panel(
    'roofline',
    'Roofline',
    points.length ? sub : 'No operator with floating-point work was timed.',
    () => {
      if (!points.length) return null;
      const groups = new Map();
      for (const o of points) {
        const key = (typeOrder.get(o.op) ?? 99) < 6 ? o.op : 'other';
        if (!groups.has(key)) groups.set(key, []);
        groups.get(key).push(o);
      }
      const low = 10 ** Math.floor(Math.log10(Math.min(0.1, ...points.map(o => o.arithmetic_intensity)))),
        high = 10 ** Math.ceil(Math.log10(Math.max(10, ...points.map(o => o.arithmetic_intensity)) * 1.1));
      const datasets = [...groups].map(([op, rows]) => ({
        label: op,
        data: rows.map(o => ({ x: o.arithmetic_intensity, y: o.rate, r: 3 + 22 * Math.sqrt(o.share || 0), o })),
        backgroundColor: faint(op === 'other' ? '#8892a0' : typeColor(op), 0.55),
        borderColor: op === 'other' ? '#8892a0' : typeColor(op),
      }));
      if (roof) {
        const ceiling = roof.peak || Math.max(...points.map(o => o.rate)) * 10;
        for (const level of roof.levels) {
          const end = Math.min(high, ceiling / level.bytes_per_second);
          if (end > low)
            datasets.push({
              type: 'line',
              label: level.level + ' ' + si(level.bytes_per_second) + 'B/s',
              data: [
                { x: low, y: low * level.bytes_per_second },
                { x: end, y: end * level.bytes_per_second },
              ],
              borderColor: faint(color('good'), level.level === 'DRAM' ? 1 : 0.6),
              borderDash: level.level === 'DRAM' ? [] : [5, 4],
              borderWidth: 1.5,
              pointRadius: 0,
              pointHitRadius: 0,
            });
        }
        if (roof.peak)
          datasets.push({
            type: 'line',
            label: 'peak ' + si(roof.peak) + 'FLOP/s',
            data: [
              { x: low, y: roof.peak },
              { x: high, y: roof.peak },
            ],
            borderColor: color('good'),
            borderWidth: 1.5,
            pointRadius: 0,
            pointHitRadius: 0,
          });
      }
      const decade = v => {
        const e = Math.log10(v);
        return Math.abs(e - Math.round(e)) < 1e-6 ? si(v) : '';
      };
      return {
        type: 'bubble',
        data: { datasets },
        options: base(
          {
            x: scale('arithmetic intensity, FLOP per byte', decade, { type: 'logarithmic', min: low, max: high }),
            y: scale('FLOP/s', decade, {
              type: 'logarithmic',
              max: 1.6 * Math.max((roof && roof.peak) || 0, ...points.map(o => o.rate)),
            }),
          },
          {
            label: item => {
              const o = item.raw.o;
              return o
                ? [
                    o.name,
                    o.kernel || '',
                    si(o.rate) + 'FLOP/s at ' + si(o.arithmetic_intensity) + ' FLOP/B',
                    time(o.time) +
                      ', ' +
                      percent(o.share) +
                      (o.bound ? ', bound by ' + o.bound : '') +
                      (known(o.percent_of_roof) ? ', ' + o.percent_of_roof.toFixed(0) + ' % of the roof' : ''),
                  ]
                : item.dataset.label;
            },
          },
          {
            options: {
              onClick: (event, found, chart) => {
                const hit = found.map(f => chart.data.datasets[f.datasetIndex].data[f.index].o).find(Boolean);
                if (hit) showRow('operators', hit);
              },
            },
            plugins: { legend: { display: true, labels: { color: color('ink'), boxWidth: 12 } } },
          },
        ),
      };
    },
    { size: 'tall' },
  ).draw();
}
