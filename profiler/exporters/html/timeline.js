/* The last run over time: a track for every worker and every thread of its team. */
'use strict';
let timelineView = null;
const TRACK = { height: 30, top: 22, gap: 4, names: 74 };

/* Tracks in order, and what happened on them. An operator without a thread pool belongs to its worker's own thread.
 * With a thread pool, the operator is drawn faintly behind the work of the worker's own thread: faint parts are
 * waiting. */
function timelineTracks() {
  const timed = operators.filter(o => o.trace),
    places = new Map();
  for (const o of timed) {
    places.set(o.trace.worker * 65536, [o.trace.worker, 0]);
    for (const t of o.trace.team || []) places.set(o.trace.worker * 65536 + t.thread, [o.trace.worker, t.thread]);
  }
  const keys = [...places.keys()].sort((a, b) => a - b),
    row = new Map(keys.map((key, i) => [key, i])),
    workers = new Set(timed.map(o => o.trace.worker)).size;
  const tracks = keys.map(key => {
    const [worker, thread] = places.get(key);
    return {
      name: workers > 1 ? 'worker ' + worker + (thread ? '.' + thread : '') : 'thread ' + thread,
      parts: [],
      back: [],
    };
  });
  for (const o of timed) {
    const base = o.trace.worker * 65536,
      team = o.trace.team || [];
    tracks[row.get(base)][team.length ? 'back' : 'parts'].push({
      from: o.trace.start_ns,
      to: o.trace.end_ns,
      o,
      share: null,
    });
    for (const t of team) tracks[row.get(base + t.thread)].parts.push({ from: t.start_ns, to: t.end_ns, o, share: t });
  }
  for (const track of tracks) for (const list of [track.back, track.parts]) list.sort((a, b) => a.from - b.from);
  return { tracks, timed, end: timed.reduce((end, o) => Math.max(end, o.trace.end_ns), 0) };
}

