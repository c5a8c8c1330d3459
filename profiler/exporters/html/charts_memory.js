/* Charts of memory, and what charts of rectangles need: a controller for them, and zooming by a drag. */
'use strict';
/* Buffers with their first and last step, from the list of events. */
const blocks = (() => {
  const list = [],
    open = new Map();
  for (const e of (memory && memory.events) || []) {
    const key = e.offset_bytes + '/' + e.owner + '/' + (e.tag || '');
    if (!e.release) {
      const block = {
        owner: e.owner,
        tag: e.tag || '',
        first: e.step,
        last: null,
        offset: e.offset_bytes,
        bytes: e.given_bytes,
        asked: e.asked_bytes,
      };
      list.push(block);
      open.set(key, block);
    } else if (open.has(key)) {
      open.get(key).last = e.step;
      open.delete(key);
    }
  }
  const end = Math.max(0, operators.length - 1);
  list.forEach(b => {
    if (b.last === null) b.last = end;
    b.steps = b.last - b.first + 1;
    b.name = b.owner;
  });
  return list;
})();

/* Dragging over a chart with a mouse zooms its x axis, and that of its companions; a double click shows all again. */
function zoomable(ids) {
  const charts = () => ids.map(id => drawn.get(id)).filter(Boolean);
  ids.forEach(id => {
    const canvas = $('chart-' + id);
    let from = null;
    const at = event => {
      const chart = drawn.get(id);
      return chart && chart.scales.x.getValueForPixel(event.offsetX);
    };
    canvas.addEventListener('pointerdown', event => {
      if (event.pointerType === 'mouse' && event.button === 0) from = { value: at(event), x: event.offsetX };
    });
    canvas.addEventListener('pointerup', event => {
      if (from && Math.abs(event.offsetX - from.x) > 8) {
        const ends = [from.value, at(event)].sort((a, b) => a - b);
        charts().forEach(chart => {
          chart.options.scales.x.min = ends[0];
          chart.options.scales.x.max = ends[1];
          chart.update('none');
        });
      }
      from = null;
    });
    canvas.addEventListener('dblclick', () =>
      charts().forEach(chart => {
        const all = chart.config._prony;
        chart.options.scales.x.min = all ? all[0] : undefined;
        chart.options.scales.x.max = all ? all[1] : undefined;
        chart.update('none');
      }),
    );
  });
}

function showAlive(box, step) {
  const alive = blocks.filter(b => b.first <= step && step <= b.last).sort((a, b) => b.bytes - a.bytes),
    total = alive.reduce((sum, b) => sum + b.bytes, 0);
  box.replaceChildren(
    h(
      'b',
      {},
      'Alive at step ' +
        step +
        (operators[step] ? ', ' + operators[step].name : '') +
        ': ' +
        plural(alive.length, 'buffer') +
        ', ' +
        bytes(total),
    ),
    ...alive
      .slice(0, 100)
      .map(b =>
        h(
          'div',
          {},
          h('span', {}, b.owner),
          h('span', {}, b.tag),
          h('span', {}, bytes(b.bytes)),
          h('span', {}, 'steps ' + b.first + ' – ' + b.last),
        ),
      ),
  );
}

class BlockElement extends Chart.Element {
  draw(context) {
    const { x, y, width, height, fill } = this;
    context.fillStyle = fill;
    context.fillRect(x, y, Math.max(width - (width > 3 ? 1 : 0), 0.5), Math.max(height - (height > 3 ? 1 : 0), 0.5));
  }
  inRange(x, y) {
    return x >= this.x && x <= this.x + this.width && y >= this.y && y <= this.y + this.height;
  }
  inXRange(x) {
    return x >= this.x && x <= this.x + this.width;
  }
  inYRange(y) {
    return y >= this.y && y <= this.y + this.height;
  }
  getCenterPoint() {
    return { x: this.x + this.width / 2, y: this.y + this.height / 2 };
  }
  tooltipPosition() {
    return this.getCenterPoint();
  }
}
BlockElement.id = 'block';
BlockElement.defaults = {};
/* Rectangles from (x, y) to (x2, y2) in the units of the axes. */
class BlocksController extends Chart.DatasetController {
  parse() {
    this._cachedMeta._parsed = this.getDataset().data;
    this._cachedMeta._sorted = false;
  }
  getMinMax(axis) {
    const data = this.getDataset().data,
      other = axis.axis + '2';
    return { min: Math.min(...data.map(d => d[axis.axis])), max: Math.max(...data.map(d => d[other])) };
  }
  update(mode) {
    const { xScale, yScale, data } = this._cachedMeta;
    data.forEach((element, i) => {
      const d = this.getDataset().data[i],
        x = xScale.getPixelForValue(d.x),
        y = yScale.getPixelForValue(d.y2);
      this.updateElement(
        element,
        i,
        { x, y, width: xScale.getPixelForValue(d.x2) - x, height: yScale.getPixelForValue(d.y) - y, fill: d.fill },
        mode,
      );
    });
  }
}
BlocksController.id = 'blocks';
BlocksController.defaults = { dataElementType: 'block', datasetElementType: false };
BlocksController.overrides = { scales: { x: { type: 'linear' }, y: { type: 'linear' } } };
Chart.register(BlockElement, BlocksController);

