/* The tables: sorted, filtered, and drawn only as far as they can be seen, so that ten thousand rows cost no more than
 * thirty. */
'use strict';
const ROW_HEIGHT = 28;
const text = (key, title, width, extra) => ({ key, title, width, get: row => row[key] ?? '', ...extra });
const number = (key, title, width, format, extra) => ({
  key,
  title,
  width,
  get: row => row[key] ?? null,
  format,
  numeric: true,
  ...extra,
});
/* An estimate shows no digits that it is not worth. */
const part = row => (row.operator_share < 0.01 ? 'below 1 %' : 'about ' + Math.round(row.operator_share * 100) + ' %');
const name = (width = 300) => text('name', 'name', width, { cls: 'name', first: true });
const shareColumn = number('share', '%', 84, v => (known(v) ? (v * 100).toFixed(2) : '–'), { cls: 'share' });
const has = (rows, key) => rows.some(row => known(row[key]));

/* Of the accuracy profile, where there is one. */
const errorColumns = report.accuracy && operators.some(o => o.error)
  ? ['own', 'accumulated'].map(kind =>
      number(kind + '_error', kind + ' error', 110, v => (known(v) ? (v === 0 ? '0' : v.toExponential(1)) : '–'), {
        get: row => row.error && row.error[kind] ? row.error[kind].max_rel : null,
      }),
    )
  : [];
const levels = {
  layers: {
    title: 'Layers',
    rows: layers,
    sort: stamped ? 'time' : 'index',
    columns: [
      name(),
      number('index', '#', 56, (v, row) => (row.nested ? '' : String(v))),
      text('op', 'type', 130),
      number('executions', 'runs', 74, v => (known(v) ? si(v) : '')),
      number('time', 'time', 92, (v, row) => rowTime(row)),
      shareColumn,
      number('macs', 'MACs', 84, si),
      number('flops', 'FLOPs', 84, si),
      number('count', 'count', 84, si),
      number('rate', 'FLOP/s', 84, si),
      number('bytes', 'bytes', 92, bytes),
      number('parameters', 'params', 84, si),
      text('output', 'output', 140),
      text('kernel', 'kernel', 170),
      ...errorColumns,
      number('memory_bytes', 'out bytes', 92, bytes),
      text('module', 'module', 200),
    ],
  },
  operators: {
    title: 'Operators',
    rows: operators,
    sort: stamped ? 'time' : 'index',
    columns: [
      name(),
      number('index', '#', 56, (v, row) => (row.nested ? '' : String(v))),
      text('op', 'type', 130),
      number('executions', 'runs', 74, v => (known(v) ? si(v) : '')),
      text('kernel', 'kernel', 180),
      text('backend', 'backend', 90),
      number('time', 'time', 84, time),
      shareColumn,
      number('flops', 'FLOPs', 84, si),
      number('rate', 'FLOP/s', 84, si),
      number('arithmetic_intensity', 'FLOP/B', 84, si),
      text('bound', 'bound', 90),
      number('percent_of_roof', '% of roof', 90, v => (known(v) ? v.toFixed(0) : '–')),
      text('why', 'because', 220, { get: row => (row.reasons || []).map(r => r.text).join('; ') }),
      number('bytes', 'bytes', 92, bytes),
      number('layer_count', 'layers', 70, String),
      number('threads', 'threads', 74, si),
      number('cores', 'cores', 74, v => (known(v) ? v.toFixed(2) : '–')),
      number('imbalance', 'imbalance', 90, v => (known(v) ? percent(v) : '–')),
      number('output_bytes', 'out bytes', 92, bytes),
      ...errorColumns,
      number('scratch_bytes', 'scratch', 92, bytes),
      number('offset_bytes', 'offset', 92, bytes),
      number('library_heap_calls', 'heap calls', 90, si),
    ],
  },
  modules: {
    title: 'Modules',
    rows: modules,
    sort: null,
    columns: [
      name(360),
      text('type', 'type', 140),
      number('time', 'time', 92, time),
      shareColumn,
      number('macs', 'MACs', 92, si),
      number('flops', 'FLOPs', 92, si),
      number('parameters', 'params', 92, si),
      number('layers', 'layers', 80, si),
    ],
  },
  types: {
    title: 'Types',
    rows: types,
    sort: stamped ? 'time' : 'flops',
    columns: [
      name(220),
      number('count', 'n', 70, si),
      number('time', 'time', 92, time),
      shareColumn,
      number('flops_share', '% of FLOPs', 100, v => (known(v) ? (v * 100).toFixed(2) : '–')),
      number('macs', 'MACs', 92, si),
      number('flops', 'FLOPs', 92, si),
      number('rate', 'FLOP/s', 92, si),
      number('parameters', 'params', 92, si),
      number('bytes', 'bytes', 92, bytes),
    ],
  },
  weights: {
    title: 'Weights',
    rows: (report.weights || []).map((w, i) => ({
      ...w,
      index: i,
      module: layers[w.layer] ? layers[w.layer].module : '',
      op: layers[w.layer] ? layers[w.layer].op : '',
      shape_text: shape(w),
      kind: w.trainable ? 'weight' : 'buffer',
    })),
    sort: 'elements',
    columns: [
      name(360),
      text('kind', 'kind', 80),
      text('type', 'type', 90),
      text('shape_text', 'shape', 140),
      number('elements', 'elements', 100, si),
      number('bytes', 'bytes', 92, bytes),
      number('layer', 'layer', 70, String),
      text('op', 'used by', 140),
    ],
  },
  buffers: {
    title: 'Arena',
    rows: blocks,
    sort: 'bytes',
    columns: [
      name(360),
      text('tag', 'tag', 100),
      number('bytes', 'bytes', 100, bytes),
      number('asked', 'asked', 100, bytes),
      number('offset', 'offset', 100, bytes),
      number('first', 'first step', 90, String),
      number('last', 'last step', 90, String),
      number('steps', 'steps', 80, String),
    ],
  },
};
for (const level of Object.values(levels))
  level.columns = level.columns.filter(
    c =>
      c.key === 'name' ||
      level.rows.some(row => [row, ...inside(row)].some(one => known(one[c.key]) && one[c.key] !== '')),
  );

