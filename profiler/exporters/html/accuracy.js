/* The accuracy profile: the operators that lose most, below the picture of errors along the network. */
'use strict';

const errorText = figures => (!figures ? '–' : figures.max_rel === 0 ? '0' : figures.max_rel.toExponential(1));
const decibelText = figures => (figures && known(figures.snr_db) ? figures.snr_db.toFixed(0) + ' dB' : '–');

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
    { box } = picture('accuracy', 'views') || viewPanel('accuracy', 'Accuracy against float64', accuracy.verdict);
  box.classList.add('wide');
  if (rows.length) box.append(errorTable(rows));
  box.append(outputErrors(accuracy));
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
