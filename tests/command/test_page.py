#!/usr/bin/env python3
"""The HTML report as it is looked at: what fits, what overlaps, what answers a click, what is printed. And the roofline's labels.

    test_page.py PRONY SOURCE_DIR [unittest options]

check_forms_page.py has what the page holds; this has how it looks. Without Chromium all of it is skipped.
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import chromium
import onnx_bytes as ob

PRONY, SOURCE = "", ""
WIDTHS = (1400, 1000, 400)
UNARY = ["Abs", "Acos", "Asin", "Atan", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "LeakyRelu",
         "LogSoftmax", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus",
         "Softsign", "Sqrt", "Tan",
         "Tanh", "ThresholdedRelu"]


def run(*arguments):
    ran = subprocess.run([PRONY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
                         stdin=subprocess.DEVNULL, check=False, env=dict(os.environ, XDG_CACHE_HOME="/nonexistent"))
    assert ran.returncode == 0, (arguments, ran.stderr.decode(errors="replace"))
    return ran.stdout.decode()


def save(path, nodes, output, shape):
    with open(path, "wb") as file:
        file.write(ob.model(ob.graph(nodes, [ob.value("v", ob.FLOAT, shape)], [ob.value(output, ob.FLOAT, shape)])))


def chain(path, ops, prefix="/part"):
    nodes = [ob.node(op, ["t%d" % (i - 1) if i else "v"], ["t%d" % i], name="%s%d/%s_%d" % (prefix, i // 50, op, i))
             for i, op in enumerate(ops)]
    save(path, nodes, "t%d" % (len(ops) - 1), [2, 8])


def branches(path, count):
    """Blocks of one to four branches beside a skip connection: at least `count` nodes."""
    nodes, last = [], "v"

    def add(op, *inputs):
        out = "t%d" % len(nodes)
        nodes.append(ob.node(op, list(inputs), [out], name="/stage%d/%s_%d" % (len(nodes) // 100, op, len(nodes))))
        return out

    while len(nodes) < count:
        ends = []
        for branch in range(1 + len(nodes) % 4):
            end = last
            for step in range(2 + branch):
                end = add(UNARY[(len(nodes) + step) % 6], end)
            ends.append(end)
        total = ends[0]
        for other in ends[1:] + [last]:
            total = add("Max", total, other)
        last = total
    save(path, nodes, last, [2, 8])


class Look(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        path = chromium.find()
        if not path:
            raise unittest.SkipTest("Chromium (Debian: chromium) is not installed: the page's look is NOT tested")
        cls.folder = tempfile.mkdtemp(prefix="prony-look-")
        chain(cls.at("types.onnx"), [op for i, op in enumerate(UNARY) for _ in range(2 + i % 2)],
              "/a_module_with_a_rather_long_name/another_module_with_a_name_that_no_column_holds/")
        branches(cls.at("branches.onnx"), 3000)
        for name, model, more in (("digits", SOURCE + "/models/digits.onnx", ("-r", 200, "-w", 2)),
                                  ("types", cls.at("types.onnx"), ("-r", 12, "-w", 1, "--no-rewrites")),
                                  ("branches", cls.at("branches.onnx"), ("-r", 3, "-w", 1, "--no-rewrites", "-x", 2))):
            run("profile", model, *more, "-q", "--no-progress", "--memory", "--html", cls.at(name + ".html"))
        run("inspect", SOURCE + "/models/digits.onnx", "-q", "--html", cls.at("static.html"))
        cls.browser = chromium.Browser(path)

    @classmethod
    def tearDownClass(cls):
        if hasattr(cls, "browser"):
            cls.browser.close()
            shutil.rmtree(cls.folder)

    @classmethod
    def at(cls, name):
        return os.path.join(cls.folder, name)

    def open(self, name, **how):
        self.browser.problems.clear()
        self.browser.open(self.at(name), **how)
        self.browser.settle()

    def js(self, script):
        return self.browser.run(script)

    def clean(self):
        self.browser.settle()
        self.assertEqual(self.browser.problems, [])

    # Texts found by `selector` that overlap other such texts; clipped text does not count.
    OVERLAPS = """(selector => { const seen = [...document.querySelectorAll(selector)].filter(e => e.textContent).map(e => {
          const r = document.createRange(); r.selectNodeContents(e); const t = r.getBoundingClientRect(), b = e.getBoundingClientRect();
          return [e.textContent, Math.max(t.left, b.left), Math.max(t.top, b.top), Math.min(t.right, b.right), Math.min(t.bottom, b.bottom)]; });
        const bad = [];
        seen.forEach((a, i) => seen.slice(i + 1).forEach(b => {
          if (a[1] < b[3] - 1 && b[1] < a[3] - 1 && a[2] < b[4] - 1 && b[2] < a[4] - 1) bad.push(a[0] + ' | ' + b[0]); }));
        return [seen.length, bad]; })"""

    # ---- what fits ----

    def test_nothing_is_wider_than_the_page(self):
        for name in ("digits.html", "types.html", "static.html"):
            for width in WIDTHS:
                for dark in (False, True):
                    self.open(name, width=width, dark=dark, phone=width < 500)
                    self.assertLessEqual(self.js("document.documentElement.scrollWidth"), width, name)
                    wide = self.js("""[...document.querySelectorAll('.answer, .card, .panel, .bar-row, .bar-value, .explorer')]
                        .filter(e => { const b = e.getBoundingClientRect(); return b.width && (b.right > innerWidth + .5 || b.left < 0); })
                        .map(e => e.className + ' ' + e.id)""")
                    self.assertEqual(wide, [], (name, width))
                    cut = self.js("""[...document.querySelectorAll('.answer, .card, .answer p, .card .note, .sub, .findings li')]
                        .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)""")
                    self.assertEqual(cut, [], (name, width))
                    self.clean()

    def test_names_control_no_text(self):
        """Control characters and marks that reverse text are shown as '?', like in every other output."""
        ops = ["Relu", "Neg"]
        save(self.at("nasty.onnx"), [ob.node(op, ["t%d" % (i - 1) if i else "v"], ["t%d" % i], name="a\u202eb\x1bc\u2066d\u009be%d" % i)
                                     for i, op in enumerate(ops)], "t1", [2, 8])
        run("profile", self.at("nasty.onnx"), "-r", 2, "-w", 1, "-q", "--no-rewrites", "--html", self.at("nasty.html"))
        self.open("nasty.html")
        shown = self.js("document.body.innerText + report.layers.map(row => row.name).join()")
        self.assertIn("a?b?c?d?e1", shown)
        self.assertNotRegex(shown, "[\x1b\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
        self.clean()

    def test_first_screen_answers(self):
        for name, wanted in (("digits.html", r"How long.*median.*How sure.*±.*What dominates.*%.*How much memory"),
                             ("static.html", r"How much work.*How sure.*exact.*What dominates.*%.*How much memory")):
            self.open(name, width=1400, height=900)
            text = self.js("[...document.querySelectorAll('.answer')].map(e => e.textContent).join('\\n')")
            self.assertRegex(text, re.compile(wanted, re.S))
            self.assertEqual(self.js("document.querySelectorAll('.answer').length"), 4)
            self.assertLess(self.js("Math.max(...[...document.querySelectorAll('.answer')].map(e => e.getBoundingClientRect().bottom))"), 600)
            self.clean()

    def test_memory_adds_up(self):
        self.open("digits.html")
        self.assertEqual(self.js("heldParts(memory.held).reduce((sum, part) => sum + part[1], 0)"), self.js("memory.held.resident_bytes"))
        self.assertEqual(self.js("document.querySelectorAll('.answer:last-child .stack i').length"), 6)
        said = self.js("[...document.querySelectorAll('#details .panel')].find(p => /^Memory/.test(p.textContent)).textContent")
        for name, part in self.js("heldParts(memory.held).map(([name, part]) => [name, bytes(part)])"):
            self.assertIn(name + part, said)
        self.clean()

    def test_labels_of_bars(self):
        for name in ("digits.html", "types.html"):
            for width in WIDTHS:
                self.open(name, width=width, phone=width < 500)
                for bars in ("types", "layers"):
                    count, bad = self.js(self.OVERLAPS + "('#bars-%s .bar-name, #bars-%s .bar-value')" % (bars, bars))
                    self.assertGreater(count, 9)
                    self.assertEqual(bad, [], (name, width))
                lengths = self.js("[...document.querySelectorAll('#bars-layers .bar')].map(e => e.getBoundingClientRect().width)")
                values = self.js("[...layers].sort((a, b) => b.time - a.time).slice(0, %d).map(l => l.time)" % len(lengths))
                for length, value in zip(lengths, values):  # as long as their values say, wherever that is visible
                    self.assertAlmostEqual(length, max(1, lengths[0] * value / values[0]), delta=1.5)
                self.clean()

    def test_types_beyond_a_dozen_are_merged(self):
        self.open("types.html")
        self.assertEqual(self.js("types.length"), 30)
        names = self.js("[...document.querySelectorAll('#bars-types .bar-name')].map(e => e.textContent)")
        self.assertEqual((len(names), names[-1]), (12, "and 19 more"))
        self.assertAlmostEqual(self.js("(({rows, rest}) => [...rows, rest].reduce((n, t) => n + t.share, 0))(shownTypes())"), 1, 6)
        self.js("document.querySelector('#bars-types .bar-row:last-child').click()")
        self.assertEqual(self.js("view.key"), "types")
        self.open("digits.html")
        self.assertEqual(self.js("document.querySelectorAll('#bars-types .bar-row').length"), self.js("types.length"))
        self.assertLess(self.js("types.length"), 12)
        self.clean()

    def test_columns_fit(self):
        for name in ("digits.html", "types.html"):
            for width in WIDTHS:
                self.open(name, width=width, phone=width < 500)
                for level in ("operators", "layers"):
                    self.js("document.querySelector('#tabs button[data-level=%s]').click()" % level)
                    self.assertLessEqual(self.js("$('scroller').scrollWidth - $('scroller').clientWidth"), 0)
                    titles = self.js("[...document.querySelectorAll('#table th')].map(t => t.textContent)")
                    self.assertEqual([t for t in ("name", "time", "%") if t not in titles], [])
                    if width == 1400:
                        self.assertIn("kernel", titles)
                        self.assertEqual(self.js("""(i => [...document.querySelectorAll('#table tr.data')].map(r => r.cells[i])
                            .filter(c => c.getBoundingClientRect().right > innerWidth).length)(%d)""" % titles.index("kernel")), 0)
                every = self.js("view.level.all.length")
                self.assertLess(len(titles), every)
                self.js("$('columns').click()")
                self.assertEqual(self.js("document.querySelectorAll('#table th').length"), every)
                self.assertEqual(self.js("csvText().split('\\r\\n')[0].split(',').length"), every)
                self.js("$('columns').click()")
                self.assertEqual(self.js("csvText().split('\\r\\n')[0].split(',').length"), every)  # whatever is shown
                self.assertEqual(self.js("document.querySelector('#table td.name').title"), self.js("view.rows[0].name"))
                self.clean()

    # ---- what is read ----

    CONTRAST = """(() => { const parse = c => { const p = (c.match(/[\\d.]+/g) || []).map(Number); return [p[0], p[1], p[2], p[3] === undefined ? 1 : p[3]]; };
        const light = c => { const f = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; return .2126 * f(c[0]) + .7152 * f(c[1]) + .0722 * f(c[2]); };
        const ground = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > .9) return c; } return [255, 255, 255, 1]; };
        const bad = []; let seen = 0;
        for (const e of document.querySelectorAll('body *')) {
          if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length || /SCRIPT|STYLE|OPTION/.test(e.tagName)) continue;
          const style = getComputedStyle(e), a = light(parse(style.color)), b = light(ground(e)), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
          seen++;
          if (ratio < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) bad.push(e.tagName + '.' + e.className + ' ' + ratio.toFixed(2) + ' ' + e.textContent.slice(0, 30));
        }
        return [seen, bad]; })()"""

    def test_contrast(self):
        for dark in (False, True):
            self.open("digits.html", dark=dark)
            self.js("graphView.choose(graphView.nodes[1], true), 0")
            seen, bad = self.js(self.CONTRAST)
            self.assertGreater(seen, 200)
            self.assertEqual(bad, [])

    def test_focus_is_seen(self):
        self.open("digits.html")
        for selector in ("#theme", "#search", "#bars-types .bar-row", "#chart-graph", "#chart-timeline", "#table tr.data",
                         "#table th button"):
            self.js("document.querySelector('%s').focus({focusVisible: true})" % selector)
            self.assertEqual(self.js("document.activeElement === document.querySelector('%s')" % selector), True, selector)
            self.assertGreaterEqual(self.js("parseFloat(getComputedStyle(document.activeElement).outlineWidth)"), 2, selector)
            self.assertEqual(self.js("getComputedStyle(document.activeElement).outlineStyle"), "solid", selector)
        self.js("document.querySelector('#table tr.data').focus()")
        self.browser.key("Enter")
        self.assertTrue(self.js("$('row').open"))
        self.clean()

    def test_without_scripts(self):
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            for width in (1400, 400):
                self.browser.open(self.at("types.html"), width=width, phone=width < 500)
                self.assertEqual(self.js("document.querySelectorAll('.plain table').length"), 2)
                self.assertEqual(self.js("document.querySelectorAll('.plain table')[0].tBodies[0].rows.length"), 30)
                self.assertEqual(self.js("document.querySelectorAll('.plain table')[1].tBodies[0].rows.length"), 75)
                self.assertRegex(self.js("document.querySelector('.plain').innerText"), r"(?s)Latency.*median.*Parameters.*Types.*Layers")
                self.assertEqual(self.js("document.querySelector('main').getClientRects().length"), 0)
                self.assertLessEqual(self.js("document.documentElement.scrollWidth"), width)
        finally:
            self.browser.call("Emulation.setScriptExecutionDisabled", value=False)
        self.open("types.html")
        self.assertEqual(self.js("document.querySelectorAll('.plain').length"), 0)

    # ---- the latencies ----

    def test_histogram_ends_at_the_99th_percentile(self):
        self.open("digits.html")
        tips = self.js("[...document.querySelectorAll('#panel-latency rect title')].map(t => t.textContent)")
        counts = [int(re.search(r"\n(\d+) runs", tip).group(1)) for tip in tips]
        samples = sorted(self.js("latency.samples"))
        self.assertEqual(sum(counts), 200)
        self.assertGreaterEqual(counts[-1], 1)  # of 200 runs, two lie above the 99th percentile, ties apart
        self.assertLessEqual(counts[-1], 60)
        fill = "[...document.querySelectorAll('#panel-latency rect')].map(r => [getComputedStyle(r).fill, r.x.baseVal.value + r.width.baseVal.value])"
        bars = self.js(fill)
        self.assertEqual(len({color for color, _ in bars[:-1]}), 1)
        self.assertNotEqual(bars[-1][0], bars[0][0])  # the runs beyond, after a gap
        self.assertGreater(bars[-1][1], bars[-2][1] + 20)
        self.assertIn("%d beyond" % counts[-1], self.js("document.querySelector('#panel-latency .sub').textContent"))
        self.assertLess(samples[0], samples[-1])
        self.clean()

    # ---- graph and timeline ----

    # The screen position of node `i`.
    NODE_AT = """(i => { const m = graphView.map, q = m.canvas.getBoundingClientRect(), v = graphView.placed;
        return [q.left + (v.x[i] - m.view.x) * m.view.k, q.top + (v.y[i] + NODE.height / 2 - m.view.y) * m.view.k]; })"""

    def to(self, panel):
        self.js("$('panel-%s').scrollIntoView()" % panel)
        self.browser.settle()

    def test_layout(self):
        self.open("branches.html")
        count = self.js("graphView.rebuild(0), graphView.nodes.length")
        self.assertGreaterEqual(count, 3000)
        boxes = self.js("[...graphView.nodes.keys()].map(i => [graphView.placed.x[i], graphView.placed.y[i]])")
        rows = {}
        for x, y in boxes:
            rows.setdefault(round(y), []).append(x)
        for row in rows.values():
            row.sort()
            self.assertTrue(all(b - a >= 150 for a, b in zip(row, row[1:])))
        width, height = self.js("[graphView.placed.width, graphView.placed.height]")
        self.assertTrue(all(74.9 <= x <= width - 74.9 and 0 <= y <= height - 45.9 for x, y in boxes))
        self.assertTrue(0.5 < width / height < 6, "the graph is folded to the picture's shape")
        wrong = self.js("""graphView.nodes.filter((l, i) => (l.sources || []).some(s => s !== null &&
            graphView.placed.depth[graphView.nodes.indexOf(layers[s])] >= graphView.placed.depth[i])).length""")
        self.assertEqual(wrong, 0)
        self.clean()

    def test_graph_by_module(self):
        """A large graph opens with its modules as nodes; one opens alone; a layer's row brings the layers back."""
        self.open("branches.html")
        self.to("graph")
        layers = self.js("layers.filter(l => !l.folded).length")
        few = self.js("graphView.nodes.length")
        self.assertGreater(few, 2)
        self.assertLessEqual(few, 160)
        self.assertGreater(self.js("graphView.map.view.k"), 0.26, "the boxes have text")
        sums = self.js("graphView.nodes.map(n => [n.flops, (n.inside || [n]).reduce((sum, l) => sum + l.flops, 0)])")
        self.assertTrue(all(a == b for a, b in sums))
        self.assertEqual(self.js("graphView.nodes.reduce((sum, n) => sum + (n.inside || [n]).length, 0)"), layers)
        x, y = self.js("%s(3)" % self.NODE_AT)
        self.browser.click(x, y)
        self.assertEqual(self.js("graphView.chosen().inside.length > 1"), True)
        self.assertNotIn("null", self.js("$('graph-row').textContent"))
        self.js("[...document.querySelectorAll('#graph-row button')].find(b => b.textContent === 'open this module').click()")
        self.browser.settle()
        opened = self.js("graphView.nodes.length")
        self.assertTrue(few < opened < layers, (few, opened, layers))
        self.js("document.querySelector('#panel-graph select[aria-label=Detail]').value = '0'")
        self.js("document.querySelector('#panel-graph select[aria-label=Detail]').dispatchEvent(new Event('change'))")
        self.assertEqual(self.js("graphView.nodes.length"), layers)
        self.js("graphView.rebuild(1), showInGraph('layers', layers[77])")
        self.assertEqual(self.js("graphView.chosen().index"), 77)
        self.js("graphView.whole()")
        self.browser.settle()
        self.assertGreater(self.js("graphView.map.box.getBoundingClientRect().height / innerHeight"), 0.8)
        self.js("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
        self.browser.settle()
        self.assertLess(self.js("graphView.map.box.getBoundingClientRect().height / innerHeight"), 0.8)
        self.clean()

    def test_names_of_a_chart_differ(self):
        self.open("branches.html")
        names = ["/layer%d/layer%d.%d/conv%d/Conv" % (a, a, b, c) for a in (1, 2) for b in range(12) for c in (1, 2, 3)]
        for room in (12, 16, 34):
            shown = self.js("distinctNames(%s, %d)" % (json.dumps(names), room))
            self.assertEqual(len(set(shown)), len(names))
            self.assertLessEqual(max(map(len, shown)), room)
        self.assertEqual(self.js("distinctNames(%s, 34)" % json.dumps(names))[0], "/layer1/layer1.0/conv1/Conv")
        shown = self.js("[...document.querySelectorAll('#bars-layers .bar-name')].map(b => b.textContent)")
        self.assertEqual(len(set(shown)), len(shown))
        self.clean()

    def test_graph_of_three_thousand(self):
        self.open("branches.html")
        self.to("graph")
        self.js("graphView.rebuild(0), 0")
        self.browser.settle()
        for i in (1700, 40, 2999):
            x, y = self.js("%s(%d)" % (self.NODE_AT, i))
            self.browser.click(x, y)
            name = self.js("graphView.nodes[%d].name" % i)
            self.assertEqual(self.js("graphView.chosen().name"), name)
            self.assertIn(name, self.js("$('graph-row').textContent"))
            self.assertIn("FLOPs", self.js("$('graph-row').textContent"))
        self.js("[...document.querySelectorAll('#graph-row button')].find(b => b.textContent === 'in the table').click()")
        self.assertEqual(self.js("view.marked.name"), name)
        self.assertEqual(self.js("document.querySelector('tr.marked td.first').textContent"), name)
        # A row shows its node in the middle, in a legible size.
        self.js("showRow('layers', layers[1234])")
        self.js("[...document.querySelectorAll('#row-body button')].find(b => b.textContent === 'in the graph').click()")
        self.browser.settle()
        self.assertEqual(self.js("graphView.chosen().index"), 1234)
        x, y = self.js("%s(graphView.nodes.indexOf(layers[1234]))" % self.NODE_AT)
        left, top, right, bottom = self.js("(q => [q.left, q.top, q.right, q.bottom])(graphView.map.canvas.getBoundingClientRect())")
        self.assertTrue(left < x < right and top < y < bottom)
        self.assertGreater(self.js("graphView.map.view.k"), 0.8)
        self.clean()

    def test_graph_by_keys_wheel_and_search(self):
        self.open("branches.html")
        self.to("graph")
        x, y = self.js("(q => [q.left + q.width / 2, q.top + q.height / 2])(graphView.map.canvas.getBoundingClientRect())")
        scale = "graphView.map.view.k"
        fit = self.js(scale)
        self.browser.wheel(x, y, -200)  # without the focus the page scrolls
        self.assertEqual(self.js(scale), fit)
        self.to("graph")
        self.js("graphView.map.canvas.focus()")
        self.browser.wheel(x, y, -400)
        zoomed = self.js(scale)
        self.assertGreater(zoomed, 1.5 * fit)
        self.browser.key("+")
        self.assertAlmostEqual(self.js(scale) / zoomed, 1.4, 6)
        before = self.js("graphView.map.view.x")
        self.browser.key("ArrowRight")
        self.assertGreater(self.js("graphView.map.view.x"), before)
        before = self.js("[graphView.map.view.x, graphView.map.view.y]")
        self.browser.drag(x, y, x - 80, y - 40)
        after, k = self.js("[graphView.map.view.x, graphView.map.view.y]"), self.js(scale)
        self.assertAlmostEqual((after[0] - before[0]) * k, 80, delta=25)  # the tremble of a hand before it drags
        self.assertAlmostEqual((after[1] - before[1]) * k, 40, delta=25)
        self.browser.key("0")
        self.assertAlmostEqual(self.js(scale), fit, 9)
        hottest = self.js("[...graphView.nodes].sort((a, b) => b.share - a.share).slice(0, 3).map(l => l.share)")
        for share in hottest:
            self.browser.key("n")
            self.assertEqual(self.js("graphView.chosen().share"), share)
        self.browser.key("Escape")
        self.assertEqual(self.js("document.activeElement === graphView.map.canvas"), False)
        name = self.js("layers[2500].name")
        self.js("(i => { i.value = %s; i.dispatchEvent(new Event('input')); i.focus(); })(graphView.search.input)" % json.dumps("name:" + name.lower()))
        self.assertEqual(self.js("graphView.search.count.textContent"), "1")
        self.browser.key("Enter")
        self.assertEqual(self.js("graphView.chosen().name"), name)
        self.clean()

    def test_touch(self):
        self.open("branches.html", width=400, phone=True)
        self.browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
        try:
            for panel in ("graph", "timeline"):
                self.to(panel)
                x, y = self.js("(q => [q.left + q.width / 2, q.top + q.height / 2])($('chart-%s').getBoundingClientRect())" % panel)
                scale = "%sView.map.view.k" % panel
                fit = self.js(scale)
                self.browser.pinch(x, y, 30, 90)
                self.assertGreater(self.js(scale), 2 * fit, panel)
                self.assertEqual(self.js("getComputedStyle($('chart-%s')).touchAction" % panel), "pan-y")  # the page still scrolls
        finally:
            self.browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
        self.clean()

    def test_timeline(self):
        self.open("branches.html")
        self.to("timeline")
        shown = "(m => [m.view.x, m.view.x + m.size.width / m.view.k])(timelineView.map)"
        whole = self.js(shown)
        box = self.js("(q => [q.left, q.top, q.width, q.height])(timelineView.map.canvas.getBoundingClientRect())")
        middle = box[1] + 40
        self.js("timelineView.map.canvas.focus()")
        self.browser.wheel(box[0] + box[2] / 2, middle, -600)
        part = self.js(shown)
        self.assertLess(part[1] - part[0], 0.5 * (whole[1] - whole[0]))
        self.browser.key("ArrowRight")
        self.assertGreater(self.js(shown)[0], part[0])
        self.browser.key("0")
        self.assertEqual(self.js(shown), whole)
        self.browser.drag(box[0] + 0.25 * box[2], middle, box[0] + 0.5 * box[2], middle, modifiers=8)  # Shift: to that part
        part = self.js(shown)
        self.assertAlmostEqual((part[1] - part[0]) / (whole[1] - whole[0]), 0.25, delta=0.02)
        self.assertAlmostEqual(part[0] / whole[1], 0.25, delta=0.02)
        self.browser.key("n")
        longest = self.js("Math.max(...operators.map(o => o.trace.end_ns - o.trace.start_ns))")
        self.assertEqual(self.js("(o => o.trace.end_ns - o.trace.start_ns)(timelineView.chosen())"), longest)
        at = self.js("(o => (o.trace.start_ns + o.trace.end_ns) / 2)(timelineView.chosen())")
        part = self.js(shown)
        self.assertTrue(part[0] < at < part[1])
        self.browser.click(box[0] + (at - part[0]) * box[2] / (part[1] - part[0]), middle)
        self.assertTrue(self.js("$('row').open"))
        self.assertIn(self.js("timelineView.chosen().name"), self.js("$('row').textContent"))
        self.js("$('row').close()")
        self.js("(i => { i.value = 'op:max'; i.dispatchEvent(new Event('input')); })(timelineView.search.input)")
        self.assertEqual(self.js("timelineView.search.found.rows.length"), self.js("operators.filter(o => o.op === 'Max').length"))
        self.clean()

    # ---- paper ----

    def test_print(self):
        for name, most in (("digits.html", 6), ("types.html", 6), ("branches.html", 6), ("static.html", 5)):
            self.open(name, dark=True)
            pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", self.browser.pdf()))
            self.assertTrue(1 < pages <= most, (name, pages))
            self.assertEqual(self.js("[root.className, root.dataset.theme, $('paper')]"), ["", "dark", None])  # nothing stays
        self.browser.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        try:
            self.open("types.html", width=720, dark=True)
            self.browser.call("Emulation.setEmulatedMedia", media="print")
            self.js("dispatchEvent(new Event('beforeprint')), 0")
            self.assertEqual(self.js("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
            wide = self.js("""[...document.querySelectorAll('main *')].filter(e => { const b = e.getBoundingClientRect();
                return b.width && !e.closest('.bar-name, .tip') && b.right > 720; }).map(e => e.tagName + '.' + e.className + e.id)""")
            self.assertEqual(wide, [])
            self.assertEqual(self.js("$('scroller').getClientRects().length"), 0)
            self.assertEqual(self.js("document.querySelectorAll('#paper tbody tr').length"), 60)
            self.assertRegex(self.js("document.querySelector('#paper .hint').textContent"), r"^and 15 more with \d+\.\d % of the time")
            self.assertGreater(self.js("document.querySelector('#paper .hint').getClientRects().length"), 0)
            cut = self.js("""[...document.querySelectorAll('#paper td, #paper th')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)""")
            self.assertEqual(cut, [])
            self.assertIn("kernel", self.js("document.querySelector('#paper thead').textContent"))
            self.assertEqual(self.js("getComputedStyle(document.querySelector('#paper thead')).display"), "table-header-group")
            for selector in ("#panel-graph", "#panel-memory", "#panel-types", "#paper tr", ".answer", "#details .panel"):
                self.assertEqual(self.js("getComputedStyle(document.querySelector('%s')).breakInside" % selector), "avoid", selector)
            tall = self.js("[...document.querySelectorAll('#views > .panel, #charts > .panel')].filter(e => e.offsetHeight > 1040).map(e => e.id)")
            self.assertEqual(tall, [])  # a panel that is higher than a page would break
            self.assertEqual(self.js(self.OVERLAPS + "('#bars-types .bar-name, #bars-types .bar-value')")[1], [])
            self.js("dispatchEvent(new Event('afterprint')), 0")
        finally:
            self.browser.call("Emulation.setEmulatedMedia", media="")
        self.clean()

    # ---- SVG ----

    def roofline(self, count, seed):
        chance = random.Random(seed)
        chain(self.at("roof.onnx"), [UNARY[(7 * i) % 30] for i in range(count)])
        run("profile", self.at("roof.onnx"), "--no-rewrites", "-r", 3, "-w", 1, "-q", "--no-progress", "--json", self.at("roof.json"))
        with open(self.at("roof.json"), encoding="utf-8") as file:
            report = json.load(file)
        shares = [chance.expovariate(1) for _ in report["operators"]]
        for operator, share in zip(report["operators"], shares):
            operator["share"] = share / sum(shares)
            operator["bytes_read"] = int(10 ** chance.uniform(0.5, 4.5))
            operator["time_ns"]["mean"] = int(10 ** chance.uniform(2.5, 3.5))
        report["roof"] = {"method": "made up", "compute": [{"precision": "fp32", "threads": 1, "flops_per_second": 1.1e11}],
                          "memory": [{"level": level, "threads": 1, "bytes_per_second": rate}
                                     for level, rate in (("L1", 4e11), ("L2", 3.9e11), ("L3", 1.2e11), ("DRAM", 2e10))]}
        with open(self.at("roof.json"), "w", encoding="utf-8") as file:
            json.dump(report, file)
        return run("inspect", self.at("roof.json"), "-q", "--svg", "roofline=-")

    def test_roofline_labels(self):
        for count in (5, 50, 500):
            for seed in range(3):
                with open(self.at("roof.html"), "w", encoding="utf-8") as file:
                    file.write("<!doctype html><meta charset=utf-8><link rel=icon href='data:,'><body style='margin:0'>" + self.roofline(count, seed))
                self.open("roof.html")
                boxes = self.js("[...document.querySelectorAll('svg text')].map(t => { const b = t.getBBox(); return [t.textContent, b.x, b.y, b.x + b.width, b.y + b.height]; })")
                names = [b for b in boxes if re.search(r"_\d+  [\d.]+ %$", b[0])]
                self.assertGreaterEqual(len(names), 5 if count < 500 else 3, boxes)
                self.assertEqual(len([b for b in boxes if re.match(r"(L[123]|DRAM|peak) ", b[0])]), 5)
                for i, a in enumerate(boxes):
                    self.assertTrue(0 <= a[1] and a[3] <= 860 and 0 <= a[2] and a[4] <= 530, a)
                    for b in boxes[i + 1:]:
                        self.assertFalse(a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4], (count, seed, a, b))

    def test_types_and_latency_as_svg(self):
        run("profile", self.at("types.onnx"), "--no-rewrites", "-r", 120, "-w", 1, "-q", "--no-progress", "--json", self.at("svg.json"))
        for chart in ("types", "latency", "layers"):
            with open(self.at("svg.html"), "w", encoding="utf-8") as file:
                picture = run("inspect", self.at("svg.json"), "-q", "--svg", chart + "=-")
                file.write("<!doctype html><meta charset=utf-8><link rel=icon href='data:,'>" + picture)
            self.open("svg.html")
            boxes = self.js("[...document.querySelectorAll('svg text')].map(t => { const b = t.getBBox(); return [t.textContent, b.x, b.y, b.x + b.width, b.y + b.height]; })")
            width = self.js("document.querySelector('svg').viewBox.baseVal.width")
            text = "\n".join(b[0] for b in boxes)
            if chart == "types":
                self.assertIn("and 11 more", text)
            if chart == "latency":
                self.assertIn("beyond", text)
            for i, a in enumerate(boxes):
                self.assertTrue(0 <= a[1] and a[3] <= width, (chart, a))
                for b in boxes[i + 1:]:
                    self.assertFalse(a[1] < b[3] - 1 and b[1] < a[3] - 1 and a[2] < b[4] - 3 and b[2] < a[4] - 3, (chart, a, b))


if __name__ == "__main__":
    PRONY, SOURCE = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
