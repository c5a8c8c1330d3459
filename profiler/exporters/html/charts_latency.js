/* Charts of the latencies and of the processors. */
'use strict';
/* ---- latency ---- */

const marks = {
  id: 'marks',
  afterDatasetsDraw(chart, args, options) {
    const { ctx, chartArea: area, scales } = chart;
    (options.list || []).forEach(([name, value], i) => {
      const x = scales.x.getPixelForValue(value);
      if (x < area.left || x > area.right || value > options.until) return;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = options.color;
      ctx.setLineDash([4, 3]);
      ctx.beginPath();
      ctx.moveTo(x, area.top);
      ctx.lineTo(x, area.bottom);
      ctx.stroke();
      ctx.font = '11px sans-serif';
      ctx.textAlign = x > area.right - 110 ? 'right' : 'left';
      ctx.fillText(name + ' ' + time(value), x + (x > area.right - 110 ? -4 : 4), area.top + 12 + 14 * i);
      ctx.restore();
    });
  },
};

/* Equal bins, as wide as Freedman and Diaconis advise, up to the 99th percentile or eight interquartile ranges above the
 * upper quartile, whichever is less. `beyond`, ascending, is what lies above. */
function latencyBins(samples) {
  const sorted = [...samples].sort((a, b) => a - b),
    at = q => sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)],
    low = sorted[0],
    spread = at(0.75) - at(0.25),
    limit = spread > 0 ? Math.min(at(0.99), at(0.75) + 8 * spread) : at(0.99),
    beyond = sorted.filter(x => x > limit),
    inside = sorted.length - beyond.length,
    high = Math.max(sorted[inside - 1], low + 1),
    width = (2 * spread) / Math.cbrt(sorted.length),
    count = Math.max(5, Math.min(60, Math.ceil((high - low) / (width || high)) || 10)),
    step = (high - low) / count,
    bins = new Array(count).fill(0);
  for (let i = 0; i < inside; i++) bins[Math.min(count - 1, Math.floor((sorted[i] - low) / step))]++;
  return { low, high, step, bins, beyond };
}

function latencyCharts() {
  const samples = (latency && latency.samples) || [];
  if (!samples.length) return;
  const { low, high, step, bins, beyond } = latencyBins(samples);
  const unsure = new Set(latency.unsupported_quantiles || []);
  const list = [
    ['median', latency.median],
    ...[
      ['P90', 'p90'],
      ['P99', 'p99'],
    ]
      .filter(([, q]) => !unsure.has(q))
      .map(([name, q]) => [name, latency[q]]),
  ];
  /* Runs beyond the last bin are a separate bar after a gap, beyond the axis. */
  const apart = beyond.length
    ? [{ x: high + 1.5 * step, x2: high + 3 * step, y: 0, y2: beyond.length, fill: 'bad' }]
    : [];
  panel(
    'latency',
    'Latency histogram',
    plural(samples.length, 'run') +
      "; median's 95 % interval " +
      latency.median_ci95.map(time).join(' – ') +
      (beyond.length
        ? '; red, behind the gap: ' +
          plural(beyond.length, 'run') +
          ' beyond ' +
          time(high) +
          ', up to ' +
          time(beyond[beyond.length - 1])
        : ''),
    () => ({
      type: 'blocks',
      plugins: [marks],
      data: {
        datasets: [
          {
            data: [
              ...bins.map((n, i) => ({
                x: low + i * step,
                x2: low + (i + 1) * step,
                y: 0,
                y2: n,
                fill: color('accent'),
              })),
              ...apart.map(bar => ({ ...bar, fill: color('bad') })),
            ],
          },
        ],
      },
      options: base(
        {
          x: scale('', value => (value <= high ? time(value) : ''), {
            type: 'linear',
            min: low,
            max: apart.length ? high + 3 * step : high,
          }),
          y: scale('runs', si, {
            type: 'linear',
            min: 0,
            suggestedMax: Math.max(...bins) * 1.15,
            ticks: { precision: 0 },
          }),
        },
        {
          title: items =>
            items[0].dataIndex < bins.length
              ? time(items[0].raw.x) + ' – ' + time(items[0].raw.x2)
              : 'beyond ' + time(high),
          label: item => plural(item.raw.y2, 'run') + ', ' + percent(item.raw.y2 / samples.length),
        },
        { plugins: { marks: { list, color: color('bad'), until: high } } },
      ),
    }),
  ).draw();
  const [, fence] = fences(samples);
  panel(
    'runs',
    'Latency over the runs',
    "In order of time: drift, steps and outliers (red, above Tukey's fence) show here. Drag to zoom",
    () => ({
      type: 'scatter',
      _prony: [0, samples.length],
      data: {
        datasets: [
          {
            data: samples.map((y, x) => ({ x, y })),
            pointRadius: samples.length > 2000 ? 1 : 2.5,
            backgroundColor: samples.map(y => (y > fence ? color('bad') : faint(color('accent'), 0.7))),
            borderWidth: 0,
          },
          {
            type: 'line',
            data: [
              { x: 0, y: latency.median },
              { x: samples.length, y: latency.median },
            ],
            borderColor: color('time'),
            borderWidth: 1,
            pointRadius: 0,
            pointHitRadius: 0,
          },
        ],
      },
      options: base(
        { x: scale('run', si, { type: 'linear', min: 0, max: samples.length }), y: scale('', time, {}) },
        { label: item => 'run ' + item.parsed.x + ': ' + time(item.parsed.y) },
        { options: { parsing: false } },
      ),
    }),
  ).draw();
  zoomable(['runs']);
}

/* ---- processors ---- */

/* One row per processor, one rectangle per interval, the stronger the busier. */
function coresChart() {
  const cores = (report.cpu && report.cpu.cores) || [],
    ends = (report.cpu && report.cpu.core_times_ns) || [];
  if (!cores.length || !ends.length) return;
  const sub =
    'Busy share of each usable processor during the measurement, all processes together; mean ' +
    cores.map(c => 'cpu' + c.core + ' ' + percent(c.mean)).join(', ');
  panel(
    'cores',
    'Processors over time',
    sub,
    () => ({
      type: 'blocks',
      data: {
        datasets: [
          {
            data: cores.flatMap((core, row) =>
              core.use.map((use, i) => ({
                x: i ? ends[i - 1] : 0,
                x2: ends[i],
                y: row,
                y2: row + 1,
                fill: faint(color('time'), 0.06 + 0.94 * Math.min(1, use)),
                core: core.core,
                use,
              })),
            ),
          },
        ],
      },
      options: base(
        {
          x: scale('', time, { type: 'linear', min: 0, max: ends[ends.length - 1] }),
          y: scale('', v => 'cpu' + cores[Math.floor(v)].core, {
            type: 'linear',
            min: 0,
            max: cores.length,
            grid: { display: false },
            afterBuildTicks: axis => {
              axis.ticks = cores.map((core, row) => ({ value: row + 0.5 }));
            },
          }),
        },
        {
          title: items => 'cpu' + items[0].raw.core,
          label: item => percent(item.raw.use) + ' busy, ' + time(item.raw.x) + ' – ' + time(item.raw.x2),
        },
        { options: { interaction: { mode: 'point', intersect: true } } },
      ),
    }),
    { wide: true, size: 'low' },
  ).draw();
}