/* `rows` pass the filter; `lines` are what is drawn: these, and what is inside of those that are open. */
const view = { level: null, key: '', sort: null, descending: true, rows: [], lines: [], from: -1, to: -1 };

/* Rows with a large share are shown with their nested rows. */
const OPEN_SHARE = 0.3;
for (const row of [...layers, ...operators].flatMap(row => [row, ...allInside(row)])) row.open = row.share >= OPEN_SHARE;

/* ---- filtering and sorting ---- */

const unitFactors = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  ms: 1e6,
  s: 1e9,
  k: 1e3,
  m: 1e6,
  g: 1e9,
  t: 1e12,
  kib: 1024,
  mib: 1048576,
  gib: 1073741824,
  '%': 1,
};
/* A word is searched in names; key:word in one column; key>number and key<number compare, with a unit if wished. */
function parseFilter(source) {
  return source
    .trim()
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map(term => {
      const comparison = /^(\w+)([<>])([\d.]+)\s*([a-zµ%]*)$/.exec(term),
        field = /^(\w+):(.+)$/.exec(term);
      if (comparison) {
        const [, key, sign, digits, unit] = comparison,
          limit = digits * (unitFactors[unit] || 1) * (key === 'share' ? 0.01 : 1);
        return row => known(row[key]) && (sign === '>' ? row[key] > limit : row[key] < limit);
      }
      if (field)
        return row =>
          String(row[field[1]] ?? '')
            .toLowerCase()
            .includes(field[2]);
      return row =>
        [row.name, row.op, row.kernel, row.module, row.type, row.tag].some(
          value => value && String(value).toLowerCase().includes(term),
        );
    });
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === '') return 1;
  if (b === null || b === '') return -1;
  return typeof a === 'number' && typeof b === 'number'
    ? a - b
    : String(a).localeCompare(String(b), 'en', { numeric: true });
}

function refresh() {
  const tests = parseFilter($('search').value),
    type = $('type').value;
  const filtered = type || tests.length,
    passes = row => (!type || row.op === type) && tests.every(test => test(row)),
    around = row => filtered && allInside(row).some(passes);
  view.rows = view.level.rows.filter(passes);
  const shown = view.level.rows.filter(row => passes(row) || around(row));
  const column = view.level.columns.find(c => c.key === view.sort);
  const sign = view.descending ? -1 : 1,
    empty = value => value === null || value === '',
    sorted = rows =>
      column
        ? [...rows].sort((x, y) => {
            const a = column.get(x),
              b = column.get(y);
            return empty(a) || empty(b) ? compare(a, b) : sign * compare(a, b);
          })
        : rows;
  view.rows = sorted(view.rows);
  view.lines = [];
  /* Below a row that the filter names everything is shown if it is open; below another one what the filter names. */
  const put = (row, whole) => {
    whole = whole || !filtered || passes(row);
    view.lines.push(row);
    row.expanded = false;
    if (!row.inside || (whole ? !row.open : row.closed)) return;
    for (const group of row.inside) {
      const rows = whole ? group.rows : group.rows.filter(child => passes(child) || around(child));
      if (!rows.length) continue;
      row.expanded = true;
      view.lines.push(group);
      for (const child of sorted(rows)) put(child, whole);
    }
  };
  for (const row of sorted(shown)) put(row, false);
  const sum = key => view.rows.reduce((total, row) => total + (row[key] || 0), 0);
  $('shown').textContent =
    grouped(view.rows.length) +
    ' of ' +
    grouped(view.level.rows.length) +
    (view.key !== 'modules' && has(view.rows, 'share') ? ' · ' + percent(sum('share')) + ' of the time' : '');
  document
    .querySelectorAll('#table th')
    .forEach((th, i) =>
      th.setAttribute(
        'aria-sort',
        view.level.columns[i].key === view.sort ? (view.descending ? 'descending' : 'ascending') : 'none',
      ),
    );
  view.from = view.to = -1;
  drawRows();
}