function memoryCharts() {
  const line = (memory && memory.timeline) || [];
  if (!line.length) return;
  const peak = line.reduce((a, b) => (b.live_bytes > a.live_bytes ? b : a)),
    alive = h('div', { class: 'alive' }),
    last = line[line.length - 1].step + 1;
  const pick = (event, found, chart) => {
    const step = Math.floor(chart.scales.x.getValueForPixel(event.x));
    if (step >= 0 && step < last && blocks.length) showAlive(alive, step);
  };
  const stepTitle = items => {
    const step = Math.floor(items[0].parsed.x);
    return 'step ' + step + (operators[step] ? ': ' + operators[step].name : '');
  };
  const data = [...line.map(p => ({ x: p.step, y: p.live_bytes })), { x: last, y: line[line.length - 1].live_bytes }];
  panel(
    'memory',
    'Memory over one run',
    'Live bytes of the arena per step; red: bytes the plan takes, green: the lower bound. Drag to zoom, double click for all, click for the live buffers',
    () => ({
      type: 'line',
      _prony: [0, last],
      data: {
        datasets: [
          {
            data,
            stepped: 'after',
            borderColor: color('accent'),
            backgroundColor: faint(color('accent'), 0.25),
            fill: true,
            pointRadius: 0,
            borderWidth: 1.2,
          },
          {
            data: [
              { x: 0, y: memory.planned_bytes },
              { x: last, y: memory.planned_bytes },
            ],
            borderColor: color('bad'),
            borderDash: [6, 4],
            pointRadius: 0,
            pointHitRadius: 0,
            borderWidth: 1,
          },
          {
            data: [
              { x: 0, y: memory.lower_bound_bytes },
              { x: last, y: memory.lower_bound_bytes },
            ],
            borderColor: color('good'),
            borderDash: [2, 3],
            pointRadius: 0,
            pointHitRadius: 0,
            borderWidth: 1.4,
          },
        ],
      },
      options: base(
        {
          x: scale('', si, { type: 'linear', min: 0, max: last }),
          y: scale('', bytes, {
            beginAtZero: true,
            ticks: { stepSize: byteStep(memory.planned_bytes) },
            afterFit: axis => {
              axis.width = 78;
            },
          }),
        },
        {
          title: stepTitle,
          label: item =>
            item.datasetIndex
              ? ['', 'planned ', 'lower bound '][item.datasetIndex] + bytes(item.parsed.y)
              : bytes(item.parsed.y) + ' live',
        },
        {
          options: {
            parsing: false,
            normalized: true,
            interaction: { mode: 'index', intersect: false },
            onClick: pick,
          },
        },
      ),
    }),
    {
      wide: true,
      size: 'low',
      below: blocks.length
        ? []
        : [h('p', { class: 'hint' }, "The arena's map needs its events: profile with --memory.")],
    },
  ).draw();
  if (!blocks.length) return;
  const fills = () => ({ activation: color('accent'), scratch: color('time'), dynamic: color('good') });
  panel(
    'arena',
    "The arena's map",
    'Each buffer from its first to its last step and byte: blue activations, orange scratch, green dynamic',
    () => {
      const fill = fills();
      return {
        type: 'blocks',
        _prony: [0, last],
        data: {
          datasets: [
            {
              data: blocks.map(b => ({
                x: b.first,
                x2: Math.min(b.last + 1, last),
                y: b.offset,
                y2: b.offset + b.bytes,
                fill: faint(fill[b.tag] || '#8892a0', 0.75),
                b,
              })),
            },
          ],
        },
        options: base(
          {
            x: scale('step', si, { type: 'linear', min: 0, max: last }),
            y: scale('', bytes, {
              type: 'linear',
              min: 0,
              ticks: { stepSize: byteStep(Math.max(...blocks.map(b => b.offset + b.bytes))) },
              afterFit: axis => {
                axis.width = 78;
              },
            }),
          },
          {
            title: items => items[0].raw.b.owner,
            label: item => {
              const b = item.raw.b;
              return [b.tag + ', ' + bytes(b.bytes) + ' at ' + bytes(b.offset), 'steps ' + b.first + ' – ' + b.last];
            },
          },
          { options: { onClick: pick, interaction: { mode: 'point', intersect: true } } },
        ),
      };
    },
    { wide: true, below: alive },
  ).draw();
  showAlive(alive, peak.step);
  zoomable(['memory', 'arena']);
}
