'use strict';
/* The live page of prony serve. Every second /events sends the whole state (prony.live/1); the page keeps nothing. */
(() => {
  const byId = id => document.getElementById(id);
  const SVG = 'http://www.w3.org/2000/svg';

  const make = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const draw = (tag, attributes, text) => {
    const node = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };

  /* ---- numbers ---- */

  const digits = value => value >= 100 || value === 0 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
  const time = ns => {
    if (ns === null || ns < 0) return ['–', ''];
    if (ns < 1e3) return [digits(ns), 'ns'];
    if (ns < 1e6) return [digits(ns / 1e3), 'µs'];
    if (ns < 1e9) return [digits(ns / 1e6), 'ms'];
    return [digits(ns / 1e9), 's'];
  };
  const timeText = ns => time(ns).join(' ').trim();
  const bytes = value => {
    if (value < 0) return ['–', ''];
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let i = 0;
    for (; value >= 1024 && i < units.length - 1; i++) value /= 1024;
    return [digits(value), units[i]];
  };
  const count = value => value >= 1e6 ? [digits(value / 1e6), 'M'] : value >= 1e4 ? [digits(value / 1e3), 'k'] : [digits(value), ''];
  const lasted = seconds => {
    const parts = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']].filter(([size]) => seconds >= size || size === 1).slice(0, 2);
    return parts.map(([size, unit], i) => Math.floor(i ? seconds % parts[i - 1][0] / size : seconds / size) + ' ' + unit).join(' ');
  };

  /* ---- theme ---- */

  const dark = matchMedia('(prefers-color-scheme: dark)');
  let chosen = null;
  const showTheme = () => {
    const theme = chosen || (dark.matches ? 'dark' : 'light');
    document.documentElement.dataset.theme = theme;
    byId('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
  };
  byId('theme').onclick = () => { chosen = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'; showTheme(); };
  dark.onchange = showTheme;
  showTheme();

  /* ---- pieces ---- */

  const answer = (title, [value, unit], note, kind) => make('div', {class: 'answer ' + (kind || '')}, make('h2', {}, title),
    make('div', {class: 'value'}, value, make('small', {}, unit)), make('p', {}, note));
  const card = (label, [value, unit], note) => make('div', {class: 'card'}, make('div', {class: 'label'}, label),
    make('div', {class: 'value'}, value, make('small', {}, unit)), make('div', {class: 'note'}, note || ''));

  /* A round number not below the value. */
  const roundUp = value => {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 2.5, 5, 10].map(step => step * power).find(step => step >= value * 0.999);
  };

  const HEIGHT = 180, LEFT = 52, BOTTOM = 20, TOP = 8;
  /* The frame of a chart of the last minute; returns the functions that place a second and a value. */
  const frame = (box, seconds, most, label) => {
    const width = Math.max(box.clientWidth, 280), top = most > 0 ? roundUp(most) : 1;
    const x = i => LEFT + (width - LEFT - 4) * i / (seconds - 1);
    const y = value => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * Math.min(value, top) / top;
    const svg = draw('svg', {viewBox: `0 0 ${width} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img'});
    for (const part of [0, 0.5, 1]) {
      svg.append(draw('line', {class: 'mesh', x1: LEFT, x2: width - 4, y1: y(top * part), y2: y(top * part)}),
        draw('text', {x: LEFT - 6, y: y(top * part) + 4, 'text-anchor': 'end'}, part ? label(top * part) : '0'));
    }
    for (const ago of [60, 45, 30, 15]) {
      const i = seconds - ago;
      if (i >= 0 || ago === 60) svg.append(draw('text', {x: x(Math.max(i, 0)), y: HEIGHT - 4, 'text-anchor': ago === 60 ? 'start' : 'middle'}, `-${ago} s`));
    }
    svg.append(draw('text', {x: width - 4, y: HEIGHT - 4, 'text-anchor': 'end'}, 'now'));
    box.replaceChildren(svg);
    return {svg, x, y};
  };
  /* A line with gaps where a value is missing; -1 stands for none. */
  const line = (values, x, y) => {
    let path = '', open = false;
    values.forEach((value, i) => {
      if (value < 0) { open = false; return; }
      path += `${open ? 'L' : 'M'}${x(i).toFixed(1)},${y(value).toFixed(1)}`;
      if (!open && (i + 1 === values.length || values[i + 1] < 0)) path += 'h.01';
      open = true;
    });
    return path;
  };

  const drawRate = model => {
    const all = model.seconds.map(s => s[0]), failed = model.seconds.map(s => s[1]);
    const {svg, x, y} = frame(byId('rate'), all.length, Math.max(...all), value => count(value).join(''));
    const path = line(all, x, y);
    svg.append(draw('path', {class: 'area', d: `${path}L${x(all.length - 1)},${y(0)}L${x(0)},${y(0)}Z`, style: 'fill:var(--accent)'}),
      draw('path', {class: 'answered', d: path}));
    const width = Math.max(x(1) - x(0) - 1, 1);
    failed.forEach((value, i) => {
      if (value) svg.append(draw('rect', {class: 'failed', x: x(i) - width / 2, y: y(value), width, height: y(0) - y(value)}));
    });
  };
  const drawLatency = model => {
    const p50 = model.seconds.map(s => s[2]), p99 = model.seconds.map(s => s[3]);
    const {svg, x, y} = frame(byId('latency'), p50.length, Math.max(...p99), timeText);
    svg.append(draw('path', {class: 'p99', d: line(p99, x, y)}), draw('path', {class: 'median', d: line(p50, x, y)}));
  };

  const row = (name, title, share, figure) => make('div', {class: 'live-row', title}, make('span', {}, name),
    make('span', {}, make('i', {style: `width:${(100 * share).toFixed(2)}%`})), make('span', {class: 'figure'}, figure));
  const drawOperators = model => {
    const rows = model.operators, most = Math.max(...rows.map(o => o.share), 1e-9);
    byId('operators-note').textContent = model.profiled_runs
      ? `Averages over profiled runs, ${model.profiled_runs} so far.` : 'No run was profiled yet (--profile-every).';
    byId('operators').replaceChildren(...rows.map(o => row(o.name, `${o.op}, kernel ${o.kernel}`, o.share / most,
      `${(100 * o.share).toFixed(1)} %, ${timeText(o.time_ns)}`)));
  };
  const drawSizes = model => {
    const total = model.sizes.reduce((a, b) => a + b, 0), most = Math.max(...model.sizes, 1);
    const last = model.sizes.reduce((found, value, i) => value ? i : found, 0);
    byId('sizes').replaceChildren(...model.sizes.slice(0, last + 1).map((value, i) => {
      const name = i < 2 ? String(2 ** i) : i === model.sizes.length - 1 ? 'more' : `${2 ** (i - 1) + 1} to ${2 ** i}`;
      return row(name, `${value} runs`, value / most, total ? `${(100 * value / total).toFixed(1)} %` : '–');
    }));
  };
  const drawAlerts = state => {
    byId('alerts-panel').hidden = !state.alerts.length;
    const head = make('tr', {}, ...['State', 'Model', 'Rule', 'Now'].map(title => make('th', {}, title)));
    byId('alerts').replaceChildren(head, ...state.alerts.map(alert => make('tr', {},
      make('td', alert.firing ? {class: 'fires'} : {}, alert.firing ? `fires since ${new Date(alert.fired_at * 1000).toLocaleTimeString()}` : 'quiet'),
      make('td', {}, alert.model), make('td', {}, alert.rule), make('td', {}, alert.value))));
  };

  /* ---- the state ---- */

  let state = null;
  const warnings = model => {
    const lines = state.alerts.filter(a => a.firing).map(a => `Alert: model ${a.model}: ${a.rule} (${a.value})`);
    if (model.failure) lines.push(`The new file of ${model.name} cannot be served: ${model.failure}`);
    if (state.draining) lines.push('The service is ending.');
    return lines.map(text => make('div', {class: 'warning'}, text));
  };
  const show = () => {
    if (!state) return;
    const select = byId('model'), names = state.models.map(m => m.name);
    if (names.join('\n') !== [...select.options].map(o => o.value).join('\n'))
      select.replaceChildren(...names.map(name => make('option', {value: name}, name)));
    select.hidden = names.length < 2;
    const model = state.models.find(m => m.name === select.value) || state.models[0];
    const good = model.rate * (1 - model.failed_share);
    byId('title').textContent = model.name;
    byId('subtitle').textContent = `version ${model.version}, up for ${lasted(state.uptime)}, prony ${state.version}; figures of the last ${state.window} s`;
    byId('warnings').replaceChildren(...warnings(model));
    byId('answers').replaceChildren(
      answer('Rate', [count(good)[0], count(good)[1] + ' requests/s'], `${count(model.samples_rate).join(' ')} samples/s`),
      answer('Latency, median', time(model.p50), `p90 ${timeText(model.p90)}, p95 ${timeText(model.p95)}`),
      answer('Latency, p99', time(model.p99), `largest ${timeText(model.max)}`, 'fair'),
      answer('Refused or failed', [(100 * model.failed_share).toFixed(model.failed_share ? 2 : 0), '%'],
        model.failed_share ? 'status 4xx and 5xx' : 'none', model.failed_share ? 'bad' : 'good'));
    byId('cards').replaceChildren(
      card('Waiting', [String(model.waiting), ''], `of at most ${model.max_queue}`),
      card('In the queue, p99', time(model.queue_p99), `median ${timeText(model.queue_p50)}`),
      card('Requests in a run', [model.mean_batch ? digits(model.mean_batch) : '–', ''], `at most ${model.max_batch}`),
      card('Busy sessions', [digits(model.busy), ''], `of ${model.sessions}, ${model.threads} thread${model.threads === 1 ? '' : 's'} each`),
      card('Processors', state.cpus === null ? ['–', ''] : [digits(state.cpus), ''], state.other_cpus === null ? '' : `others use ${digits(state.other_cpus)}`),
      card('Memory', bytes(state.rss_bytes), `plan ${bytes(model.arena_bytes).join(' ')} a session`),
      card('Connections', [String(state.connections), ''], `${state.in_progress} request${state.in_progress === 1 ? '' : 's'} in progress`));
    drawRate(model);
    drawLatency(model);
    drawOperators(model);
    drawSizes(model);
    drawAlerts(state);
  };
  byId('model').onchange = show;
  addEventListener('resize', show);

  let last = 0;
  const source = new EventSource('events');
  source.onmessage = event => {
    state = JSON.parse(event.data);
    last = Date.now();
    document.body.classList.remove('stale');
    show();
  };
  setInterval(() => {
    if (!last || Date.now() - last < 4000) return;
    document.body.classList.add('stale');
    byId('subtitle').textContent = `no figures since ${new Date(last).toLocaleTimeString()}: the service does not answer`;
  }, 1000);
})();
