/* Positions of the graph's nodes: a row per depth (longest path from an input), order within a row by the mean position
 * of neighbours, positions by least squares without overlap. Edges that skip a few rows keep a lane free. Rows fold
 * into columns, so that a deep graph fills its picture instead of being a thread. Linear in nodes and edges but for
 * sorting. */
'use strict';
const NODE = { width: 150, height: 46, gapX: 14, gapY: 24, lane: 6, column: 56 };
const LONGEST_LANE = 24; /* rows; a longer edge bends past the nodes */
const ORDER_SWEEPS = 4,
  PLACE_SWEEPS = 8,
  MOST_COLUMNS = 160;

/* Vertices: nodes first, then lanes. `sources[i]` are the nodes that node i reads, all before it. */
function layerRows(sources) {
  const count = sources.length,
    depth = new Array(count).fill(0),
    up = [],
    down = [],
    long = [];
  sources.forEach((from, i) => {
    for (const s of from) if (depth[s] >= depth[i]) depth[i] = depth[s] + 1;
  });
  for (let i = 0; i < count; i++) {
    up.push([]);
    down.push([]);
  }
  const join = (a, b) => {
    down[a].push(b);
    up[b].push(a);
  };
  sources.forEach((from, i) => {
    for (const s of from) {
      if (depth[i] - depth[s] > LONGEST_LANE) {
        long.push([s, i]);
        continue;
      }
      let last = s;
      for (let d = depth[s] + 1; d < depth[i]; d++) {
        depth.push(d);
        up.push([]);
        down.push([]);
        join(last, depth.length - 1);
        last = depth.length - 1;
      }
      join(last, i);
    }
  });
  const rows = [];
  depth.forEach((d, v) => (rows[d] = rows[d] || []).push(v));
  return { count, depth, up, down, long, rows };
}

function orderRows(g) {
  const at = new Float64Array(g.depth.length),
    wish = new Float64Array(g.depth.length);
  const number = row => row.forEach((v, i) => (at[v] = i - (row.length - 1) / 2));
  g.rows.forEach(number);
  for (let sweep = 0; sweep < ORDER_SWEEPS; sweep++) {
    const near = sweep % 2 ? g.down : g.up,
      order = sweep % 2 ? [...g.rows].reverse() : g.rows;
    for (const row of order) {
      if (row.length < 2) continue;
      for (const v of row) {
        const list = near[v];
        let sum = 0;
        for (const o of list) sum += at[o];
        wish[v] = list.length ? sum / list.length : at[v];
      }
      row.sort((a, b) => wish[a] - wish[b] || at[a] - at[b]);
      number(row);
    }
  }
}

/* Least squares to the wishes with everything apart: blocks of vertices that touch move as one (pool adjacent violators). */
function placeRow(row, x, wish, width, gap) {
  const blocks = [];
  let offset = 0;
  row.forEach((v, i) => {
    if (i) offset += (width(row[i - 1]) + width(v)) / 2 + gap;
    let block = { sum: wish[v] - offset, weight: 1, from: i };
    while (
      blocks.length &&
      blocks[blocks.length - 1].sum / blocks[blocks.length - 1].weight > block.sum / block.weight
    ) {
      const other = blocks.pop();
      block = { sum: block.sum + other.sum, weight: block.weight + other.weight, from: other.from };
    }
    blocks.push(block);
    x[v] = offset;
  });
  blocks.forEach((block, b) => {
    const to = b + 1 < blocks.length ? blocks[b + 1].from : row.length;
    for (let i = block.from; i < to; i++) x[row[i]] += block.sum / block.weight;
  });
}

function placeRows(g, x) {
  const wish = new Float64Array(x.length),
    width = v => (v < g.count ? NODE.width : NODE.lane);
  for (let sweep = 0; sweep < PLACE_SWEEPS; sweep++) {
    const last = sweep === PLACE_SWEEPS - 1,
      order = sweep % 2 ? [...g.rows].reverse() : g.rows;
    for (const row of order) {
      for (const v of row) {
        let sum = 0,
          count = 0;
        if (last || sweep % 2 === 0) for (const o of g.up[v]) ((sum += x[o]), count++);
        if (last || sweep % 2) for (const o of g.down[v]) ((sum += x[o]), count++);
        wish[v] = count ? sum / count : x[v];
      }
      placeRow(row, x, wish, width, NODE.gapX);
    }
  }
}

