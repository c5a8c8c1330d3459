/* Zooming of pictures along x; with it memory over one run, what is alive at a step, and the latency of the runs. */
'use strict';
/* Buffers with their first and last step, from the list of events. */
const blocks = (() => {
  const list = [],
    open = new Map();
  for (const e of (memory && memory.events) || []) {
    const key = e.offset_bytes + '/' + e.owner + '/' + (e.tag || '');
    if (!e.release) {
      const block = {
        owner: e.owner,
        tag: e.tag || '',
        first: e.step,
        last: null,
        offset: e.offset_bytes,
        bytes: e.given_bytes,
        asked: e.asked_bytes,
      };
      list.push(block);
      open.set(key, block);
    } else if (open.has(key)) {
      open.get(key).last = e.step;
      open.delete(key);
    }
  }
  const end = Math.max(0, operators.length - 1);
  list.forEach(b => {
    if (b.last === null) b.last = end;
    b.steps = b.last - b.first + 1;
    b.name = b.owner;
  });
  return list;
})();

pictureRows.block = blocks;

function showAlive(box, step) {
  const alive = blocks.filter(b => b.first <= step && step <= b.last).sort((a, b) => b.bytes - a.bytes),
    total = alive.reduce((sum, b) => sum + b.bytes, 0);
  box.replaceChildren(
    h(
      'b',
      {},
      'Alive at step ' +
        step +
        (operators[step] ? ', ' + operators[step].name : '') +
        ': ' +
        plural(alive.length, 'buffer') +
        ', ' +
        bytes(total),
    ),
    ...alive
      .slice(0, 100)
      .map(b =>
        h(
          'div',
          {},
          h('span', {}, b.owner),
          h('span', {}, b.tag),
          h('span', {}, bytes(b.bytes)),
          h('span', {}, 'steps ' + b.first + ' – ' + b.last),
        ),
      ),
  );
}


/* The value on the x axis below the pointer; NaN beside every plot of the picture. */
function valueAt(plots, event) {
  for (const plot of plots) {
    const [left, right, top, bottom, low, high] = plot.data,
      at = new DOMPoint(event.clientX, event.clientY).matrixTransform(plot.group.getScreenCTM().inverse());
    if (at.y >= top && at.y <= bottom && at.x >= left - 1 && at.x <= right + 1)
      return low + ((at.x - left) / (right - left)) * (high - low);
  }
  return NaN;
}

/* Round values on the axis below a plot that is zoomed, in the place of those that C wrote. */
function drawTicks(plot, from, to) {
  const [left, right, top, bottom] = plot.data,
    [line, text] = plot.sample;
  plot.ticks.replaceChildren(
    ...roundSteps(from, to, Math.max(2, (right - left) / 90)).list.flatMap(value => {
      const [tick, label] = [line.cloneNode(), text.cloneNode()],
        x = left + ((value - from) / (to - from)) * (right - left);
      tick.setAttribute('x1', x);
      tick.setAttribute('x2', x);
      label.setAttribute('x', x);
      label.textContent = si(value);
      return [tick, label];
    }),
  );
}

/* Makes the plots of a picture zoomable: a drag shows its range in all of them, a double click everything. Each plot
 * becomes an SVG of its own, whose viewBox is the range. */
function zoomable(svg, drags = true) {
  const plots = [...svg.querySelectorAll('g.plot')].map((group, i) => {
    const data = group.dataset.x.split(' ').map(Number),
      [left, right, top, bottom] = data,
      frame = document.createElementNS(svg.namespaceURI, 'svg'),
      ticks = svg.querySelectorAll('g.ticks')[i];
    for (const [key, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top, preserveAspectRatio: 'none' }))
      frame.setAttribute(key, value);
    group.replaceWith(frame);
    frame.append(group);
    return { data, frame, group, ticks, all: ticks && [...ticks.children], sample: ticks && [ticks.querySelector('line'), ticks.querySelector('text')] };
  });
  const show = (from, to) => {
    for (const plot of plots) {
      const [left, right, top, bottom, low, high] = plot.data,
        scale = (right - left) / (high - low);
      plot.frame.setAttribute('viewBox', [left + (from - low) * scale, top, (to - from) * scale, bottom - top].join(' '));
      if (!plot.ticks) continue;
      if (from === low && to === high) plot.ticks.replaceChildren(...plot.all);
      else drawTicks(plot, from, to);
    }
  };
  const all = () => show(plots[0].data[4], plots[0].data[5]);
  all();
  if (!drags) return { plots, show, all };
  let begin = null;
  svg.addEventListener('pointerdown', event => {
    if (event.pointerType === 'mouse' && event.button === 0) begin = { value: valueAt(plots, event), x: event.clientX };
  });
  svg.addEventListener('pointerup', event => {
    const [low, high] = [plots[0].data[4], plots[0].data[5]],
      dragged = begin && Math.abs(event.clientX - begin.x) > 8;
    const ends = dragged ? [begin.value, valueAt(plots, event)].sort((a, b) => a - b) : [];
    begin = null;
    svg.dragged = dragged; /* the click that follows a drag picks nothing */
    if (ends[1] > ends[0]) show(Math.max(low, ends[0]), Math.min(high, ends[1]));
  });
  svg.addEventListener('dblclick', all);
  return { plots, show, all };
}

let memoryView = null,
  runsView = null;
function memoryPicture() {
  const line = (memory && memory.timeline) || [],
    alive = h('div', { class: 'alive' });
  const stepAt = event => Math.floor(valueAt(memoryView.plots, event)),
    held = new Map(line.map(p => [p.step, p.live_bytes]));
  const shown = picture('memory', 'charts', {
    wide: true,
    hover: (event, found) => {
      if (found)
        return [found.row.owner, found.row.tag + ', ' + bytes(found.row.bytes) + ' at ' + bytes(found.row.offset), 'steps ' + found.row.first + ' – ' + found.row.last];
      const step = stepAt(event);
      return held.has(step) && [
          'step ' + step + (operators[step] ? ': ' + operators[step].name : ''),
          bytes(held.get(step)) + ' live',
          'planned ' + bytes(memory.planned_bytes) + ', lower bound ' + bytes(memory.lower_bound_bytes),
        ];
    },
    pick: event => {
      const step = stepAt(event);
      if (held.has(step) && blocks.length && !shown.svg.dragged) showAlive(alive, step);
    },
  });
  if (!shown) return;
  memoryView = zoomable(shown.svg);
  shown.box.append(
    h('p', { class: 'hint' }, blocks.length ? 'Drag to zoom, double click for all, click for the buffers alive at a step.' : "The arena's map needs its events: profile with --memory."),
  );
  if (!blocks.length) return;
  shown.box.append(alive);
  showAlive(alive, line.reduce((a, b) => (b.live_bytes > a.live_bytes ? b : a)).step);
}

function timePictures() {
  picture('latency', 'charts');
  const runs = picture('runs', 'charts', {
    hover: event => {
      const run = Math.round(valueAt(runsView.plots, event));
      return latency.samples[run] !== undefined && ['run ' + run + ': ' + time(latency.samples[run])];
    },
  });
  if (runs) runsView = zoomable(runs.svg);
  if (runs) runs.box.append(h('p', { class: 'hint' }, 'Drag to zoom, double click for all.'));
  picture('cores', 'charts', { wide: true });
}
