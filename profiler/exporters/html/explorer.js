/* A canvas that is moved and zoomed: by mouse (drag, wheel), by touch (one finger, two fingers) and by keyboard. The page
 * keeps its own scrolling: the wheel zooms once the canvas has the focus (a click, Tab) or with Ctrl, Escape gives it back.
 *
 * What is drawn has a world of its own, [0, width] x [0, height]; a point of it stands at ((x - view.x) * view.k,
 * (y - view.y) * view.k) on the canvas. With `across`, only x is moved and zoomed, and y are the canvas's pixels. */
'use strict';

const WHEEL_STEP = 0.0016,
  FRAME = 24 /* pixels that are left free around a world that is shown whole, both sides together */,
  CLICK_SLACK = 5;

/* options: id, title, height, across, closest (pixels per unit that are enough), draw(context, view, size),
 * hit(x, y) -> item or null, tip(item) -> lines, pick(item), keys {key: function}. */
function explorer(options) {
  const canvas = h('canvas', {
    id: 'chart-' + options.id,
    tabindex: 0,
    role: 'application',
    'aria-label': options.title + '. Arrows move, plus and minus zoom, 0 shows all. ' + (options.help || ''),
  });
  const tip = h('div', { class: 'tip', hidden: '' }),
    box = h('div', { class: 'explorer', style: 'height:' + options.height + 'px' }, canvas, tip);
  const view = { x: 0, y: 0, k: 1 },
    size = { width: 0, height: 0 },
    world = { width: 1, height: 1 },
    pointers = new Map();
  let planned = 0,
    moved = 0,
    range = null,
    fitted = true;

  const fitScale = () =>
    options.across
      ? size.width / world.width
      : Math.min((size.width - FRAME) / world.width, (size.height - FRAME) / world.height, 1.25);
  function paint() {
    planned = 0;
    const ratio = self.ratio || devicePixelRatio || 1;
    if (canvas.width !== Math.round(size.width * ratio) || canvas.height !== Math.round(size.height * ratio)) {
      canvas.width = Math.round(size.width * ratio);
      canvas.height = Math.round(size.height * ratio);
    }
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, size.width, size.height);
    if (!size.width) return;
    options.draw(context, view, size);
    if (range) {
      context.fillStyle = faint(color('accent'), 0.2);
      const [left, top, right, bottom] = range;
      context.fillRect(left, options.across ? 0 : top, right - left, options.across ? size.height : bottom - top);
    }
  }
  const redraw = () => {
    if (!planned) planned = requestAnimationFrame(paint);
  };
  function clamp() {
    const least = fitScale(),
      most = Math.max(options.closest || 3, least);
    view.k = Math.min(most, Math.max(options.across ? least : least * 0.7, view.k));
    const hold = (at, extent, shown) =>
      shown >= extent ? (extent - shown) / 2 : Math.min(Math.max(at, -shown * 0.3), extent - shown * 0.7);
    if (options.across) view.x = Math.min(Math.max(view.x, 0), Math.max(0, world.width - size.width / view.k));
    else {
      view.x = hold(view.x, world.width, size.width / view.k);
      view.y = hold(view.y, world.height, size.height / view.k);
    }
    fitted = Math.abs(view.k - least) < 1e-6 * least;
  }
  function zoom(factor, x = size.width / 2, y = size.height / 2) {
    const before = view.k;
    view.k *= factor;
    const [wx, wy] = [view.x + x / before, view.y + y / before];
    clamp();
    view.x = wx - x / view.k;
    view.y = wy - y / view.k;
    clamp();
    redraw();
  }
  function pan(dx, dy) {
    view.x -= dx / view.k;
    view.y -= dy / view.k;
    clamp();
    redraw();
  }
  function all() {
    view.k = 0;
    clamp();
    view.k = fitScale();
    view.x = view.y = 0;
    clamp();
    redraw();
  }
  /* Brings a rectangle of the world into the middle, zoomed in to `k` at least. */
  function show(x, y, k) {
    view.k = Math.max(view.k, k);
    clamp();
    view.x = x - size.width / 2 / view.k;
    view.y = y - size.height / 2 / view.k;
    clamp();
    redraw();
  }
  function showRange(from, to) {
    view.k = size.width / Math.max(to - from, 1e-9);
    clamp();
    view.x = (from + to) / 2 - size.width / 2 / view.k;
    clamp();
    redraw();
  }
  function resize() {
    const rect = box.getBoundingClientRect(),
      same = rect.width === size.width && rect.height === size.height;
    if ((same && size.width) || box.clientWidth < 20)
      return; /* a picture of the page is taken at width 0 for a moment */
    size.width = Math.floor(box.clientWidth);
    size.height = Math.floor(box.clientHeight);
    if (options.resized) options.resized(size, world);
    if (fitted) all();
    clamp();
    paint();
  }

  function hover(event) {
    const item = options.hit(
      view.x + event.offsetX / view.k,
      options.across ? event.offsetY : view.y + event.offsetY / view.k,
    );
    canvas.style.cursor = item ? 'pointer' : fitted ? 'default' : 'grab';
    tip.hidden = !item;
    if (!item) return;
    tip.replaceChildren(
      ...options
        .tip(item)
        .filter(Boolean)
        .map((line, i) => h(i ? 'div' : 'b', {}, line)),
    );
    const left = Math.min(event.offsetX + 14, size.width - tip.offsetWidth - 4),
      below = event.offsetY + 16 + tip.offsetHeight < size.height || options.across;
    tip.style.left = Math.max(0, left) + 'px';
    tip.style.top = (below ? event.offsetY + 16 : Math.max(0, event.offsetY - tip.offsetHeight - 8)) + 'px';
  }
  const place = event => ({ x: event.offsetX, y: event.offsetY });
  canvas.addEventListener('pointerdown', event => {
    if (event.button > 0) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    if (pointers.size === 1) moved = 0;
    range = event.shiftKey ? [event.offsetX, event.offsetY, event.offsetX, event.offsetY] : null;
    tip.hidden = true;
  });
  canvas.addEventListener('pointermove', event => {
    const before = pointers.get(event.pointerId);
    if (!before) return event.pointerType === 'mouse' ? hover(event) : undefined;
    const now = place(event);
    moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (range) {
      range[2] = now.x;
      range[3] = now.y;
      redraw();
    } else if (pointers.size === 1) {
      if (moved > CLICK_SLACK) pan(now.x - before.x, now.y - before.y);
    } else if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = p =>
        Math.max(10, options.across ? Math.abs(p.x - other.x) : Math.hypot(p.x - other.x, p.y - other.y));
      pan((now.x - before.x) / 2, (now.y - before.y) / 2);
      zoom(apart(now) / apart(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
    }
    pointers.set(event.pointerId, now);
  });
  canvas.addEventListener('pointerup', event => {
    const only = pointers.size === 1;
    if (!pointers.delete(event.pointerId)) return;
    if (range) {
      const [x1, y1, x2, y2] = range,
        k = view.k;
      range = null;
      if (Math.abs(x2 - x1) > 8) {
        const factor = options.across
          ? size.width / Math.abs(x2 - x1)
          : Math.min(size.width / Math.abs(x2 - x1), size.height / Math.max(1, Math.abs(y2 - y1)));
        const [wx, wy] = [view.x + (x1 + x2) / 2 / k, view.y + (y1 + y2) / 2 / k];
        show(wx, wy, k * factor);
      }
      return redraw();
    }
    if (only && moved <= CLICK_SLACK) {
      canvas.focus({ preventScroll: true });
      const item = options.hit(
        view.x + event.offsetX / view.k,
        options.across ? event.offsetY : view.y + event.offsetY / view.k,
      );
      options.pick(item);
      redraw();
    }
  });
  canvas.addEventListener('pointercancel', event => {
    pointers.delete(event.pointerId);
    range = null;
  });
  canvas.addEventListener('pointerleave', () => (tip.hidden = true));
  canvas.addEventListener('dblclick', all);
  canvas.addEventListener(
    'wheel',
    event => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(-(event.deltaX || event.deltaY), 0);
      else zoom(Math.exp(-event.deltaY * WHEEL_STEP * (event.deltaMode ? 30 : 1)), event.offsetX, event.offsetY);
    },
    { passive: false },
  );
  const keys = {
    ArrowLeft: () => pan(60, 0),
    ArrowRight: () => pan(-60, 0),
    ArrowUp: () => pan(0, 60),
    ArrowDown: () => pan(0, -60),
    '+': () => zoom(1.4),
    '=': () => zoom(1.4),
    '-': () => zoom(1 / 1.4),
    0: all,
    Home: all,
    Escape: () => canvas.blur(),
    ...options.keys,
  };
  canvas.addEventListener('keydown', event => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    if (options.across && /^Arrow(Up|Down)$/.test(event.key) && !(options.keys || {})[event.key]) return;
    event.preventDefault();
    act();
    redraw();
  });
  new ResizeObserver(() => {
    if (!root.classList.contains('printing')) resize();
  }).observe(box);
  themeListeners.push(redraw);
  const button = (label, title, act) =>
    h('button', { type: 'button', title, 'aria-label': options.title + ': ' + title, click: act }, label);
  const controls = [
    button('−', 'zoom out', () => zoom(1 / 1.5)),
    button('+', 'zoom in', () => zoom(1.5)),
    button('all', 'show all', all),
  ];
  const self = {
    canvas,
    box,
    view,
    size,
    world,
    ratio: 0,
    controls,
    paint,
    redraw,
    resize,
    zoom,
    pan,
    all,
    show,
    showRange,
  };
  return self;
}

/* A search of rows beside an explorer, in the words of the tables' filter: how many match, Enter for the next. */
function finder(title, rows, go, changed) {
  const found = { rows: null, set: null, at: -1 },
    count = h('span', { class: 'found', 'aria-live': 'polite' });
  const input = h('input', {
    type: 'search',
    placeholder: 'Find: words, op:Conv, share>5',
    'aria-label': title + ': find',
    spellcheck: 'false',
    input: () => {
      const tests = parseFilter(input.value);
      found.rows = tests.length ? rows().filter(row => tests.every(test => test(row))) : null;
      found.set = found.rows && new Set(found.rows);
      found.at = -1;
      count.textContent = found.rows ? grouped(found.rows.length) : '';
      changed();
    },
    keydown: event => {
      if (event.key !== 'Enter' || !found.rows || !found.rows.length) return;
      found.at = (found.at + (event.shiftKey ? found.rows.length - 1 : 1)) % found.rows.length;
      count.textContent = found.at + 1 + ' of ' + grouped(found.rows.length);
      go(found.rows[found.at]);
    },
  });
  return { input, count, found };
}
