/* Behaviour of the pictures that profiler/exporters/svg/*.c draw: the page contains them as SVG, and their elements name
 * the report's row that they show (data-operator="7"). A tip follows the pointer, a click opens the row. */
'use strict';
const pictureRows = {
  operator: operators,
  layer: layers,
  module: modules,
};

/* Everything that the tip of a row says, in every picture; the first line is the heading. */
function rowTip(row) {
  const own = row.error && row.error.own,
    executed = row.flops > 0 ? (row.executed_flops ?? row.flops) / row.flops : 1; /* pictures show what kernels execute */
  return [
    row.name || row.op,
    [row.op || row.type, row.kernel].filter(Boolean).join(', '),
    row.time > 0 && rowTime(row) + (known(row.share) ? ', ' + percent(row.share) : '') + (row.bound ? ', bound by ' + row.bound : ''),
    row.rate > 0 &&
      known(row.arithmetic_intensity) &&
      si(row.rate * executed) + 'FLOP/s at ' + si(row.arithmetic_intensity * executed) + ' FLOP/B' +
        (known(row.percent_of_roof) ? ', ' + row.percent_of_roof.toFixed(0) + ' % of the roof' : ''),
    own && 'own error ' + errorText(own) + ', ' + decibelText(own),
    own && row.error.accumulated && 'accumulated ' + errorText(row.error.accumulated) + ', ' + decibelText(row.error.accumulated),
  ];
}

const tipBox = h('div', { class: 'tip', hidden: '' });
document.body.append(tipBox);
/* A finger's tip stays until the next touch elsewhere. */
document.addEventListener('pointerdown', event => event.target.closest('.picture') || showTip(event, null));
/* Shows lines beside the pointer, inside of the window; none: hides the tip. */
function showTip(event, lines) {
  const shown = (lines || []).filter(Boolean);
  tipBox.hidden = !shown.length;
  if (!shown.length) return;
  tipBox.replaceChildren(...shown.map((line, i) => h(i ? 'div' : 'b', {}, line)));
  const above = event.clientY + 16 + tipBox.offsetHeight > innerHeight;
  tipBox.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tipBox.offsetWidth - 4)) + 'px';
  tipBox.style.top = (above ? Math.max(4, event.clientY - tipBox.offsetHeight - 8) : event.clientY + 16) + 'px';
}

/* The row that an element shows, as {key, row}; null: the element shows none. */
function rowOf(element) {
  for (const [key, rows] of Object.entries(pictureRows)) {
    const marked = element.closest('[data-' + key + ']');
    if (marked) return { key, row: rows[marked.dataset[key]] };
  }
  return null;
}

/* Hides what an entry of a picture's key stands for, or shows it again. */
function toggleGroup(box, key) {
  const off = key.classList.toggle('off');
  key.setAttribute('aria-pressed', !off);
  for (const group of box.querySelectorAll('[data-group="' + key.dataset.of + '"]')) group.style.display = off ? 'none' : '';
}

/* A picture's panel, moved to a section of the page; null: the report has no such picture. `controls` stand beside the
 * heading. `hover` and `pick` (event, {key, row} or null) replace the usual tip and the usual click. */
function picture(chart, section, { controls = [], wide = false, hover, pick } = {}) {
  const box = document.querySelector('#pictures [data-chart="' + chart + '"]');
  if (!box) return null;
  const svg = box.querySelector('svg'),
    note = box.querySelector('.sub');
  box.classList.toggle('wide', wide);
  box.querySelector('.head').append(...controls);
  $(section).append(box);
  const tell = event => {
    const found = rowOf(event.target),
      title = [...event.target.children].find(child => child.tagName === 'title');
    if (title) {
      event.target.setAttribute('aria-label', title.textContent); /* instead of the browser's own late tip */
      title.remove();
    }
    const said = event.target.getAttribute('aria-label');
    showTip(event, (hover && hover(event, found)) || (found ? rowTip(found.row) : event.target.tagName !== 'svg' && said ? said.split('\n') : null));
  };
  for (const kind of ['pointermove', 'pointerdown']) box.addEventListener(kind, tell);
  box.addEventListener('pointerleave', event => event.pointerType === 'mouse' && showTip(event, null));
  for (const key of box.querySelectorAll('.key')) {
    for (const [name, value] of Object.entries({ tabindex: 0, role: 'button', 'aria-pressed': true })) key.setAttribute(name, value);
    key.addEventListener('keydown', event => event.key === 'Enter' && toggleGroup(box, key));
  }
  box.addEventListener('click', event => {
    const found = rowOf(event.target),
      key = event.target.closest('.key');
    if (key) return toggleGroup(box, key);
    if (pick && event.target.closest('svg')) pick(event, found);
    else if (found) showRow(found.key + 's', found.row);
  });
  return { box, svg, note };
}
