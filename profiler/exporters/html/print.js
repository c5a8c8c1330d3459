/* Paper: the light theme, graph and timeline drawn anew for the page's width, and instead of the table that scrolls one that holds its
 * first rows, with the columns that a page has room for. Nothing stays of it on the screen. */
'use strict';
const PAPER_WIDTH = 1040 /* pixels for a table's columns, whose widths are for a screen: on paper they wrap */,
  PAPER_ROWS = 60;

function paperTable() {
  const columns = fittingColumns(view.key, view.level.all, PAPER_WIDTH),
    rows = view.rows.slice(0, PAPER_ROWS),
    rest = view.rows.slice(PAPER_ROWS),
    share = rest.reduce((sum, row) => sum + (row.share || 0), 0);
  const plain = (c, row) => {
    const value = c.get(row);
    return c.format ? c.format(value, row) : String(value);
  };
  return h(
    'div',
    { id: 'paper', class: 'paper' },
    h('h2', {}, view.level.title),
    h(
      'table',
      {},
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          columns.map(c => h('th', { scope: 'col', class: c.numeric ? 'num' : '' }, c.title)),
        ),
      ),
      h(
        'tbody',
        {},
        rows.map(row =>
          h(
            'tr',
            {},
            columns.map(c => h('td', { class: c.numeric ? 'num' : '' }, plain(c, row))),
          ),
        ),
      ),
    ),
    rest.length
      ? h(
          'p',
          { class: 'hint' },
          'and ' +
            grouped(rest.length) +
            ' more' +
            (known(rest[0].share) && view.key !== 'modules' ? ' with ' + percent(share) + ' of the time' : '') +
            '; the page on a screen, its CSV and its JSON have them',
        )
      : null,
  );
}

let themeThen = null;
/* Draws the canvases again at the size that they have now, `ratio` pixels to one (0: the screen's). */
function drawAll(theme, ratio) {
  applyTheme(theme);
  for (const shown of [graphView, timelineView])
    if (shown) {
      shown.map.ratio = ratio;
      shown.map.resize();
      shown.map.paint();
    }
}
addEventListener('beforeprint', () => {
  if (root.classList.contains('printing')) return;
  themeThen = root.dataset.theme;
  root.classList.add('printing');
  drawAll('light', 2);
  $('tables').append(paperTable());
});
addEventListener('afterprint', () => {
  if (!root.classList.contains('printing')) return;
  root.classList.remove('printing');
  $('paper').remove();
  drawAll(themeThen, 0);
});
