/* One row of a table as a dialog: all that is known of it. */

function link(level, index) {
  const row = levels[level].rows[index];
  return row
    ? h(
        'a',
        {
          href: '#',
          click: event => {
            event.preventDefault();
            showRow(level, row);
          },
        },
        (row.name || row.op) + (row.time ? ' (' + time(row.time) + ')' : ''),
      )
    : String(index);
}
function joined(parts) {
  return parts.flatMap((part, i) => (i ? [h('br'), part] : [part]));
}
function rowDetails(level, row) {
  const pairs = [],
    put = (key, value) => {
      if (value !== null && value !== undefined && value !== '' && !(Array.isArray(value) && !value.length))
        pairs.push(h('dt', {}, key), h('dd', {}, value));
    };
  put('type', row.op || row.type);
  if (row.nested) put('inside', row.path);
  if (row.nested && known(row.executions))
    put('executed', plural(row.executions, 'time') + ' per run' + (row.executions > 1 ? '; the values cover all executions' : ''));
  if (row.stopped) put('cancelled', 'the cancelled run stopped inside it');
  if (row.time_ns && row.time_ns.mean !== undefined && row.executions !== 0)
    put(
      'time per run',
      time(row.time_ns.mean) +
        ' mean, ' +
        time(row.time_ns.median) +
        ' median, ' +
        time(row.time_ns.min) +
        ' – ' +
        time(row.time_ns.max) +
        ', std ' +
        time(row.time_ns.std),
    );
  else if (row.time > 0) put('time per run', time(row.time));
  if (known(row.share))
    put('share of the time', percent(row.share) + (row.time_attributed ? ', an estimate: ' + part(row) + ' of its operator' : ''));
  for (const [key, title] of [
    ['macs', 'MACs'],
    ['madds', 'MAdds'],
    ['flops', 'FLOPs'],
    ['special', 'of them special'],
    ['int_ops', 'integer operations'],
    ['parameters', 'parameters'],
    ['count', level === 'types' ? 'rows' : 'count'],
  ])
    if (row[key]) put(title, grouped(row[key]));
  if (row.rate) put('rate', si(row.rate) + 'FLOP/s');
  if (known(row.arithmetic_intensity)) put('arithmetic intensity', si(row.arithmetic_intensity) + ' FLOP/B');
  put('bound by', row.bound);
  if (row.reasons) put('because', joined(row.reasons.map(r => h('span', {}, r.text))));
  if (row.kernel_best)
    put('its kernel at best here', [
      row.kernel_best.percent_of_roof.toFixed(0) + ' % of the roof, ',
      link('operators', row.kernel_best.operator),
    ]);
  if (known(row.bytes_read)) put('bytes', bytes(row.bytes_read) + ' read, ' + bytes(row.bytes_written) + ' written');
  if (Array.isArray(row.inputs))
    put(
      'inputs',
      joined(
        row.inputs.map((v, i) =>
          h(
            'span',
            {},
            v ? (v.type || '') + ' ' + shape(v) : 'omitted',
            row.sources && known(row.sources[i])
              ? [' from ', row.nested ? report.nested_layers[row.sources[i]].name : link('layers', row.sources[i])]
              : null,
          ),
        ),
      ),
    );
  if (Array.isArray(row.outputs))
    put('outputs', joined(row.outputs.map(v => h('span', {}, v ? (v.type || '') + ' ' + shape(v) : 'unused'))));
  if (row.facts)
    put(
      'facts',
      Object.entries(row.facts)
        .map(([k, v]) => k + ' ' + v)
        .join(', '),
    );
  put('kernel', row.kernel && row.kernel + (row.backend ? ' (' + row.backend + ')' : ''));
  if (level === 'layers')
    put(
      'executed by',
      row.folded ? 'nothing: evaluated once' : known(row.operator) ? link('operators', row.operator) : 'no operator',
    );
  if (level === 'layers') put('module', row.module || '__root__');
  if (row.nested === 'operators') put('stands for', row.layers.map(i => report.nested_layers[i].name).join(', '));
  if (row.inside)
    put(
      'runs inside',
      joined(
        row.inside.map(group =>
          h('span', {}, group.name + ': ' + plural(group.rows.length, 'row') + (known(group.executions) ? ', ' + plural(group.executions, 'execution') : '')),
        ),
      ),
    );
  if (level === 'operators') {
    put('stands for', joined(row.layers.map(i => link('layers', i))));
    put('threads', row.threads && String(row.threads));
    if (row.parallel && row.threads > 1)
      put(
        'at work',
        row.parallel.achieved_cores.toFixed(2) +
          ' of ' +
          plural(row.threads, 'core') +
          ' (' +
          percent(row.parallel.efficiency) +
          '), imbalance ' +
          percent(row.parallel.imbalance) +
          '; waiting by thread ' +
          row.parallel.thread_wait_ns.map(time).join(', '),
      );
    put(
      'memory',
      bytes(row.output_bytes) +
        ' of outputs, ' +
        bytes(row.scratch_bytes) +
        ' of scratch' +
        (known(row.offset_bytes) ? ', at offset ' + grouped(row.offset_bytes) : ''),
    );
  }
  if (level === 'weights')
    put('elements', grouped(row.elements) + ' ' + (row.type || '') + ' ' + row.shape_text + ', ' + bytes(row.bytes));
  if (level === 'weights') put('used by', link('layers', row.layer));
  if (level === 'buffers')
    put(
      'buffer',
      row.tag + ', ' + bytes(row.bytes) + ' at ' + grouped(row.offset) + ', steps ' + row.first + ' – ' + row.last,
    );
  return h('dl', {}, pairs);
}
/* The row as a dialog, with the ways to where else it stands. */
function showRow(level, row) {
  const go = (title, act) => h('button', { type: 'button', click: () => ($('row').close(), act()) }, title);
  const l = nodeOf(level, row),
    o = level === 'operators' ? row : level === 'layers' && known(row.operator) ? operators[row.operator] : null;
  $('row-body').replaceChildren(
    h('h2', {}, row.name || row.op),
    h(
      'p',
      { class: 'ways' },
      l && go('in the graph', () => showInGraph(level, row)),
      timelineView && o && o.trace && go('in the timeline', () => showInTimeline(o)),
      view.key !== level && levels[level] && go('in the table', () => showInTable(level, row)),
    ),
    rowDetails(level, row),
  );
  if (!$('row').open) $('row').showModal();
}