/* Lanes beside the nodes make a deep graph lean; each row moves back by what its neighbourhood leans, so that it stands
 * upright and its columns are narrow. Rows near one another move alike, so edges stay straight. */
const LEAN_ROWS = 12;
function straighten(g, x) {
  const middles = g.rows.map(row => (x[row[0]] + x[row[row.length - 1]]) / 2),
    sums = [0];
  middles.forEach((m, r) => sums.push(sums[r] + m));
  g.rows.forEach((row, r) => {
    const reach = Math.min(LEAN_ROWS, r, g.rows.length - 1 - r),
      lean = (sums[r + reach + 1] - sums[r - reach]) / (2 * reach + 1);
    for (const v of row) x[v] -= lean;
  });
}

/* Rows of each column, so that all columns together are best seen in width x height: breaks where few edges cross. */
function foldRows(g, x, width, height) {
  const pitch = NODE.height + NODE.gapY,
    total = g.rows.length,
    low = new Float64Array(total),
    high = new Float64Array(total),
    crossing = new Int32Array(total);
  g.rows.forEach((row, r) => {
    const wide = v => (v < g.count ? NODE.width : NODE.lane) / 2;
    low[r] = x[row[0]] - wide(row[0]);
    high[r] = x[row[row.length - 1]] + wide(row[row.length - 1]);
    for (const v of row) crossing[r] += g.down[v].length;
  });
  const fold = count => {
    const columns = [];
    let across = 0,
      deepest = 0;
    for (let begin = 0; begin < total;) {
      let end = Math.min(total, Math.max(begin + 1, Math.round(((columns.length + 1) * total) / count)));
      if (end < total) {
        const reach = Math.floor(total / count / 6);
        let best = end;
        for (let r = end; r > end - reach && r > begin + 1; r--) if (crossing[r - 1] < crossing[best - 1]) best = r;
        end = best;
      }
      let left = Infinity,
        right = -Infinity;
      for (let r = begin; r < end; r++) {
        left = Math.min(left, low[r]);
        right = Math.max(right, high[r]);
      }
      columns.push({ begin, end, left, x: across });
      across += right - left + NODE.column;
      deepest = Math.max(deepest, end - begin);
      begin = end;
    }
    return { columns, width: across - NODE.column, height: deepest * pitch - NODE.gapY };
  };
  let best = null;
  for (let count = 1, worse = 0; count <= Math.min(total, MOST_COLUMNS) && worse < 12; count++) {
    const tried = fold(count);
    tried.scale = Math.min(1, width / tried.width, height / tried.height);
    if (!best || tried.scale > best.scale * 1.02) {
      best = tried;
      worse = 0;
    } else worse++;
  }
  return best || { columns: [], width: 1, height: 1 };
}

/* {x, y of each vertex's middle and top, column of each row, width, height}; fold() again for another shape of picture. */
function layoutGraph(sources) {
  const g = layerRows(sources),
    x = new Float64Array(g.depth.length);
  orderRows(g);
  g.rows.forEach(row => row.forEach((v, i) => (x[v] = (i - (row.length - 1) / 2) * (NODE.width + NODE.gapX))));
  placeRows(g, x);
  straighten(g, x);
  const placed = {
    ...g,
    x: new Float64Array(x.length),
    y: new Float64Array(x.length),
    columns: [],
    columnOf: new Int32Array(g.rows.length),
  };
  placed.fold = (width, height) => {
    const folded = foldRows(g, x, width, height),
      pitch = NODE.height + NODE.gapY;
    placed.columns = folded.columns;
    placed.width = folded.width;
    placed.height = folded.height;
    folded.columns.forEach((column, c) => {
      for (let r = column.begin; r < column.end; r++) {
        placed.columnOf[r] = c;
        for (const v of g.rows[r]) {
          placed.x[v] = x[v] - column.left + column.x;
          placed.y[v] = (r - column.begin) * pitch;
        }
      }
      column.right = (folded.columns[c + 1] ? folded.columns[c + 1].x : folded.width + NODE.column) - NODE.column;
    });
  };
  return placed;
}
