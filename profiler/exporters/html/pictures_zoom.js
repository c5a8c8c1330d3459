/* Zooming of pictures along x; the pictures of the runs and of the processors. */
'use strict';
/* The pointer's place in a plot: the value on the x axis, and the share of the height above it; NaN beside every plot. */
function placeIn(plots, event) {
  for (const plot of plots) {
    const [left, right, top, bottom, low, high] = plot.data,
      at = new DOMPoint(event.clientX, event.clientY).matrixTransform(plot.group.getScreenCTM().inverse());
    if (at.y >= top && at.y <= bottom && at.x >= left - 1 && at.x <= right + 1)
      return { value: low + ((at.x - left) / (right - left)) * (high - low), above: (at.y - top) / (bottom - top) };
  }
  return { value: NaN, above: NaN };
}
const valueAt = (plots, event) => placeIn(plots, event).value;

/* Round values on the axis below a plot that is zoomed, in the place of those that C wrote. */
function drawTicks(plot, from, to, format) {
  const [left, right, top, bottom] = plot.data,
    [line, text] = plot.sample,
    { list, step } = roundSteps(from, to, Math.max(2, (right - left) / 90));
  plot.ticks.replaceChildren(
    ...list.flatMap(value => {
      const [tick, label] = [line.cloneNode(), text.cloneNode()],
        x = left + ((value - from) / (to - from)) * (right - left);
      tick.setAttribute('x1', x);
      tick.setAttribute('x2', x);
      label.setAttribute('x', x);
      label.textContent = format(value, step);
      return [tick, label];
    }),
  );
}

/* Makes the plots of a picture zoomable: a drag shows its range in all of them, a double click everything. Each plot
 * becomes an SVG of its own, whose viewBox is the range. */
function zoomable(svg, { drags = true, format = si } = {}) {
  const plots = [...svg.querySelectorAll('g.plot')].map((group, i) => {
    const data = group.dataset.x.split(' ').map(Number),
      [left, right, top, bottom] = data,
      frame = document.createElementNS(svg.namespaceURI, 'svg'),
      ticks = svg.querySelectorAll('g.ticks')[i];
    for (const [key, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top, preserveAspectRatio: 'none' }))
      frame.setAttribute(key, value);
    group.replaceWith(frame);
    frame.append(group);
    return { data, frame, group, ticks, all: ticks && [...ticks.children], sample: ticks && [ticks.querySelector('line'), ticks.querySelector('text')] };
  });
  const show = (from, to) => {
    for (const plot of plots) {
      const [left, right, top, bottom, low, high] = plot.data,
        scale = (right - left) / (high - low);
      plot.frame.setAttribute('viewBox', [left + (from - low) * scale, top, (to - from) * scale, bottom - top].join(' '));
      if (!plot.ticks || !plot.all.length) continue;
      if (from === low && to === high) plot.ticks.replaceChildren(...plot.all);
      else drawTicks(plot, from, to, format);
    }
  };
  const all = () => show(plots[0].data[4], plots[0].data[5]);
  all();
  if (!drags) return { plots, show, all };
  let begin = null;
  svg.addEventListener('pointerdown', event => {
    if (event.pointerType === 'mouse' && event.button === 0) begin = { value: valueAt(plots, event), x: event.clientX };
  });
  svg.addEventListener('pointerup', event => {
    const [low, high] = [plots[0].data[4], plots[0].data[5]],
      dragged = begin && Math.abs(event.clientX - begin.x) > 8;
    const ends = dragged ? [begin.value, valueAt(plots, event)].sort((a, b) => a - b) : [];
    begin = null;
    svg.dragged = dragged; /* the click that follows a drag picks nothing */
    if (ends[1] > ends[0]) show(Math.max(low, ends[0]), Math.min(high, ends[1]));
  });
  svg.addEventListener('dblclick', all);
  return { plots, show, all };
}

let runsView = null;
function runsPicture() {
  const found = picture('runs', 'charts', {
    wide: true,
    hover: event => {
      const run = Math.round(valueAt(runsView.plots, event));
      return latency.samples[run] !== undefined && ['run ' + run + ': ' + time(latency.samples[run])];
    },
  });
  if (!found) return;
  runsView = zoomable(found.svg);
  found.box.append(h('p', { class: 'hint' }, 'Drag to zoom, double click for all.'));
}

function coresPicture() {
  const { cores, core_times_ns: ends } = report.cpu || {};
  let view = null;
  const found = picture('cores', 'charts', {
    wide: true,
    hover: event => {
      const { value, above } = placeIn(view.plots, event),
        core = cores[Math.floor(above * cores.length)],
        i = ends.findIndex(end => value < end);
      return core && i >= 0 && ['cpu' + core.core, percent(core.use[i]) + ' busy, ' + time(i ? ends[i - 1] : 0) + ' – ' + time(ends[i])];
    },
  });
  if (found) view = zoomable(found.svg, { format: tickTime });
}
