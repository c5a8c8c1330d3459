/* The accuracy profile: errors along the network as a picture that the page draws itself, and the operators that lose most. */
'use strict';

function svgElement(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes))
    if (typeof value === 'function') element.addEventListener(key, value);
    else element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const errorText = figures => (!figures ? '–' : figures.max_rel === 0 ? '0' : figures.max_rel.toExponential(1));
const decibelText = figures => (figures && known(figures.snr_db) ? figures.snr_db.toFixed(0) + ' dB' : '–');

/* Own errors as dots, accumulated ones as a line. Operators without error are on the lower edge. */
function errorCurve(rows) {
  const width = 960,
    height = 300,
    left = 56,
    right = width - 12,
    top = 12,
    bottom = height - 34;
  const values = rows.flatMap(o => [o.error.own, o.error.accumulated]).filter(f => f && f.max_rel > 0);
  const low = values.length ? Math.floor(Math.log10(Math.min(...values.map(f => f.max_rel)))) : -8,
    high = Math.max(low + 1, values.length ? Math.ceil(Math.log10(Math.max(...values.map(f => f.max_rel)) * 1.01)) : -6);
  const x = o => left + ((right - left) * o.index) / Math.max(1, operators.length - 1),
    y = f => bottom - ((bottom - top) * (Math.max(low, f.max_rel > 0 ? Math.log10(f.max_rel) : low) - low)) / (high - low);
  const svg = svgElement('svg', {
    viewBox: '0 0 ' + width + ' ' + height,
    class: 'error-curve',
    role: 'img',
    'aria-label': 'Errors of the operators along the network',
  });
  for (let power = low; power <= high; power += Math.max(1, Math.round((high - low) / 8))) {
    const at = bottom - ((bottom - top) * (power - low)) / (high - low);
    svg.append(
      svgElement('line', { x1: left, x2: right, y1: at, y2: at, class: 'grid-line' }),
      svgElement('text', { x: left - 6, y: at + 4, 'text-anchor': 'end' }, '1e' + power),
    );
  }
  svg.append(svgElement('text', { x: left, y: height - 8 }, 'operators in the order of the plan'));
  const line = rows.filter(o => o.error.accumulated);
  if (line.length)
    svg.append(
      svgElement('path', {
        d: line.map((o, i) => (i ? 'L' : 'M') + x(o).toFixed(1) + ' ' + y(o.error.accumulated).toFixed(1)).join(''),
        class: 'accumulated',
      }),
    );
  for (const o of rows.filter(row => row.error.own))
    svg.append(
      svgElement(
        'circle',
        { cx: x(o).toFixed(1), cy: y(o.error.own).toFixed(1), r: 3.5, class: o.error.own.nonfinite ? 'own bad' : 'own', click: () => showRow('operators', o) },
        svgElement('title', {}, o.name + ' (' + o.op + ', ' + (o.kernel || '') + ')\nown ' + errorText(o.error.own) + ', ' + decibelText(o.error.own) +
          '\naccumulated ' + errorText(o.error.accumulated) + ', ' + decibelText(o.error.accumulated)),
      ),
    );
  return svg;
}

const loses = o => o.error.own && (o.error.own.nonfinite > 0 || o.error.own.max_abs > 0);
function worstFirst(a, b) {
  const x = a.error.own,
    y = b.error.own;
  return (y.nonfinite > 0) - (x.nonfinite > 0) || y.max_rel - x.max_rel || a.index - b.index;
}

function errorTable(rows) {
  const MOST = 12,
    number = text => h('td', { class: 'num' }, text);
  const worst = rows.filter(loses).sort(worstFirst),
    names = distinctNames(worst.slice(0, MOST).map(o => o.name || ''), LABEL_ROOM),
    head = ['operator', 'kernel', 'own', '', 'ulp', 'beyond', 'accumulated', ''];
  if (!worst.length) return h('p', { class: 'sub' }, 'No operator has an error of its own.');
  return h(
    'div',
    { class: 'plain-table' },
    h(
      'table',
      { id: 'table-accuracy' },
      h('thead', {}, h('tr', {}, head.map((title, i) => h('th', { scope: 'col', class: i > 1 ? 'num' : null }, title)))),
      h(
        'tbody',
        {},
        worst.slice(0, MOST).map((o, i) =>
          h(
            'tr',
            { click: () => showRow('operators', o), title: o.name },
            h('td', {}, h('bdi', {}, names[i])),
            h('td', {}, o.kernel || ''),
            number(o.error.own.nonfinite ? grouped(o.error.own.nonfinite) + ' NaN/Inf' : errorText(o.error.own)),
            number(decibelText(o.error.own)),
            number(si(o.error.own.ulp)),
            number(percent(o.error.own.beyond)),
            number(errorText(o.error.accumulated)),
            number(decibelText(o.error.accumulated)),
          ),
        ),
      ),
    ),
    worst.length > MOST ? h('p', { class: 'sub' }, 'and ' + plural(worst.length - MOST, 'operator') + ' with smaller errors; the tables show them') : null,
  );
}

function outputErrors(accuracy) {
  return h(
    'ul',
    { class: 'outputs' },
    (accuracy.outputs || []).map(out =>
      h('li', {}, h('bdi', {}, out.name) , ' beside ' + (out.against || 'the reference') + ': ' + errorText(out.error) + ' of its range, ' + decibelText(out.error)),
    ),
  );
}

function accuracyPanel() {
  const accuracy = report.accuracy;
  if (!accuracy) return;
  const rows = operators.filter(o => o.error),
    key = (name, fill) => h('span', { class: 'key' }, h('i', { style: 'background:' + fill }), name);
  const { box } = viewPanel(
    'accuracy',
    'Accuracy against float64',
    accuracy.verdict,
    rows.length ? [key('own', 'var(--accent)'), key('accumulated', 'var(--time)')] : [],
    ...(rows.length ? [errorCurve(rows), errorTable(rows)] : []),
    outputErrors(accuracy),
  );
  box.classList.add('wide');
  if (accuracy.operators)
    box.append(
      h(
        'p',
        { class: 'sub' },
        'Largest error over the output\u2019s range. Own: on the same inputs; accumulated: from the model\u2019s inputs on. ' +
          grouped(accuracy.compared) + ' of ' + plural(accuracy.operators, 'operator') + ' compared; the run with its reference took ' + time(accuracy.run_ns) +
          ' and at most ' + bytes(accuracy.peak_bytes) + ' of reference tensors.',
      ),
    );
}
