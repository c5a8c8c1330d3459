/* The page's ground: the report that lies in it, numbers for people, colours and the theme. Everything from the report
 * reaches the document as text, never as markup. */
'use strict';
/* Names come from files: controls and marks that change the text direction are shown as '?', as in every other output.
 * HTML shows tabs and line ends as spaces. */
const unprintable = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const cleaned = (key, value) => (typeof value === 'string' ? value.replace(unprintable, '?') : value);
const report = JSON.parse(document.getElementById('data').textContent, cleaned);
const $ = id => document.getElementById(id);
const root = document.documentElement;

/* Element with attributes, listeners (functions) and children. */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === 'function') element.addEventListener(key, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

/* ---- numbers ---- */

function digits3(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 || (Number.isInteger(value) && size < 1000) ? 0 : size >= 10 ? 1 : 2);
}
function scaled(value, step, units) {
  let unit = 0;
  while (Math.abs(value) >= step * 0.9995 && unit + 1 < units.length) {
    value /= step;
    unit++;
  }
  return digits3(value) + (units[unit] ? ' ' + units[unit] : '');
}
const known = value => value !== null && value !== undefined && !Number.isNaN(value);
const si = value =>
  !known(value)
    ? '–'
    : Math.abs(value) > 0 && Math.abs(value) < 1
      ? Number(value).toPrecision(2)
      : scaled(value, 1000, ['', 'k', 'M', 'G', 'T', 'P', 'E']);
