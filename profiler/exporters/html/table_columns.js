/* Which columns a table shows: as many as there is room for, the most telling first; all of them if asked. */
'use strict';
/* By level, the columns in order of what they tell; those that are not named come last, in the table's order. */
const columnRanks = {
  layers: [
    'name',
    'type',
    'time',
    'share',
    'flops',
    'op',
    'rate',
    'kernel',
    'output',
    'bytes',
    'parameters',
    'index',
    'macs',
    'memory_bytes',
  ],
  operators: [
    'name',
    'time',
    'share',
    'op',
    'kernel',
    'flops',
    'rate',
    'bound',
    'percent_of_roof',
    'bytes',
    'cores',
    'imbalance',
    'arithmetic_intensity',
    'index',
  ],
  modules: ['name', 'time', 'share', 'type', 'flops', 'parameters', 'layers', 'macs'],
  types: ['name', 'time', 'share', 'flops_share', 'count', 'flops', 'rate', 'parameters', 'macs', 'bytes'],
  weights: ['name', 'elements', 'bytes', 'shape_text', 'type', 'kind', 'op'],
  buffers: ['name', 'bytes', 'first', 'last', 'tag', 'offset', 'asked', 'steps'],
};
const PHONE = 700,
  PHONE_NAME = 150;
const columnWidth = column => (column.first && innerWidth < PHONE ? PHONE_NAME : column.width);
let allColumns = false;

/* The columns of a level in its own order, those that fit into `room` pixels by rank; the name always. */
function fittingColumns(key, columns, room) {
  const rank = c => {
    const at = (columnRanks[key] || []).indexOf(c.key);
    return at < 0 ? 100 + columns.indexOf(c) : at;
  };
  const kept = new Set();
  let used = 0;
  for (const c of [...columns].sort((a, b) => rank(a) - rank(b))) {
    if (kept.size && used + columnWidth(c) > room) break;
    used += columnWidth(c);
    kept.add(c);
  }
  return columns.filter(c => kept.has(c));
}

/* Chooses level.columns of level.all, and says on the button how many there are. */
function chooseColumns(key, level) {
  level.all = level.all || level.columns;
  const room = $('scroller').clientWidth - 2,
    fitting = fittingColumns(key, level.all, room);
  level.columns = allColumns ? level.all : fitting;
  $('columns').hidden = fitting.length === level.all.length;
  $('columns').textContent = allColumns ? 'columns that fit' : 'all ' + level.all.length + ' columns';
}
