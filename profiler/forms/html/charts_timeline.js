/* The last run over time: a track for every worker and every thread of its team. */
'use strict';
/* Tracks in order, and what happened on them. An operator without a team is its worker's own thread's. Where a team was at
 * work, the operator stands faintly behind what the worker's own thread did of it: what stays faint is waiting. */
function timelineTracks() {
  const timed = operators.filter(o => o.trace),
    places = new Map();
  for (const o of timed) {
    places.set(o.trace.worker * 65536, [o.trace.worker, 0]);
    for (const t of o.trace.team || []) places.set(o.trace.worker * 65536 + t.thread, [o.trace.worker, t.thread]);
  }
  const keys = [...places.keys()].sort((a, b) => a - b),
    row = new Map(keys.map((key, i) => [key, keys.length - 1 - i])),
    workers = new Set(timed.map(o => o.trace.worker)).size;
  const names = keys.map(key => {
    const [worker, thread] = places.get(key);
    return workers > 1 ? 'worker ' + worker + (thread ? '.' + thread : '') : 'thread ' + thread;
  });
  const parts = [];
  for (const o of timed) {
    const base = o.trace.worker * 65536,
      team = o.trace.team || [];
    parts.push({ row: row.get(base), from: o.trace.start_ns, to: o.trace.end_ns, o, share: null, faint: team.length > 0 });
    for (const t of team) parts.push({ row: row.get(base + t.thread), from: t.start_ns, to: t.end_ns, o, share: t });
  }
  return { names, parts, end: timed.reduce((end, o) => Math.max(end, o.trace.end_ns), 0) };
}

function timelineChart() {
  const { names, parts, end } = timelineTracks();
  if (!parts.length || !end) return;
  const count = names.length;
  const used = operators.filter(o => o.parallel),
    sum = key => used.reduce((total, o) => total + o.parallel[key], 0),
    busy = sum('busy_ns'),
    waiting = sum('wait_ns');
  const note =
    count > 1 && busy
      ? 'Inside operators the threads were at work ' + percent(busy / (busy + waiting)) + ' of their time. '
      : '';
  const chart = panel(
    'timeline',
    'The last run, thread by thread',
    note + 'Coloured by operator type; drag to zoom, double click for all, click for the row',
    () => ({
      type: 'blocks',
      _prony: [0, end],
      data: {
        datasets: [
          {
            data: parts.map(p => ({
              x: p.from,
              x2: p.to,
              y: p.row + 0.1,
              y2: p.row + 0.9,
              fill: p.faint ? faint(typeColor(p.o.op), 0.28) : typeColor(p.o.op),
              p,
            })),
          },
        ],
      },
      options: base(
        {
          x: scale('', time, { type: 'linear', min: 0, max: end }),
          y: scale('', v => names[count - 1 - Math.floor(v)], {
            type: 'linear',
            min: 0,
            max: count,
            grid: { display: false },
            afterBuildTicks: axis => {
              axis.ticks = names.map((n, i) => ({ value: i + 0.5 }));
            },
          }),
        },
        {
          title: items => items[0].raw.p.o.name,
          label: item => {
            const { o, share, from, to } = item.raw.p;
            return [
              o.op + ', ' + time(to - from) + ' from ' + time(from),
              ...(share ? ['at work ' + time(share.busy_ns) + ', ' + plural(share.tasks, 'task')] : []),
              ...(o.parallel && o.threads > 1
                ? [
                    'mean: ' + o.parallel.achieved_cores.toFixed(2) + ' of ' + plural(o.threads, 'core') + ', imbalance ' +
                      percent(o.parallel.imbalance),
                  ]
                : []),
            ];
          },
        },
        {
          options: {
            interaction: { mode: 'point', intersect: true },
            onClick: (event, found) => found.length && showRow('operators', found[found.length - 1].element.$context.raw.p.o),
          },
        },
      ),
    }),
    { wide: true },
  );
  chart.canvas.parentNode.style.height = Math.min(900, 60 + 34 * Math.max(2, count)) + 'px';
  chart.draw();
  zoomable(['timeline']);
}
