/* The graph: layers laid out, coloured by what they take; a click shows the row beside it, and a row shows its node. */
'use strict';
let graphView = null;

/* From panel to full colour, as [r, g, b] mixed by level; and the ink that is read on it. */
function mixer(from, to) {
  const parts = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)),
    [a, b] = [parts(from), parts(to)];
  return level =>
    '#' +
    a
      .map((v, i) =>
        Math.round(v + (b[i] - v) * Math.min(1, Math.max(0, level)))
          .toString(16)
          .padStart(2, '0'),
      )
      .join('');
}

const MOST_LEGIBLE = 160; /* nodes of a graph that opens whole; a larger one opens by module */
const moduleParts = l => (l.module || '').split('/').filter(Boolean);

/* A run of layers of one module as one node. Figures are sums; `inside` are the layers. */
function moduleNode(key, run, again) {
  const add = member => run.reduce((total, l) => total + (l[member] || 0), 0);
  return {
    name: key + (again ? ' (' + (again + 1) + ')' : ''),
    op: plural(run.length, 'layer'),
    inside: run,
    main: [...run].sort((a, b) => (stamped ? b.share - a.share : b.flops - a.flops))[0].op,
    key,
    time: stamped ? add('time') : null,
    share: stamped ? add('share') : null,
    flops: add('flops'),
    macs: add('macs'),
    parameters: add('parameters'),
    memory_bytes: add('memory_bytes'),
    time_attributed: run.some(l => l.time_attributed),
  };
}

/* The graph with the modules of `depth` levels as nodes; 0: every layer. `opened`: modules shown by what is in them.
 * Only layers that follow one another join, so edges still lead from earlier nodes to later ones. */
function graphModel(depth, opened) {
  const shown = layers.filter(l => !l.folded),
    nodes = [],
    place = new Map(),
    seen = new Map();
  const keyOf = l => {
    const parts = moduleParts(l);
    let d = depth,
      key = parts.slice(0, d).join('/');
    while (opened.has(key) && d < parts.length) key = parts.slice(0, ++d).join('/');
    return depth && key && !opened.has(key) ? key : null;
  };
  for (let i = 0; i < shown.length;) {
    const key = keyOf(shown[i]),
      run = [shown[i++]];
    while (key !== null && i < shown.length && keyOf(shown[i]) === key) run.push(shown[i++]);
    for (const l of run) place.set(l.index, nodes.length);
    if (run.length > 1) {
      nodes.push(moduleNode(key, run, seen.get(key) || 0));
      seen.set(key, (seen.get(key) || 0) + 1);
    } else nodes.push(run[0]);
  }
  const sources = nodes.map((node, i) => [
    ...new Set(
      (node.inside || [node]).flatMap(l => l.sources || []).map(s => place.get(s)).filter(s => s !== undefined && s < i),
    ),
  ]);
  const readers = nodes.map(() => []);
  sources.forEach((list, i) => list.forEach(s => readers[s].push(i)));
  return { nodes, place, sources, readers };
}

/* Depths that make a graph of another size: [[depth, nodes]], the smallest graph first, every layer last. */
function graphDepths() {
  const deepest = Math.min(6, layers.reduce((most, l) => Math.max(most, moduleParts(l).length), 0)),
    all = graphModel(0, new Set()).nodes.length,
    depths = [];
  for (let d = 1; d <= deepest; d++) {
    const count = graphModel(d, new Set()).nodes.length;
    if (count > 2 && count < all && (!depths.length || count > depths[depths.length - 1][1])) depths.push([d, count]);
  }
  return [...depths, [0, all]];
}