const bytes = value => (known(value) ? scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']) : '–');
const time = ns => (known(ns) ? scaled(ns, 1000, ['ns', 'µs', 'ms', 's'].slice(0, 4)) : '–');
const percent = share => (known(share) ? (share * 100).toFixed(1) + ' %' : '–');
const grouped = value => (known(value) ? String(value).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f') : '–');
const shape = value =>
  !value ? '–' : !value.shape ? '?' : value.shape.length ? value.shape.map(d => d ?? '?').join('×') : 'scalar';
/* A row's time; what was not measured by itself says so. */
/* An estimate shows no digits that it is not worth. */
const digits = share => (share > 0.98 ? 3 : share > 0.83 ? 2 : 1);
const about = row => '~' + time(Number(Number(row.time).toPrecision(digits(row.operator_share ?? 0)))).replace(/(\.\d*?)0+(?=\D)/, '$1').replace(/\.(?=\D)/, '');
const rowTime = row => (row.time_kind === 'removed' ? 'removed' : row.time_attributed ? about(row) : time(row.time));
const plural = (count, noun, many) => grouped(count) + ' ' + (count === 1 ? noun : many || noun + 's');

/* ---- the report, joined ---- */

const layers = report.layers || [],
  operators = report.operators || [],
  modules = report.modules || [];
const memory = report.memory || null,
  latency = report.latency_ns || null;
const stamped = operators.some(o => o.time_ns);
const seconds = o => (o.time_ns ? o.time_ns.mean / 1e9 : 0);
for (const l of layers) {
  l.time = l.time_ns ? l.time_ns.mean : null;
  l.kernel =
    l.operator === null || l.operator === undefined || !operators[l.operator] ? '' : operators[l.operator].kernel || '';
  l.backend = l.kernel ? operators[l.operator].backend || '' : '';
  l.rate = l.time > 0 && l.flops ? (l.flops / l.time) * 1e9 : null;
  l.output = shape(l.outputs && l.outputs[0]);
}
for (const o of operators) {
  o.time = o.time_ns ? o.time_ns.mean : null;
  o.rate = o.flops_per_second ?? null;
  o.layer_count = o.layers.length;
  const several = o.parallel && o.threads > 1;
  o.cores = several ? o.parallel.achieved_cores : null;
  o.imbalance = several ? o.parallel.imbalance : null;
}
/* Rows of subgraphs are below the row that contains them: row.inside has a group per subgraph, each with its rows. That
 * row's values include them, and sums do not. */
for (const [level, owners, rows] of [
  ['layers', layers, report.nested_layers || []],
  ['operators', operators, report.nested_operators || []],
])
  for (const row of rows) {
    const around = known(row.parent) ? rows[row.parent] : owners[row.owner];
    row.nested = level;
    row.time = row.time_ns && row.executions ? row.time_ns.mean : null;
    if (!row.executions) row.share = null;
    row.rate = row.time > 0 && row.flops ? (row.flops / row.time) * 1e9 : null;
    if (level === 'layers') {
      row.output = shape(row.outputs[0]);
      const by = known(row.operator) ? report.nested_operators[row.operator] : null;
      row.kernel = (by && by.kernel) || '';
      row.backend = (by && by.backend) || '';
    } else row.layer_count = row.layers.length;
    around.inside = around.inside || [];
    let group = around.inside[around.inside.length - 1];
    if (!group || group.name !== row.subgraph)
      around.inside.push((group = { heading: true, name: row.subgraph, executions: row.executions, depth: row.depth, rows: [] }));
    group.rows.push(row);
  }
const inside = row => (row.inside || []).flatMap(group => group.rows);
const allInside = row => inside(row).flatMap(child => [child, ...allInside(child)]);

for (const m of modules) {
  m.time = m.time_ns ?? null;
  m.name = m.path || '__root__';
}

/* Rows by operator type: of operators where they were timed, else of layers. */
const types = (() => {
  const byType = new Map();
  for (const row of stamped ? operators : layers) {
    let t = byType.get(row.op);
    if (!t)
      byType.set(
        row.op,
        (t = {
          name: row.op,
          op: row.op,
          count: 0,
          time: stamped ? 0 : null,
          share: stamped ? 0 : null,
          macs: 0,
          flops: 0,
          parameters: 0,
          bytes: 0,
        }),
      );
    t.count++;
    for (const key of ['macs', 'flops', 'parameters', 'bytes']) t[key] += row[key] || 0;
    if (stamped) {
      t.time += row.time || 0;
      t.share += row.share || 0;
    }
  }
  const all = [...byType.values()];
  for (const t of all) {
    t.flops_share = report.totals.flops ? t.flops / report.totals.flops : null;
    t.rate = t.time > 0 && t.flops ? (t.flops / t.time) * 1e9 : null;
  }
  return all.sort((a, b) => (stamped ? b.share - a.share : b.flops - a.flops));
})();

/* ---- colours ---- */

const palette = ['#3b78c4', '#e0862a', '#2f9e6b', '#b55bb0', '#c2453c', '#3aa6b0', '#8a7a2e', '#7a6ff0'];
const color = name =>
  getComputedStyle(root)
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
/* Names of one chart cut to `room` characters, so that different names stay different: parents that a child repeats go
 * first, then '…' where the rest belongs to no other name, then a number. The same as profiler/text/short_names.c. */
function distinctNames(names, room) {
  const distinct = list => new Set(list).size === list.length,
    all = [...new Set(names)],
    fits = list => list.every(text => text.length <= room);
  const withoutParents = name => {
    const parts = name.split('/');
    return parts
      .filter((part, i) => !(part && i + 1 < parts.length && parts[i + 1].startsWith(part) && /^[._]/.test(parts[i + 1].slice(part.length))))
      .join('/');
  };
  let texts = all;
  if (!fits(texts)) {
    const shorter = texts.map(withoutParents);
    if (distinct(shorter)) texts = shorter;
  }
  const kept = room - 1,
    shown = texts.map(text => (text.length <= room ? text : null));
  for (let turn = 0; turn <= 48 && shown.includes(null); turn++) {
    const head = Math.floor((kept * Math.min(24, Math.max(0, 8 + (turn & 1 ? (turn + 1) / 2 : -turn / 2)))) / 24),
      cut = text => text.slice(0, head) + '…' + text.slice(text.length - (kept - head)),
      count = new Map();
    for (const text of texts) count.set(cut(text), (count.get(cut(text)) || 0) + 1);
    texts.forEach((text, i) => {
      if (shown[i] === null && count.get(cut(text)) === 1) shown[i] = cut(text);
    });
  }
  const taken = new Map(all.map((name, i) => [name, shown[i] ?? texts[i].slice(0, room - 4) + '~' + (i + 1)]));
  return names.map(name => taken.get(name));
}
const LABEL_ROOM = 34;
/* One name alone: as many of the last parts of its path as a label holds. */
const shortName = name => {
  const parts = name.split('/').filter(Boolean);
  let text = parts.pop() || name;
  while (parts.length && (parts[parts.length - 1] + text).length < LABEL_ROOM - 1) text = parts.pop() + '/' + text;
  return text.length > LABEL_ROOM ? '…' + text.slice(1 - LABEL_ROOM) : text;
};
/* White or black, whichever has more contrast on a colour. */
const inkOn = hex => {
  const [r, g, b] = [1, 3, 5].map(i => (parseInt(hex.slice(i, i + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? '#10151c' : '#ffffff';
};

/* ---- theme ---- */

const themeListeners = [];
function storedTheme() {
  try {
    return localStorage.getItem('prony-theme');
  } catch (e) {
    return null;
  }
}
function applyTheme(name) {
  root.dataset.theme = name;
  $('theme').textContent = name === 'dark' ? '☀ light' : '☾ dark';
  themeListeners.forEach(listener => listener());
}
const systemDark = matchMedia('(prefers-color-scheme: dark)');
systemDark.addEventListener('change', () => {
  if (!storedTheme()) applyTheme(systemDark.matches ? 'dark' : 'light');
});
$('theme').addEventListener('click', () => {
  const name = root.dataset.theme === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem('prony-theme', name);
  } catch (e) {
    /* a page without storage keeps its theme for this visit */
  }
  applyTheme(name);
});

function download(name, type, text) {
  const link = h('a', { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
const modelName = (report.model.name || 'model').replace(/^.*\//, '');
const fileName = modelName.replace(/[^\w.-]+/g, '_');
$('download').addEventListener('click', () => download(fileName + '.json', 'application/json', $('data').textContent));
