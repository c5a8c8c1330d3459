/* The picture of memory over one run: buffers alive at a step. */
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

let memoryView = null;
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
