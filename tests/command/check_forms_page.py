#!/usr/bin/env python3
"""The HTML report in a browser: its contents and reactions. test_page.py tests its looks.

    check_forms_page.py PRONY SOURCE_DIR [unittest options]

Without Chromium all of it is skipped.
"""
import json
import os
import re
import shutil
import tempfile
import unittest

import chromium
import forms_case
from forms_case import DONE, hostile_model, long_model, read, run


class Page(unittest.TestCase):
    """The HTML report in a browser."""

    @classmethod
    def setUpClass(cls):
        path = chromium.find()
        if not path:
            raise unittest.SkipTest("Chromium (Debian: chromium) is not installed: the HTML page is NOT tested")
        cls.folder = tempfile.mkdtemp(prefix="prony-page-")
        cls.page = os.path.join(cls.folder, "digits.html")
        cls.odd = os.path.join(cls.folder, "odd.html")
        cls.long = os.path.join(cls.folder, "long.html")
        hostile_model(os.path.join(cls.folder, "hostile.onnx"))
        long_model(os.path.join(cls.folder, "long.onnx"), 10000)
        for model, page, runs in ((None, cls.page, 70), (os.path.join(cls.folder, "hostile.onnx"), cls.odd, 3),
                                  (os.path.join(cls.folder, "long.onnx"), cls.long, 3)):
            code, _, error = run("profile", *([model] if model else []), "-r", runs, "-w", 2, "-q", "--html", page)
            assert code == DONE, error
        cls.browser = chromium.Browser(path)

    @classmethod
    def tearDownClass(cls):
        if hasattr(cls, "browser"):
            cls.browser.close()
            shutil.rmtree(cls.folder)

    def open(self, page, **how):
        self.browser.problems.clear()
        self.browser.open(page, **how)

    def clean(self):
        self.browser.run("new Promise(done => setTimeout(done, 50))")
        self.assertEqual(self.browser.problems, [])

    # Pixels of a canvas that are not transparent, and how many colours they have.
    INK = """(id => { const c = document.getElementById('chart-' + id); if (!c || !c.width) return [0, 0];
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set(); let n = 0;
        for (let i = 0; i < d.length; i += 4) if (d[i + 3]) { n++; seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); }
        return [n, seen.size]; })"""
    COLUMN = """(title => { const i = [...document.querySelectorAll('#table th')].findIndex(t => t.textContent === title);
        return [...document.querySelectorAll('#table tr.data')].map(r => r.cells[i].title || r.cells[i].textContent); })"""
    CLICK = "(title => [...document.querySelectorAll('#table th button')].find(b => b.textContent === title).click())"

    def test_charts_are_drawn(self):
        for width, phone in ((1400, False), (390, True)):
            for dark in (False, True):
                self.open(self.page, width=width, dark=dark, phone=phone)
                for chart in ("graph", "roofline", "modules", "timeline", "memory", "arena", "latency", "runs"):
                    ink, colors = self.browser.run("%s(%s)" % (self.INK, json.dumps(chart)))
                    self.assertGreater(ink, 2000, chart)
                    self.assertGreater(colors, 8, chart)
                # a slow machine has time to look at its processors
                self.assertEqual(self.browser.run("drawn.size - drawn.has('cores')"), 6)
                for bars in ("layers", "types"):
                    self.assertGreater(self.browser.run("document.querySelectorAll('#bars-%s .bar').length" % bars), 3)
                self.clean()

    def test_theme(self):
        ground = "getComputedStyle(document.body).backgroundColor"
        self.open(self.page, dark=False)
        light = self.browser.run(ground)
        self.browser.run("document.getElementById('theme').click()")
        dark = self.browser.run(ground)
        self.assertNotEqual(light, dark)
        self.browser.run("document.getElementById('theme').click()")
        self.assertEqual(self.browser.run(ground), light)
        self.browser.run("try { localStorage.clear() } catch (e) { 0 }")
        self.open(self.page, dark=True)
        self.assertEqual(self.browser.run(ground), dark)
        self.clean()

    def test_no_sideways_scrolling(self):
        for width in (1400, 390):
            self.open(self.page, width=width, phone=width < 500)
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
            self.assertGreaterEqual(self.browser.run("parseFloat(getComputedStyle(document.body).fontSize)"), 13)

    def test_sorting(self):
        self.open(self.page)
        times = self.browser.run(self.COLUMN + "('time')")
        timed = [float(t) for t in times if t != "–"]
        self.assertEqual(times[len(timed):], ["–"] * (len(times) - len(timed)))  # what has no time comes last
        self.assertGreater(len(timed), 5)
        self.assertEqual(timed, sorted(timed, reverse=True))
        for title, down in (("FLOPs", True), ("FLOPs", False), ("name", False), ("name", True)):
            self.browser.run("%s('%s')" % (self.CLICK, title))
            column = self.browser.run("%s('%s')" % (self.COLUMN, title))
            if title == "FLOPs":
                column = [int(v) for v in column]
                self.assertEqual(column, sorted(column, reverse=down))
                self.assertGreater(len(set(column)), 3)
            else:
                numbers = [int(re.match(r"/(\d+)/", v).group(1)) for v in column]
                self.assertEqual(numbers, sorted(numbers, reverse=down))
        self.clean()

    def type(self, text):
        self.browser.run("(() => { const s = document.getElementById('search'); s.value = %s; s.dispatchEvent(new Event('input')); })()" % json.dumps(text))
        self.browser.run("new Promise(done => setTimeout(done, 250))")

    def test_filtering(self):
        self.open(self.page)
        everything = self.browser.run("view.rows.length")
        self.assertEqual(everything, self.browser.run("report.layers.length"))
        for text, test in (("op:Conv", "r => r.op === 'Conv'"), ("conv", "r => /conv/i.test(r.name + r.op + r.kernel)"),
                           ("share>0", "r => r.share > 0"), ("flops>100k op:conv", "r => r.flops > 1e5 && r.op === 'Conv'")):
            self.type(text)
            found = self.browser.run("view.rows.length")
            self.assertEqual(found, self.browser.run("layers.filter(%s).length" % test), text)
            self.assertTrue(0 < found < everything or text == "conv", text)
        self.type("")
        self.browser.run("(() => { const s = document.getElementById('type'); s.value = 'Relu'; s.dispatchEvent(new Event('change')); })()")
        self.assertEqual(set(self.browser.run(self.COLUMN + "('type')")), {"Relu"})
        self.clean()

    def test_tables_and_rows(self):
        self.open(self.page)
        for level in ("operators", "modules", "types", "buffers", "layers"):
            self.browser.run("document.querySelector('#tabs button[data-level=%s]').click()" % level)
            self.assertGreater(self.browser.run("document.querySelectorAll('#table tr.data').length"), 1, level)
        self.browser.run("document.querySelector('#table tr.data').click()")
        self.assertTrue(self.browser.run("document.getElementById('row').open"))
        self.assertIn("FLOPs", self.browser.run("document.getElementById('row').textContent"))
        self.assertGreater(self.browser.run("csvText().split('\\r\\n').length"), self.browser.run("report.layers.length"))
        self.clean()

    def test_memory_snapshot(self):
        self.open(self.page)
        for step in range(self.browser.run("report.memory.timeline.length")):
            self.browser.run("showAlive(document.querySelector('.alive'), %d)" % step)
            shown = self.browser.run("blocks.filter(b => b.first <= %d && %d <= b.last).reduce((n, b) => n + b.bytes, 0)" % (step, step))
            self.assertEqual(shown, self.browser.run("report.memory.timeline[%d].live_bytes" % step))
        self.clean()

    def test_static_report(self):
        page = os.path.join(self.folder, "static.html")
        self.assertEqual(run("inspect", forms_case.SOURCE + "/models/digits.onnx", "-q", "--html", page)[0], DONE)
        self.open(page)
        for chart in ("graph", "modules"):
            self.assertGreater(self.browser.run("%s('%s')" % (self.INK, chart))[0], 2000, chart)
        for absent in ("latency", "timeline", "roofline"):
            self.assertEqual(self.browser.run("Boolean(document.getElementById('chart-%s'))" % absent), False)
        flops = self.browser.run("view.rows.map(r => r.flops)")
        self.assertEqual(sum(flops), self.browser.run("report.totals.flops"))
        self.clean()

    def test_without_a_chart_library(self):
        page = os.path.join(self.folder, "bare.html")
        scripts = re.split(r"(?=<script)", read(self.page))
        bare = [s for s in scripts if not s.startswith("<script>") or not re.search(r"Chart\.js v|function drawCharts", s)]
        self.assertEqual(len(bare), len(scripts) - 2)
        with open(page, "w", encoding="utf-8") as file:
            file.write("".join(bare))
        self.open(page)
        self.assertIn("without a chart library", self.browser.run("document.getElementById('no-charts').textContent"))
        self.assertGreater(self.browser.run("document.querySelectorAll('#table tr.data').length"), 5)
        for chart in ("graph", "timeline"):  # these need no library
            self.assertGreater(self.browser.run("%s('%s')" % (self.INK, chart))[0], 2000, chart)
        self.clean()

    def test_hostile_names_stay_text(self):
        self.open(self.odd)
        self.assertEqual(self.browser.run("report.layers[0].name.includes('</script>')"), True)
        self.assertIn("</script>", self.browser.run("document.getElementById('table').textContent"))
        saved = self.browser.run("csvText()")
        self.assertIn('"\'=HYPERLINK(""x"");?[2J??"', saved)  # U+009B is one character here
        self.assertNotRegex(saved, r'(^|,)"?[=+@-]')
        self.clean()

    def test_ten_thousand_nodes(self):
        self.open(self.long)
        self.assertEqual(self.browser.run("layers.length"), 10000)
        self.assertLess(self.browser.run("document.querySelectorAll('#table tr').length"), 100)
        self.assertLess(self.browser.run("document.getElementsByTagName('*').length"), 3000)
        slow = self.browser.run("(() => { const t = performance.now(); %s('FLOPs'); return performance.now() - t; })()" % self.CLICK)
        self.assertLess(slow, 2000)
        self.type("name:tanh_9998")
        self.assertEqual(self.browser.run("view.rows.length"), 1)
        self.type("")
        self.browser.run("document.getElementById('scroller').scrollTop = 1e9")
        self.browser.run("new Promise(done => setTimeout(done, 100))")
        self.assertGreaterEqual(self.browser.run("Math.max(...[...document.querySelectorAll('#table tr.data')].map(r => +r.getAttribute('aria-rowindex')))"), 10000)
        for chart in ("graph", "timeline"):
            self.assertGreater(self.browser.run(self.INK + "('%s')" % chart)[0], 2000, chart)
        self.assertEqual(self.browser.run("timelineView.tracks.reduce((n, t) => n + t.parts.length, 0) >= operators.length"), True)
        self.clean()


if __name__ == "__main__":
    forms_case.main()
