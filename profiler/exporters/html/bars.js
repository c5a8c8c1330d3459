/* Bars that are elements, not pictures: the types and the layers that take most. Their text is text, on paper too, and
 * they have a choice of figures. */
'use strict';

/* A panel of its own below #views: heading, a line of what it shows, controls. */
function viewPanel(id, title, sub, controls, ...content) {
  const note = h('p', { class: 'sub' }, sub);
  const box = h(
    'div',
    { class: 'panel', id: 'panel-' + id },
    h('div', { class: 'head' }, h('h2', {}, title), controls || []),
    note,
    ...content,
  );
  $('views').append(box);
  return { box, note };
}
const chooser = (label, options, change) =>
  h(
    'select',
    { 'aria-label': label, change },
    options.map(([value, title]) => h('option', { value }, title)),
  );

/* One row: a name, one or two bars with their figures behind them. A bar is as long as its value over `most`. */
function barRow(row) {
  const bars = row.bars.map(bar =>
    h(
      'span',
      { class: 'bar-line' },
      h('span', { class: 'bar', style: '--part:' + Math.max(0, bar.part).toFixed(4) + ';background:' + bar.fill }),
      h('span', { class: 'bar-value' }, bar.text),
    ),
  );
  return h(
    row.click ? 'button' : 'div',
    { class: 'bar-row', type: row.click ? 'button' : null, click: row.click || null, title: row.title },
    h('span', { class: 'bar-name' }, h('bdi', {}, row.name)),
    h('span', { class: 'bar-lines' }, bars),
  );
}

const MOST_TYPES = 12;
/* The types shown, and what the rest is together. */
function shownTypes() {
  if (types.length <= MOST_TYPES) return { rows: types, rest: null };
  const rest = {
    name: '',
    op: null,
    count: 0,
    time: stamped ? 0 : null,
    share: stamped ? 0 : null,
    flops: 0,
    flops_share: 0,
  };
  for (const t of types.slice(MOST_TYPES - 1))
    for (const key of ['count', 'time', 'share', 'flops', 'flops_share']) rest[key] += t[key] || 0;
  rest.name = 'and ' + (types.length - MOST_TYPES + 1) + ' more';
  return { rows: types.slice(0, MOST_TYPES - 1), rest };
}

function typeBars() {
  const { rows, rest } = shownTypes(),
    all = rest ? [...rows, rest] : rows;
  const most = Math.max(1e-9, ...all.map(t => Math.max(stamped ? t.share : 0, t.flops_share || 0)));
  const figures = (value, format, share) => format(value) + '  ' + percent(share || 0);
  const line = t => ({
    name: t.name,
    title:
      (t.op || t.name) +
      ': ' +
      plural(t.count, stamped ? 'operator' : 'layer') +
      (t.time ? ', ' + time(t.time) : '') +
      ', ' +
      si(t.flops) +
      ' FLOPs' +
      (t.rate ? ', ' + si(t.rate) + 'FLOP/s' : ''),
    click: t.op ? () => filterType(t.op) : () => showLevel('types'),
    bars: [
      ...(stamped ? [{ part: t.share / most, fill: 'var(--time)', text: figures(t.time, time, t.share) }] : []),
      { part: (t.flops_share || 0) / most, fill: 'var(--accent)', text: figures(t.flops, si, t.flops_share) },
    ],
  });
  const key = (name, fill) => h('span', { class: 'key' }, h('i', { style: 'background:' + fill }), name);
  viewPanel(
    'types',
    stamped ? 'Time and FLOPs by type' : 'FLOPs by type',
    stamped
      ? "Share of the time beside share of the FLOPs: a type with much time and few FLOPs does little arithmetic"
      : 'Share of the FLOPs',
    stamped ? [key('time', 'var(--time)'), key('FLOPs', 'var(--accent)')] : [],
    h('div', { class: 'bars', id: 'bars-types' }, all.map(line).map(barRow)),
  );
}

function layerBars() {
  const by = chooser(
    'Figure',
    [
      stamped && ['time', 'time'],
      ['flops', 'FLOPs'],
      ['bytes', 'bytes moved'],
      ['parameters', 'parameters'],
      ['memory_bytes', 'output bytes'],
    ].filter(Boolean),
    () => draw(),
  );
  const count = chooser(
    'How many',
    [20, 50, 100].map(n => [n, 'top ' + n]),
    () => draw(),
  );
  const bars = h('div', { class: 'bars', id: 'bars-layers' });
  const { note } = viewPanel('layers', 'Layers that take most', '', [by, count], bars);
  function draw() {
    const key = by.value,
      format = key === 'time' ? time : /bytes/.test(key) ? bytes : si;
    const ranked = layers.filter(l => l[key] > 0).sort((a, b) => b[key] - a[key]),
      rows = ranked.slice(0, +count.value);
    const add = list => list.reduce((total, l) => total + l[key], 0),
      sum = add(ranked);
    note.textContent = rows.length
      ? 'The ' +
        plural(rows.length, 'layer') +
        ' shown have ' +
        percent(add(rows) / sum) +
        ' of the ' +
        by.selectedOptions[0].textContent +
        (ranked.length > rows.length ? '; ' + grouped(ranked.length - rows.length) + ' more layers have the rest' : '') +
        '. Coloured by operator type'
      : 'No layer has any.';
    const names = distinctNames(rows.map(l => l.name || l.op), LABEL_ROOM);
    bars.replaceChildren(
      ...rows.map((l, i) =>
        barRow({
          name: names[i],
          title: l.name + '\n' + l.op + ', ' + rowTime(l) + ', ' + si(l.flops) + ' FLOPs',
          click: () => showRow('layers', l),
          bars: [
            {
              part: l[key] / rows[0][key],
              fill: typeColor(l.op),
              text: (key === 'time' ? rowTime(l) : format(l[key])) + '  ' + percent(l[key] / sum),
            },
          ],
        }),
      ),
    );
  }
  themeListeners.push(draw);
  draw();
}