/* ---- drawing ---- */

/* Opens and closes what is inside of a row; nothing for a row without subgraphs. */
function toggle(row) {
  if (!row.inside) return null;
  const open = row.expanded;
  return h(
    'button',
    {
      type: 'button',
      class: 'toggle',
      'aria-expanded': String(open),
      'aria-label': (open ? 'hide' : 'show') + ' the nodes inside ' + row.name,
      click: event => {
        event.stopPropagation();
        row.open = !open;
        row.closed = open;
        refresh();
      },
    },
    open ? '▾' : '▸',
  );
}

function cell(column, row) {
  if (row.heading && !column.first && column.key !== 'executions') return h('td');
  const value = column.get(row),
    shown = column.format ? column.format(value, row) : String(value);
  const td = h(
    'td',
    {
      class: [column.numeric ? 'num' : '', column.cls || '', column.first ? 'first' : ''].join(' ').trim(),
      title: column.numeric ? (known(value) ? String(value) : null) : String(value),
    },
    column.first ? [h('bdi', {}, shown), toggle(row)] : shown, // from right to left: the toggle stands before the name
  );
  if (column.cls === 'share' && value > 0)
    td.style.setProperty('--part', Math.min(100, (100 * value) / view.mostShare) + '%');
  if (column.first && row.depth && (row.nested || row.heading))
    td.style.paddingLeft = 8 + 14 * (2 * row.depth - (row.heading ? 1 : 0)) + 'px';
  if (column.first && view.key === 'modules' && view.sort === null)
    td.style.paddingLeft = 8 + 14 * (row.path ? row.path.split('/').length : 0) + 'px';
  return td;
}

function drawRows() {
  const scroller = $('scroller'),
    body = $('table').tBodies[0],
    margin = 10;
  const from = Math.max(0, Math.floor(scroller.scrollTop / ROW_HEIGHT) - margin),
    to = Math.min(view.lines.length, from + Math.ceil(scroller.clientHeight / ROW_HEIGHT) + 2 * margin);
  if (from === view.from && to === view.to) return;
  view.from = from;
  view.to = to;
  const pad = count =>
    h(
      'tr',
      { class: 'pad', 'aria-hidden': 'true' },
      h('td', { colspan: view.level.columns.length, style: 'height:' + count * ROW_HEIGHT + 'px' }),
    );
  body.replaceChildren(
    pad(from),
    ...view.lines.slice(from, to).map((row, i) =>
      h(
        'tr',
        {
          class: ['data', row.nested || row.heading ? 'nested' : '', row.heading ? 'heading' : '', row.executions === 0 ? 'idle' : '', row === view.marked ? 'marked' : '']
            .filter(Boolean)
            .join(' '),
          'aria-rowindex': from + i + 1,
          tabindex: row.heading ? null : 0,
          click: row.heading ? null : () => showRow(row.nested ? 'nested' : view.key, row),
          keydown: event => {
            if (event.key !== 'Enter' || row.heading || event.target.tagName === 'BUTTON') return;
            event.preventDefault(); /* else the dialog's button, which has the focus by then, would close it */
            showRow(row.nested ? 'nested' : view.key, row);
          },
        },
        view.level.columns.map(c => cell(c, row)),
      ),
    ),
    pad(view.lines.length - to),
  );
}

