/* The charts, drawn by Chart.js. Each is a function that returns a configuration for the colours of the theme; a change of
 * theme draws all of them again. */
'use strict';
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

/* ---- roofline ---- */

function rooflineChart() {
  if (!stamped) return;
  const points = operators.filter(o => o.rate > 0 && o.arithmetic_intensity > 0),
    executed = o => (o.executed_flops ?? o.flops) / o.flops,
    rate = o => o.rate * executed(o),
    intensity = o => o.arithmetic_intensity * executed(o),
    roof = roofs();
  const left = operators.length - points.length;
  const sub =
    (roof ? 'Points at the roof cannot go faster on this machine' : 'No roofs: run prony machine once') +
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
      const low = 10 ** Math.floor(Math.log10(Math.min(0.1, ...points.map(intensity)))),
        high = 10 ** Math.ceil(Math.log10(Math.max(10, ...points.map(intensity)) * 1.1));
      const datasets = [...groups].map(([op, rows]) => ({
        label: op,
        data: rows.map(o => ({ x: intensity(o), y: rate(o), r: 3 + 22 * Math.sqrt(o.share || 0), o })),
        backgroundColor: faint(op === 'other' ? '#8892a0' : typeColor(op), 0.55),
        borderColor: op === 'other' ? '#8892a0' : typeColor(op),
      }));
      if (roof) {
        const ceiling = roof.peak || Math.max(...points.map(rate)) * 10;
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
              max: 1.6 * Math.max((roof && roof.peak) || 0, ...points.map(rate)),
            }),
          },
          {
            label: item => {
              const o = item.raw.o;
              return o
                ? [
                    o.name,
                    o.kernel || '',
                    si(rate(o)) + 'FLOP/s at ' + si(intensity(o)) + ' FLOP/B',
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
