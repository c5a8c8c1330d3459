/* The sunburst of the module tree; then everything is drawn. */
'use strict';
/* The module tree with its layers as leaves. */
function moduleTree() {
  const nodes = new Map(
    modules.map(m => [m.path, { name: m.path.split('/').pop() || '__root__', row: m, kind: 'modules', children: [] }]),
  );
  for (const m of modules)
    for (const path of m.children || [])
      if (nodes.has(path)) {
        nodes.get(path).parent = nodes.get(m.path);
        nodes.get(m.path).children.push(nodes.get(path));
      }
  for (const l of layers) {
    const home = nodes.get(l.module) || nodes.get('');
    if (home)
      home.children.push({
        name: shortName(l.name || l.op)
          .split('/')
          .pop(),
        row: l,
        kind: 'layers',
        children: [],
        parent: home,
      });
  }
  return nodes.get('') || null;
}

/* Names inside of the arcs that are wide enough. */
const arcNames = {
  id: 'arcNames',
  afterDatasetsDraw(chart) {
    const { ctx } = chart;
    ctx.save();
    ctx.font = '11px sans-serif';
    ctx.textAlign = 'center';
    ctx.textBaseline = 'middle';
    ctx.fillStyle = color('ink');
    chart.data.datasets.forEach((set, d) =>
      chart.getDatasetMeta(d).data.forEach((arc, i) => {
        const node = set.arcs[i].node,
          radius = (arc.innerRadius + arc.outerRadius) / 2,
          angle = (arc.startAngle + arc.endAngle) / 2;
        const wide = (arc.endAngle - arc.startAngle) * radius,
          deep = arc.outerRadius - arc.innerRadius;
        if (!node || wide < 13 || deep < 24) return;
        let label = node.name;
        while (label.length > 1 && ctx.measureText(label).width > deep - 6) label = label.slice(1);
        if (label.length < node.name.length) label = '…' + label.slice(1);
        ctx.save();
        ctx.translate(arc.x + radius * Math.cos(angle), arc.y + radius * Math.sin(angle));
        ctx.rotate(Math.cos(angle) < 0 ? angle + Math.PI : angle);
        ctx.fillText(label, 0, 0);
        ctx.restore();
      }),
    );
    ctx.restore();
  },
};

function sunburst() {
  const root = moduleTree();
  if (!root) return;
  let top = root;
  const by = h(
    'select',
    { 'aria-label': 'Figure', change: () => chart.draw() },
    [stamped && ['time', 'time'], ['flops', 'FLOPs'], ['parameters', 'parameters']]
      .filter(Boolean)
      .map(([v, t]) => h('option', { value: v }, t)),
  );
  const up = h(
    'button',
    {
      type: 'button',
      click: () => {
        if (top.parent) {
          top = top.parent;
          chart.draw();
        }
      },
    },
    '↑ up',
  );
  const chart = panel(
    'modules',
    'Modules',
    '',
    note => {
      const value = node => Math.max(0, node.row[by.value] || 0),
        whole = value(top),
        rings = 4,
        format = by.value === 'time' ? time : si;
      up.disabled = !top.parent;
      note.textContent =
        (top.row.name || '') +
        ' – ' +
        format(whole) +
        '. Each ring is a level of the tree that node names spell, layers as leaves; click to enter, ↑ to leave';
      if (!(whole > 0)) {
        note.textContent += '. Nothing to show: the sum is zero';
        return null;
      }
      const levels = Array.from({ length: rings }, () => []);
      const place = (node, ring, hue) => {
        if (ring >= rings) return;
        let rest = value(node),
          small = 0,
          few = 0;
        node.children.forEach((child, i) => {
          const v = value(child);
          rest -= v;
          if (v < whole * 0.003) {
            small += v;
            few += v > 0;
            return;
          }
          /* A child that is nearly all of it leaves the colours to its own children. */
          const fill = hue || (v > whole * 0.6 ? null : palette[i % palette.length]);
          levels[ring].push({
            v,
            node: child,
            fill: faint(fill || '#8892a0', child.kind === 'layers' ? 0.35 : Math.max(0.45, 0.95 - 0.17 * ring)),
          });
          if (child.children.length) place(child, ring + 1, fill);
          else blank(ring + 1, v);
        });
        /* Modules that are too thin to distinguish are drawn as one arc. */
        if (small > 0) {
          levels[ring].push({ v: small, node: null, few, of: node, fill: faint('#8892a0', 0.3) });
          blank(ring + 1, small);
        }
        if (rest > 0) blank(ring, rest);
      };
      const blank = (ring, v) => {
        for (; ring < rings; ring++) levels[ring].push({ v, node: null, fill: '#00000000' });
      };
      place(top, 0, null);
      const used = levels.filter(level => level.some(arc => arc.node || arc.few)).reverse();
      return {
        type: 'doughnut',
        plugins: [arcNames],
        data: {
          datasets: used.map(level => ({
            data: level.map(arc => arc.v),
            arcs: level,
            backgroundColor: level.map(arc => arc.fill),
            borderColor: level.map(arc => (arc.node || arc.few ? color('panel') : '#00000000')),
            borderWidth: 1,
            hoverBorderColor: color('ink'),
          })),
        },
        options: {
          responsive: true,
          maintainAspectRatio: false,
          animation: false,
          cutout: '18%',
          onClick: (event, found) => {
            const arc = found.length && used[found[0].datasetIndex][found[0].index];
            if (!arc || !arc.node) return;
            if (arc.node.kind === 'layers') showRow('layers', arc.node.row);
            else {
              top = arc.node;
              chart.draw();
            }
          },
          plugins: {
            legend: { display: false },
            tooltip: {
              displayColors: false,
              filter: item => !!(item.dataset.arcs[item.dataIndex].node || item.dataset.arcs[item.dataIndex].few),
              callbacks: {
                title: items => {
                  const arc = items.length ? items[0].dataset.arcs[items[0].dataIndex] : null;
                  return !arc ? '' : arc.few ? plural(arc.few, 'part') + ' of ' + arc.of.row.name : arc.node.row.name;
                },
                label: item => {
                  const arc = item.dataset.arcs[item.dataIndex],
                    node = arc.node;
                  if (arc.few) return format(arc.v) + ', ' + percent(arc.v / whole) + ', each below 0.3 %';
                  return [
                    format(value(node)) + ', ' + percent(value(node) / whole) + ' of what is shown',
                    si(node.row.flops) + ' FLOPs, ' + si(node.row.parameters) + ' parameters',
                  ];
                },
              },
            },
          },
        },
      };
    },
    { size: 'tall', controls: [by, up] },
  );
  chart.draw();
}

function drawCharts() {
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  rooflineChart();
  sunburst();
}