function openLevel(key) {
  view.key = key;
  view.level = levels[key];
  chooseColumns(key, view.level);
  view.sort = view.level.sort;
  view.descending = view.sort !== 'index';
  view.mostShare = Math.max(
    1e-9,
    ...view.level.rows.map(row => (key === 'modules' && row.path === '' ? 0 : row.share || 0)),
  );
  document
    .querySelectorAll('#tabs button')
    .forEach(tab => tab.setAttribute('aria-selected', tab.dataset.level === key));
  const names = [...new Set(view.level.rows.map(row => row.op).filter(Boolean))].sort();
  $('type').replaceChildren(h('option', { value: '' }, 'all types'), ...names.map(op => h('option', {}, op)));
  $('type').hidden = names.length < 2;
  $('table').replaceChildren(
    h(
      'colgroup',
      {},
      view.level.columns.map(c => h('col', { style: 'width:' + columnWidth(c) + 'px' })),
    ),
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        view.level.columns.map(c =>
          h(
            'th',
            { scope: 'col', class: [c.numeric ? 'num' : '', c.first ? 'first' : ''].join(' ').trim() },
            h(
              'button',
              {
                type: 'button',
                click: () => {
                  if (view.sort === c.key) view.descending = !view.descending;
                  else {
                    view.sort = c.key;
                    view.descending = !!c.numeric && c.key !== 'index';
                  }
                  $('scroller').scrollTop = 0;
                  refresh();
                },
              },
              c.title,
            ),
          ),
        ),
      ),
    ),
    h('tbody'),
  );
  $('table').style.minWidth = view.level.columns.reduce((sum, c) => sum + columnWidth(c), 0) + 'px';
  $('scroller').scrollTop = 0;
  refresh();
}

function filterType(op) {
  openLevel(stamped ? 'operators' : 'layers');
  $('type').value = op;
  refresh();
  $('tables').scrollIntoView();
}
function showLevel(key) {
  openLevel(key);
  $('tables').scrollIntoView();
}
/* Scrolls to a row and marks it; a filter that hides it is taken away. */
function showInTable(key, row) {
  if (view.key !== key) openLevel(key);
  if (!view.lines.includes(row)) {
    $('search').value = $('type').value = '';
    refresh();
  }
  view.marked = row;
  $('scroller').scrollTop = Math.max(0, view.lines.indexOf(row) * ROW_HEIGHT - $('scroller').clientHeight / 2);
  view.from = -1;
  drawRows();
  $('tables').scrollIntoView();
}

/* ---- the controls ---- */

function csvText() {
  // As profiler/exporters/report_csv.c: text that a spreadsheet would take for a formula stays text.
  const guard = text => (/^[=+\-@\t\r]/.test(text) ? "'" + text : text).replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
  const quote = text => (/^[' ]|[",;]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text);
  const cell = value => (typeof value === 'number' ? String(value) : quote(guard(String(value))));
  const line = values => values.map(value => (known(value) ? cell(value) : '')).join(',');
  return (
    [line(view.level.all.map(c => c.key)), ...view.rows.map(row => line(view.level.all.map(c => c.get(row))))].join(
      '\r\n',
    ) + '\r\n'
  );
}

for (const [key, level] of Object.entries(levels))
  if (level.rows.length)
    $('tabs').append(
      h(
        'button',
        { type: 'button', role: 'tab', 'data-level': key, click: () => openLevel(key) },
        level.title + ' ' + grouped(level.rows.length),
      ),
    );
let waiting = 0;
$('search').addEventListener('input', () => {
  clearTimeout(waiting);
  waiting = setTimeout(refresh, view.level.rows.length > 3000 ? 150 : 0);
});
$('type').addEventListener('change', refresh);
$('hint-estimated').hidden = ![...layers, ...(report.nested_layers || [])].some(l => l.time_attributed);
$('csv').addEventListener('click', () => download(fileName + '_' + view.key + '.csv', 'text/csv', csvText()));
$('columns').addEventListener('click', () => {
  const { key, sort, descending } = view;
  allColumns = !allColumns;
  openLevel(key);
  Object.assign(view, { sort, descending });
  refresh();
});
$('scroller').addEventListener('scroll', drawRows, { passive: true });
let roomThen = innerWidth;
addEventListener('resize', () => {
  if (root.classList.contains('printing')) return;
  if (roomThen !== innerWidth) {
    const { key, sort, descending } = view,
      type = $('type').value;
    roomThen = innerWidth;
    openLevel(key);
    Object.assign(view, { sort, descending });
    $('type').value = type;
    refresh();
  } else drawRows();
});
$('row').addEventListener('click', event => {
  if (event.target === $('row')) $('row').close();
});
openLevel('layers');
accuracyPanel();
typeBars();
layerBars();
graphPanel();
timelinePanel();
picture('generation', 'charts', { wide: true }); /* of a decoder */
picture('roofline', 'charts');
picture('latency', 'charts');
modulesPicture();
memoryPicture();
runsPicture();
coresPicture();
picture('pipeline', 'charts', { wide: true }); /* of a sharded run */
$('pictures').remove();