/* The first part that ends behind `at`; parts of a track follow one another. */
function firstBehind(parts, at) {
  let low = 0,
    high = parts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (parts[middle].to <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* About `wanted` round values of [from, to]. */
function roundSteps(from, to, wanted) {
  const raw = (to - from) / wanted,
    power = 10 ** Math.floor(Math.log10(raw)),
    step = power * [1, 2, 5, 10].find(f => f * power >= raw),
    list = [];
  for (let i = Math.ceil(from / step); i * step <= to && list.length < 100; i++) list.push(i * step);
  return { list, step };
}

function timelinePanel() {
  const { tracks, timed, end } = timelineTracks();
  if (!timed.length || !end) return;
  const height = TRACK.top + 8 + tracks.length * (TRACK.height + TRACK.gap),
    chosen = { o: null, rank: -1 },
    ranked = [...timed].sort((a, b) => b.trace.end_ns - b.trace.start_ns - (a.trace.end_ns - a.trace.start_ns));
  let fills = new Map();
  const top = t => TRACK.top + t * (TRACK.height + TRACK.gap);

  function drawParts(context, view, size, parts, y, extent) {
    let last = -1,
      lastFill = '';
    const right = view.x + size.width / view.k;
    for (let i = firstBehind(parts, view.x); i < parts.length && parts[i].from < right; i++) {
      const p = parts[i],
        x1 = (p.from - view.x) * view.k,
        x2 = Math.max((p.to - view.x) * view.k, x1 + 0.4);
      if (x2 < last + 0.35) continue; /* what is thinner than that cannot be seen beside its neighbour */
      const match = search.found.set ? search.found.set.has(p.o) : true,
        fill = fills.get(p.o.op);
      context.globalAlpha = extent * (match ? 1 : 0.15);
      if (fill !== lastFill) context.fillStyle = lastFill = fill;
      context.fillRect(x1, y, Math.max(x2 - x1 - (x2 - x1 > 3 ? 1 : 0), 0.5), TRACK.height);
      last = x2;
      if (extent === 1 && x2 - x1 > 46) {
        context.globalAlpha = match ? 1 : 0.4;
        context.fillStyle = inkOn(fill);
        const left = Math.max(x1, 0) + 4,
          most = Math.floor((Math.min(x2, size.width) - left - 4) / 6.4),
          label = p.o.op + ' ' + time(p.to - p.from),
          wide = shortName(p.o.name || p.o.op) + '  ' + time(p.to - p.from);
        const text = wide.length <= most ? wide : label.length <= most ? label : p.o.op.length <= most ? p.o.op : '';
        if (text) context.fillText(text, left, y + TRACK.height / 2);
        lastFill = '';
      }
    }
    context.globalAlpha = 1;
  }
  function draw(context, view, size) {
    const ink = { soft: color('soft'), line: color('line'), accent: color('accent') };
    context.font = '11px sans-serif';
    context.textBaseline = 'middle';
    const steps = roundSteps(view.x, view.x + size.width / view.k, Math.max(2, size.width / 130));
    context.fillStyle = ink.soft;
    context.strokeStyle = ink.line;
    context.beginPath();
    for (const at of steps.list) {
      const x = (at - view.x) * view.k;
      context.moveTo(x, TRACK.top - 6);
      context.lineTo(x, size.height);
      const label = tickTime(at, steps.step);
      context.textAlign = x < 20 ? 'left' : x > size.width - 30 ? 'right' : 'center';
      context.fillText(label, Math.min(size.width - 2, Math.max(2, x)), 8);
    }
    context.stroke();
    context.textAlign = 'left';
    tracks.forEach((track, t) => {
      drawParts(context, view, size, track.back, top(t), 0.28);
      drawParts(context, view, size, track.parts, top(t), 1);
    });
    if (chosen.o) {
      const { start_ns: from, end_ns: to } = chosen.o.trace,
        x = (from - view.x) * view.k;
      context.strokeStyle = ink.accent;
      context.lineWidth = 2;
      context.strokeRect(x - 1, TRACK.top - 3, Math.max(3, (to - from) * view.k) + 2, size.height - TRACK.top);
    }
  }
  function hit(x, y) {
    const t = Math.floor((y - TRACK.top) / (TRACK.height + TRACK.gap)),
      slack = 2 / map.view.k;
    if (!tracks[t]) return null;
    for (const list of [tracks[t].parts, tracks[t].back])
      for (const wide of [0, slack]) {
        const p = list[firstBehind(list, x - wide)];
        if (p && p.from <= x + wide) return p;
      }
    return null;
  }
  function choose(o, bring) {
    chosen.o = o;
    chosen.rank = ranked.indexOf(o);
    if (bring) {
      const { start_ns: from, end_ns: to } = o.trace,
        middle = (from + to) / 2,
        shown = Math.min(map.size.width / map.view.k, Math.max((to - from) * 6, end / 1e5));
      map.showRange(middle - shown / 2, middle + shown / 2);
    }
    said.textContent =
      o.name + ': ' + o.op + ', ' + time(o.trace.end_ns - o.trace.start_ns) + ' from ' + time(o.trace.start_ns);
    map.redraw();
  }
  const step = by => {
    chosen.rank = (chosen.rank + by + ranked.length) % ranked.length;
    choose(ranked[chosen.rank], true);
  };
  const said = h('p', { class: 'said', 'aria-live': 'polite' });
  const search = finder(
    'Timeline',
    () => timed,
    o => choose(o, true),
    () => map.redraw(),
  );
  const map = explorer({
    id: 'timeline',
    title: 'Timeline',
    help: 'n and p go from the longest operator to the next, Enter opens its row.',
    height,
    across: true,
    closest: 2,
    draw,
    hit,
    pick: p => {
      if (!p) return;
      choose(p.o, false);
      showRow('operators', p.o);
    },
    tip({ o, share, from, to }) {
      return [
        o.name,
        o.op + ', ' + time(to - from) + ' from ' + time(from),
        share && 'at work ' + time(share.busy_ns) + ', ' + plural(share.tasks, 'task'),
        o.parallel &&
          o.threads > 1 &&
          'mean: ' +
            o.parallel.achieved_cores.toFixed(2) +
            ' of ' +
            plural(o.threads, 'core') +
            ', imbalance ' +
            percent(o.parallel.imbalance),
      ];
    },
    keys: {
      n: () => step(1),
      p: () => step(chosen.rank < 0 ? 0 : -1),
      Enter: () => chosen.o && showRow('operators', chosen.o),
    },
    resized: (size, world) => (world.width = end),
  });
  const used = operators.filter(o => o.parallel),
    sum = key => used.reduce((total, o) => total + o.parallel[key], 0),
    busy = sum('busy_ns');
  const names = h(
    'div',
    { class: 'tracks', style: 'padding-top:' + TRACK.top + 'px', 'aria-hidden': 'true' },
    tracks.map(track =>
      h(
        'div',
        { style: 'height:' + TRACK.height + 'px;margin-bottom:' + TRACK.gap + 'px;line-height:' + TRACK.height + 'px' },
        track.name,
      ),
    ),
  );
  viewPanel(
    'timeline',
    'The last run, thread by thread',
    (tracks.length > 1 && busy
      ? 'Inside operators the threads were at work ' + percent(busy / (busy + sum('wait_ns'))) + ' of their time. '
      : '') +
      'Coloured by operator type; drag to move, wheel or + and − to zoom, Shift and drag to zoom to a part, n and p for the longest, click for the row',
    [search.input, search.count, ...map.controls],
    h('div', { class: 'lanes' }, names, map.box),
    said,
  );
  const recolour = () => {
    fills = new Map(operators.map(o => [o.op, typeColor(o.op)]));
    map.redraw();
  };
  themeListeners.push(recolour);
  recolour();
  map.resize();
  timelineView = { map, choose, tracks, search, chosen: () => chosen.o };
}
/* A time on an axis, with the digits that its step needs. */
function tickTime(ns, step) {
  const [unit, size] =
    step >= 1e9 || ns >= 1e10
      ? ['s', 1e9]
      : step >= 1e5 || ns >= 1e7
        ? ['ms', 1e6]
        : step >= 100
          ? ['µs', 1e3]
          : ['ns', 1];
  return (ns / size).toFixed(Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9))) + ' ' + unit;
}
function showInTimeline(o) {
  if (!timelineView || !o || !o.trace) return;
  $('panel-timeline').scrollIntoView();
  timelineView.choose(o, true);
}