/* The ways of colouring: what a level of 0 to 1 says of a node. */
function graphColours(nodes) {
  /* Full colour from the few highest on: one that towers above all would leave the rest pale. */
  const top = key => nodes.map(l => l[key] || 0).sort((a, b) => b - a)[Math.floor(nodes.length / 400)];
  const shares = { share: top('share'), flops: top('flops'), memory_bytes: top('memory_bytes') };
  const heat = key => {
    const mix = mixer(color('cold'), color('time'));
    return l => (l[key] > 0 && shares[key] > 0 ? mix(Math.sqrt(l[key] / shares[key])) : color('cold'));
  };
  return by => {
    const fills = new Map(),
      fill = by === 'op' ? l => typeColor(l.main || l.op) : heat(by);
    for (const l of nodes) {
      const hex = fill(l);
      fills.set(l, { fill: hex, ink: inkOn(hex) });
    }
    return fills;
  };
}

function graphPanel() {
  const opened = new Set(),
    depths = graphDepths(),
    legible = depths.filter(([, count]) => count <= MOST_LEGIBLE);
  let depth = depths[depths.length - 1][1] <= MOST_LEGIBLE || !legible.length ? 0 : legible[legible.length - 1][0],
    { nodes, place, sources, readers } = graphModel(depth, opened);
  if (nodes.length < 2) return;
  let placed = layoutGraph(sources),
    names = namesOf(nodes),
    ranked = rankNodes(),
    selected = -1,
    rank = -1,
    fills = new Map(),
    ink = {},
    colour = graphColours(nodes);
  function rankNodes() {
    return nodes.map((l, i) => i).sort((a, b) => heatOf(nodes[b]) - heatOf(nodes[a]));
  }
  function namesOf(list) {
    const shown = distinctNames(list.map(l => l.name || l.op), Math.floor((NODE.width - 12) / 5.9));
    return new Map(list.map((l, i) => [l, shown[i]]));
  }
  function heatOf(l) {
    return stamped ? l.share || 0 : l.flops || 0;
  }
  const figure = l => (stamped ? rowTime(l) + '  ' + percent(l.share) : si(l.flops) + ' FLOPs');
  const by = chooser(
    'Coloured by',
    [
      stamped && ['share', 'by time'],
      ['flops', 'by FLOPs'],
      ['memory_bytes', 'by output bytes'],
      ['op', 'by type'],
    ].filter(Boolean),
    () => recolour(),
  );
  function recolour() {
    fills = colour(by.value);
    ink = { line: color('edge'), accent: color('accent'), text: color('ink'), ground: color('panel') };
    map.redraw();
  }

  /* Vertices in sight, row by row: only those are drawn, and only those are searched for a click. */
  function inSight(view, size, visit) {
    const pitch = NODE.height + NODE.gapY,
      first = Math.max(0, Math.floor(view.y / pitch) - 1),
      last = Math.ceil((view.y + size.height / view.k) / pitch) + 1;
    for (const column of placed.columns) {
      if (column.right + NODE.width < view.x || column.x - NODE.width > view.x + size.width / view.k) continue;
      for (let r = column.begin + first; r < Math.min(column.end, column.begin + last); r++)
        for (const v of placed.rows[r]) visit(v, column);
    }
  }
  const bottom = v => placed.y[v] + NODE.height; /* of a lane, too: it goes through its row */
  function edgeTo(context, a, b) {
    const x1 = placed.x[a],
      y1 = bottom(a),
      x2 = placed.x[b],
      y2 = placed.y[b];
    context.moveTo(x1, y1);
    if (placed.columnOf[placed.depth[a]] !== placed.columnOf[placed.depth[b]]) {
      const reach = NODE.column / 2 + NODE.width / 2;
      context.bezierCurveTo(x1 + reach, y1 + reach, x2 - reach, y2 - reach, x2, y2);
    } else if (placed.depth[b] - placed.depth[a] > 1) {
      const side = Math.max(x1, x2) + NODE.width;
      context.bezierCurveTo(side, y1 + NODE.gapY, side, y2 - NODE.gapY, x2, y2);
    } else if (Math.abs(x1 - x2) < 1) context.lineTo(x2, y2);
    else context.bezierCurveTo(x1, (y1 + y2) / 2, x2, (y1 + y2) / 2, x2, y2);
    if (b >= placed.count) {
      context.moveTo(x2, y2);
      context.lineTo(x2, y2 + NODE.height);
    }
  }
  function drawEdges(context, view, size) {
    context.beginPath();
    inSight(view, size, (v, column) => {
      for (const a of placed.up[v]) edgeTo(context, a, v);
      if (placed.depth[v] === column.end - 1) for (const b of placed.down[v]) edgeTo(context, v, b);
    });
    context.strokeStyle = ink.line;
    context.lineWidth = Math.max(1, 0.6 / view.k);
    context.stroke();
    if (placed.long.length && view.k > 0.12) {
      context.globalAlpha = 0.4 / (1 + placed.long.length / 200); /* many of them are a haze, not a web */
      context.beginPath();
      for (const [a, b] of placed.long) edgeTo(context, a, b);
      context.stroke();
      context.globalAlpha = 1;
    }
  }
  /* The edges of the node that is chosen, along their lanes. */
  function drawChosen(context, view) {
    context.strokeStyle = ink.accent;
    context.lineWidth = 2.2 / view.k;
    context.beginPath();
    const follow = (v, near, forward) => {
      for (const o of near[v]) {
        if (forward) edgeTo(context, v, o);
        else edgeTo(context, o, v);
        if (o >= placed.count) follow(o, near, forward);
      }
    };
    follow(selected, placed.up, false);
    follow(selected, placed.down, true);
    for (const [a, b] of placed.long) if (a === selected || b === selected) edgeTo(context, a, b);
    context.stroke();
    for (const o of [...sources[selected], ...readers[selected]])
      context.strokeRect(placed.x[o] - NODE.width / 2, placed.y[o], NODE.width, NODE.height);
    context.lineWidth = 4 / view.k;
    context.strokeRect(placed.x[selected] - NODE.width / 2, placed.y[selected], NODE.width, NODE.height);
  }
  function drawText(context, l, v, k) {
    const left = placed.x[v] - NODE.width / 2 + 6,
      room = NODE.width - 12;
    const fit = text => {
      const most = Math.floor(room / (k > 0.9 ? 5.9 : 6.1));
      return text.length > most ? '…' + text.slice(1 - most) : text;
    };
    context.font = '600 11px sans-serif';
    context.fillText(fit(l.op), left, placed.y[v] + 14);
    context.font = '10px sans-serif';
    context.fillText(names.get(l), left, placed.y[v] + 27);
    if (heatOf(l) > 0) context.fillText(figure(l), left, placed.y[v] + 40);
  }
  /* From afar: the type alone, as large as it is on the screen. */
  function drawType(context, l, v, k) {
    const most = Math.floor((NODE.width * k - 4) / 6.4);
    context.font = '600 ' + 9 / k + 'px sans-serif';
    context.fillText(
      l.op.length > most ? l.op.slice(0, most - 1) + '…' : l.op,
      placed.x[v] - NODE.width / 2 + 3 / k,
      placed.y[v] + NODE.height / 2 + 3 / k,
    );
  }
  function draw(context, view, size) {
    context.save();
    context.scale(view.k, view.k);
    context.translate(-view.x, -view.y);
    drawEdges(context, view, size);
    const close = view.k > 0.55,
      set = search.found.set,
      isFound = l => (l.inside ? l.inside.some(inner => set.has(inner)) : set.has(l)),
      named = [];
    inSight(view, size, v => {
      if (v >= placed.count) return;
      const l = nodes[v],
        look = fills.get(l);
      context.globalAlpha = set && !isFound(l) ? 0.18 : 1;
      context.fillStyle = look.fill;
      context.fillRect(placed.x[v] - NODE.width / 2, placed.y[v], NODE.width, NODE.height);
      if (view.k > 0.26) {
        context.fillStyle = look.ink;
        (close ? drawText : drawType)(context, l, v, view.k);
      }
      named.push(v);
    });
    context.globalAlpha = 1;
    if (set && set.size < 2000) {
      context.strokeStyle = ink.accent;
      context.lineWidth = 2 / view.k;
      for (const v of named)
        if (isFound(nodes[v])) context.strokeRect(placed.x[v] - NODE.width / 2, placed.y[v], NODE.width, NODE.height);
    }
    if (selected >= 0) drawChosen(context, view);
    context.restore();
  }
  function hit(x, y) {
    const column = placed.columns.find(c => x >= c.x - 1 && x <= c.right + 1);
    if (!column) return null;
    const row = placed.rows[column.begin + Math.floor(y / (NODE.height + NODE.gapY))];
    if (!row || placed.columnOf[placed.depth[row[0]]] !== placed.columns.indexOf(column)) return null;
    const v = row.find(
      o =>
        o < placed.count &&
        Math.abs(placed.x[o] - x) <= NODE.width / 2 &&
        y - placed.y[o] <= NODE.height &&
        y >= placed.y[o],
    );
    return v === undefined ? null : nodes[v];
  }

  const side = h('div', { class: 'beside', id: 'graph-row', 'aria-live': 'polite' });
  function prompt() {
    side.replaceChildren(
      h(
        'p',
        { class: 'hint' },
        'Click a node for its row. Drag to move; wheel (after a click, or with Ctrl), two fingers or + and − to zoom; 0 for all; n and p go from the most expensive node to the next.',
      ),
    );
  }
  /* A module's figures, its layers that take most, and a way into it. */
  function insideOf(node) {
    const most = [...node.inside].sort((a, b) => heatOf(b) - heatOf(a)).slice(0, 8);
    return h(
      'div',
      {},
      h('p', {}, figure(node) + ', ' + si(node.flops) + ' FLOPs, ' + si(node.parameters) + ' parameters'),
      h('p', {}, h('button', { type: 'button', click: () => open(node) }, 'open this module')),
      h('h4', {}, node.op + ', the most expensive'),
      ...most.map(l =>
        h('button', { type: 'button', class: 'link', click: () => choose(l, true) }, (l.name || l.op) + ' · ' + figure(l)),
      ),
    );
  }
  /* Builds the graph anew at another depth, or with other modules opened. */
  function rebuild(to) {
    if (to !== depth) opened.clear();
    depth = to;
    detail.value = String(depth);
    ({ nodes, place, sources, readers } = graphModel(depth, opened));
    placed = layoutGraph(sources);
    names = namesOf(nodes);
    ranked = rankNodes();
    colour = graphColours(nodes);
    selected = rank = -1;
    placed.fold(map.size.width - FRAME, map.size.height - FRAME);
    map.world.width = placed.width;
    map.world.height = placed.height;
    note.textContent = describe();
    Object.assign(graphView, { nodes, placed });
    recolour();
    map.all();
  }
  function open(node) {
    opened.add(node.key);
    rebuild(depth);
    choose(nodes[place.get(node.inside[0].index)], true);
  }
  const describe = () =>
    (nodes.length < shownLayers
      ? plural(shownLayers, 'layer') + ' in ' + plural(nodes.length, 'node') + ', modules as one node each'
      : plural(nodes.length, 'layer')) +
    ', from top to bottom, column by column; a stronger colour means a larger share';
  const shownLayers = layers.filter(l => !l.folded).length;
  const detail = chooser(
    'Detail',
    depths.map(([d, count]) => [d, (d ? 'modules, depth ' + d : 'every layer') + ' (' + grouped(count) + ')']),
    () => {
      prompt();
      rebuild(+detail.value);
    },
  );
  detail.value = String(depth);
  function whole() {
    const large = panel.classList.toggle('whole');
    wide.textContent = large ? 'close' : 'whole window';
    document.body.classList.toggle('behind', large);
  }
  const wide = h('button', { type: 'button', title: 'The graph in the whole window', click: whole }, 'whole window');

  function choose(l, bring) {
    if (l && !nodes.includes(l)) rebuild(0);
    selected = l ? nodes.indexOf(l) : -1;
    if (selected < 0) {
      prompt();
      map.redraw();
      return false;
    }
    rank = ranked.indexOf(selected);
    const near = (title, list) =>
      list.length
        ? [
            h('h4', {}, title),
            ...list
              .slice(0, 12)
              .map(i =>
                h(
                  'button',
                  { type: 'button', class: 'link', click: () => choose(nodes[i], true) },
                  (nodes[i].name || nodes[i].op) + ' · ' + figure(nodes[i]),
                ),
              ),
          ]
        : [];
    side.replaceChildren(
      h('h3', {}, l.name || l.op),
      h(
        'p',
        { class: 'hint' },
        'Number ' + grouped(rank + 1) + ' of ' + grouped(nodes.length) + (stamped ? ' by time' : ' by FLOPs'),
      ),
      l.inside
        ? insideOf(l)
        : h(
            'p',
            {},
            h('button', { type: 'button', click: () => showInTable('layers', l) }, 'in the table'),
            ' ',
            stamped && known(l.operator)
              ? h('button', { type: 'button', click: () => showInTimeline(operators[l.operator]) }, 'in the timeline')
              : null,
          ),
      ...near('Reads', sources[selected]),
      ...near('Read by', readers[selected]),
      ...(l.inside ? [] : [h('h4', {}, 'Row'), rowDetails('layers', l)]),
    );
    side.scrollTop = 0;
    if (bring) map.show(placed.x[selected], placed.y[selected] + NODE.height / 2, 0.9);
    map.redraw();
    return true;
  }
  const step = by => {
    rank = (rank + by + ranked.length) % ranked.length;
    choose(nodes[ranked[rank]], true);
  };
  const search = finder(
    'Graph',
    () => layers.filter(l => !l.folded),
    l => choose(l, true),
    () => map.redraw(),
  );
  const map = explorer({
    id: 'graph',
    title: 'Graph',
    help: 'n and p go from the most expensive node to the next.',
    height: innerWidth < 700 ? 420 : 560,
    draw,
    hit,
    pick: l => choose(l, false),
    tip: l => [l.op + (l.name ? ' ' + l.name : ''), figure(l), l.output],
    keys: { n: () => step(1), p: () => step(rank < 0 ? 0 : -1) },
    resized(size, world) {
      placed.fold(size.width - FRAME, size.height - FRAME);
      world.width = placed.width;
      world.height = placed.height;
    },
  });
  const hottest = h(
    'button',
    { type: 'button', title: 'The next most expensive node', click: () => step(1) },
    'next most expensive',
  );
  const { box: panel, note } = viewPanel(
    'graph',
    'Graph',
    describe(),
    [search.input, search.count, depths.length > 1 ? detail : null, by, hottest, ...map.controls, wide].filter(Boolean),
    h('div', { class: 'split' }, map.box, side),
  );
  document.addEventListener('keydown', event => {
    if (event.key === 'Escape' && panel.classList.contains('whole')) whole();
  });
  themeListeners.push(recolour);
  prompt();
  recolour();
  map.resize();
  graphView = { map, choose, placed, nodes, search, rebuild, whole, chosen: () => nodes[selected] };
}

/* From a row to its node; a row of an operator shows the first of its layers. False: it has none. */
function nodeOf(level, row) {
  const l = level === 'layers' ? row : level === 'operators' ? layers[row.layers[0]] : null;
  return graphView && l && !l.folded ? l : null;
}
function showInGraph(level, row) {
  const l = nodeOf(level, row);
  if (!l) return;
  $('panel-graph').scrollIntoView();
  graphView.choose(l, true);
}
