/* The picture of the module tree: a click enters a module, ↑ leaves it, a list chooses the figure. */
'use strict';
pictureRows.rest = modules.map(m => ({ name: 'smaller parts of ' + m.name, op: 'click for the table', path: m.path }));

/* Names for the parts in sight, as C writes them for the whole: the end of a name is what tells. */
function nameParts(svg, plot, figure) {
  const [left, right] = plot.data,
    box = plot.frame.viewBox.baseVal,
    scale = (right - left) / box.width,
    names = svg.querySelector('.names'),
    texts = [];
  for (const rect of plot.group.querySelectorAll('rect')) {
    const at = Math.max(left, left + (rect.x.baseVal.value - box.x) * scale),
      end = Math.min(right, left + (rect.x.baseVal.value + rect.width.baseVal.value - box.x) * scale),
      room = Math.floor((end - at - 8) / 6.6),
      { row } = rowOf(rect),
      name = (row.path === '' && row.layers ? modelName : row.name || row.op).split('/').pop();
    if (room < 4 || rect.dataset.rest) continue;
    for (const [shift, size, fill, text] of [
      [14, 11, '#1f2937', name.length > room ? '…' + name.slice(1 - room) : name],
      [27, 10, '#6b7280', end - at > 100 ? figure(row) : ''],
    ]) {
      const label = document.createElementNS(svg.namespaceURI, 'text');
      for (const [key, value] of Object.entries({ x: at + 4, y: rect.y.baseVal.value + shift, 'font-size': size, fill })) label.setAttribute(key, value);
      label.append(text);
      texts.push(label);
    }
  }
  names.replaceChildren(...texts);
}

let modulesView = null;
function modulesPicture() {
  const figures = [stamped && ['time', time], ['flops', si], ['parameters', si]].filter(Boolean);
  let views = [],
    shown = 0,
    top = modules[0];
  const above = row => modules.find(m => (m.children || []).includes(row.path));
  const by = chooser('Figure', figures.map(([key], i) => [i, key === 'flops' ? 'FLOPs' : key]), () => show(top, +by.value));
  const up = h('button', { type: 'button', click: () => show(above(top) || top, shown) }, '↑ up');
  /* Zooms to a module; one that has nothing of the figure is left for the module around it. */
  function show(module, figure) {
    shown = figure;
    by.value = String(figure);
    const { svg, zoom } = views[figure],
      [key, format] = figures[figure],
      rect = svg.querySelector('rect[data-module="' + modules.indexOf(module) + '"]'),
      whole = modules[0][key] || 0;
    views.forEach((view, i) => view.svg.classList.toggle('off', i !== figure));
    note.textContent =
      module.name + ': ' + format(module[key]) + (whole > 0 ? ', ' + percent(module[key] / whole) : ': nothing to show') +
      '. Each row is a level of the tree that node names spell, layers (grey) as leaves; click to enter, ↑ to leave';
    if (!rect && above(module)) return show(above(module), figure);
    top = module;
    up.disabled = !above(top);
    if (!rect) return;
    const [left, right] = zoom.plots[0].data,
      at = x => (x - left) / (right - left),
      x = rect.x.baseVal.value;
    zoom.show(at(x), at(x + rect.width.baseVal.value));
    nameParts(svg, zoom.plots[0], row => format(row[key]) + '  ' + percent(row[key] / whole));
  }
  const found = picture('modules', 'charts', {
    wide: true,
    controls: [by, up],
    hover: (event, part) => {
      if (!part || part.key === 'rest') return null;
      const [key, format] = figures[shown];
      return [
        ...rowTip(part.row),
        format(part.row[key]) + ', ' + percent(part.row[key] / top[key]) + ' of what is shown',
        si(part.row.flops) + ' FLOPs, ' + si(part.row.parameters) + ' parameters',
      ];
    },
    pick: (event, part) => {
      if (!part) return;
      if (part.key === 'module') show(part.row, shown);
      else if (part.key === 'layer') showRow('layers', part.row);
      else {
        showLevel('layers');
        $('search').value = 'module:' + part.row.path.toLowerCase();
        refresh();
      }
    },
  });
  if (!found || !top) return;
  const { box, note } = found;
  views = [...box.querySelectorAll('.picture > svg')].map(svg => ({ svg, zoom: zoomable(svg, { drags: false }) }));
  modulesView = { show, views, top: () => top };
  show(top, 0);
}
