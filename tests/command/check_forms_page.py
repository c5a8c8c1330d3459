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
from xml.etree import ElementTree

import chromium
import forms_case
from forms_case import DONE, hostile_model, long_model, run


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
    # Elements of a picture that have an extent on the screen, and the colours of all of them.
    SHAPES = """(chart => { const all = [...document.querySelectorAll('#panel-' + chart + ' svg *')].filter(e => e.getClientRects().length);
        const colors = new Set(all.map(e => getComputedStyle(e).fill)); return [all.length, [...colors]]; })"""
    COLUMN = """(title => { const i = [...document.querySelectorAll('#table th')].findIndex(t => t.textContent === title);
        return [...document.querySelectorAll('#table tr.data')].map(r => r.cells[i].title || r.cells[i].textContent); })"""
    CLICK = "(title => [...document.querySelectorAll('#table th button')].find(b => b.textContent === title).click())"

    def test_charts_are_drawn(self):
        for width, phone in ((1400, False), (390, True)):
            for dark in (False, True):
                self.open(self.page, width=width, dark=dark, phone=phone)
                for chart in ("graph", "timeline"):
                    ink, colors = self.browser.run("%s(%s)" % (self.INK, json.dumps(chart)))
                    self.assertGreater(ink, 2000, chart)
                    self.assertGreater(colors, 8, chart)
                for chart in ("roofline", "modules", "memory", "latency", "runs"):
                    count, colors = self.browser.run("%s(%s)" % (self.SHAPES, json.dumps(chart)))
                    self.assertGreater(count, 10, chart)
                    ink = "rgb(229, 233, 239)" if dark else "rgb(24, 32, 43)"
                    self.assertIn(ink, colors, chart)  # text has the theme's colour
                # a slow machine has time to look at its processors
                self.assertEqual(self.browser.run("document.querySelectorAll('.picture:not(#panel-cores)').length"), 5)
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
        self.assertGreater(self.browser.run(self.INK + "('graph')")[0], 2000)
        self.assertGreater(self.browser.run(self.SHAPES + "('modules')")[0], 10)
        for absent in ("latency", "timeline", "roofline"):
            self.assertEqual(self.browser.run("Boolean(document.getElementById('panel-%s'))" % absent), False)
        flops = self.browser.run("view.rows.map(r => r.flops)")
        self.assertEqual(sum(flops), self.browser.run("report.totals.flops"))
        self.clean()

    def elements(self, source):
        """The elements of a picture without its tips, heading and background, which file and page have in forms of their own."""
        def below(element):
            for child in element:
                if child.tag.endswith("}title"):
                    continue
                yield (child.tag, dict(child.attrib), (child.text or "").strip())
                yield from below(child)
        return list(below(ElementTree.fromstring(source)))

    def test_page_has_the_elements_of_the_files(self):
        saved = os.path.join(self.folder, "same.json")
        self.assertEqual(run("profile", os.path.join(self.folder, "hostile.onnx"), "-r", 70, "-q", "--memory", "--accuracy", "--json", saved)[0], DONE)
        code, page, error = run("inspect", saved, "-q", "--html", "-")
        self.assertEqual((code, error), (DONE, ""))
        figures = dict(re.findall(r'<figure [^>]*data-chart="(\w+)">(.*?)</figure>', page, re.S))
        self.assertLessEqual({"roofline", "memory", "latency", "runs", "modules", "accuracy"}, set(figures))
        for chart, figure in figures.items():
            code, file, error = run("inspect", saved, "-q", "--svg", chart + "=-")
            self.assertEqual((code, error), (DONE, ""))
            shown = self.elements(re.search(r"<svg.*?</svg>(?=\n)", figure, re.S).group(0))
            self.assertEqual(shown, self.elements(file)[3:], chart)  # background, title, note
            self.assertGreater(len(shown), 10, chart)
        marked = [int(n) for n in re.findall(r'data-operator="(\d+)"', figures["roofline"])]
        with open(saved, encoding="utf-8") as report:
            self.assertEqual(sorted(marked), [o["index"] for o in json.load(report)["operators"] if o["flops"]])

    def at(self, selector):
        """The middle of an element on the screen."""
        self.browser.run("document.querySelector(%s).scrollIntoView({block: 'center'})" % json.dumps(selector))
        self.browser.settle()
        return self.browser.run("(r => [r.left + r.width / 2, r.top + r.height / 2])(document.querySelector(%s).getBoundingClientRect())" % json.dumps(selector))

    def hover(self, x, y):
        self.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.browser.settle()
        return self.browser.run("tipBox.hidden ? '' : tipBox.textContent")

    def test_pictures_answer(self):
        self.open(self.page)
        mark = self.browser.run("document.querySelector('#panel-roofline circle').dataset.operator")
        circle = '#panel-roofline [data-operator="%s"]' % mark
        name = self.browser.run("operators[%s].name" % mark)
        said = self.hover(*self.at(circle))
        for part in (name, "FLOP/s at", "FLOP/B", "%"):
            self.assertIn(part, said)
        self.browser.click(*self.at(circle))
        self.assertTrue(self.browser.run("$('row').open"))
        self.assertIn(name, self.browser.run("$('row').textContent"))
        self.browser.run("$('row').close()")
        self.assertRegex(self.hover(*self.at("#panel-latency rect")), r"s - .*runs?, [\d.]+ %")
        # a type of the key disappears and comes back
        for shown in (False, True):
            self.browser.click(*self.at("#panel-roofline .key"))
            self.assertEqual(self.browser.run("document.querySelector('#panel-roofline [data-group=\\'0\\']').getClientRects().length > 0"), shown)
        self.clean()

    def test_modules_are_entered(self):
        self.open(self.page)
        inside = self.browser.run("modules[0].children.length")
        self.assertGreater(inside, 1)
        module = self.browser.run("modules.indexOf(modules.find(m => m.path === modules[0].children[0]))")
        rect = '#panel-modules > svg:not(.off) rect[data-module="%d"]' % module
        narrow = self.browser.run("document.querySelector(%s).getBoundingClientRect().width" % json.dumps(rect))
        self.browser.click(*self.at(rect))
        self.assertEqual(self.browser.run("modules.indexOf(modulesView.top())"), module)
        wide = self.browser.run("document.querySelector(%s).getBoundingClientRect().width" % json.dumps(rect))
        self.assertGreater(wide, 1.5 * narrow)
        self.assertIn(self.browser.run("modules[%d].name" % module), self.browser.run("document.querySelector('#panel-modules .sub').textContent"))
        self.browser.run("document.querySelector('#panel-modules button').click()")
        self.assertEqual(self.browser.run("modulesView.top().path"), "")
        for figure, key in enumerate(("time", "flops", "parameters")):
            self.browser.run("(s => { s.value = %d; s.dispatchEvent(new Event('change')); })(document.querySelector('#panel-modules select'))" % figure)
            share = self.browser.run("modules[%d].%s / modules[0].%s" % (module, key, key))
            box = "(m => { const r = document.querySelector('#panel-modules > svg:not(.off) rect[data-module=\"' + m + '\"]'); return r ? r.getBoundingClientRect().width : 0; })(%d)"
            if share > 0.01:
                self.assertAlmostEqual(self.browser.run(box % module) / self.browser.run(box % 0), share, delta=0.005)
        self.assertIn("of what is shown", self.hover(*self.at("#panel-modules > svg:not(.off) .names text")))  # on a name, too
        layer = "#panel-modules > svg:not(.off) rect[data-layer]"
        self.browser.click(*self.at(layer))
        self.assertTrue(self.browser.run("$('row').open"))
        self.clean()

    def test_memory_and_runs_zoom(self):
        self.open(self.page)
        for view, chart, last in (("memoryView", "memory", "report.memory.timeline.length"), ("runsView", "runs", "latency.samples.length")):
            self.at("#panel-%s svg .plot" % chart)
            left, top, width, height = self.browser.run("(r => [r.left, r.top, r.width, r.height])(%s.plots[0].frame.getBoundingClientRect())" % view)
            seen = "(v => [v.plots.map(p => p.frame.viewBox.baseVal.width / (p.data[1] - p.data[0])), [...v.plots[0].ticks.querySelectorAll('text')].map(t => t.textContent)])(%s)" % view
            whole, labels = self.browser.run(seen)
            self.assertEqual(set(whole), {1})
            middle = top + height / 2
            self.browser.drag(left + 0.25 * width, middle, left + 0.75 * width, middle)
            part, fewer = self.browser.run(seen)
            for share in part:  # of both plots of memory
                self.assertAlmostEqual(share, 0.5, delta=0.02)
            self.assertNotEqual(labels, fewer)
            self.assertFalse(self.browser.run("$('row').open"))
            x = left + width / 2
            for count in (1, 2):
                for kind in ("mousePressed", "mouseReleased"):
                    self.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=middle, button="left", clickCount=count)
            self.browser.settle()
            self.assertEqual(self.browser.run(seen), [whole, labels])
            number = 2.5 if chart == "memory" else 21
            said = self.hover(left + number / self.browser.run(last) * width, middle)
            self.assertIn("step 2" if chart == "memory" else "run 21:", said)
        self.at("#panel-memory .alive")
        left, top, width, height = self.browser.run("(r => [r.left, r.top, r.width, r.height])(memoryView.plots[1].frame.getBoundingClientRect())")
        steps = self.browser.run("report.memory.timeline.length")
        self.browser.click(left + width * 2.5 / steps, top + height - 2)
        self.assertTrue(self.browser.run("document.querySelector('.alive').textContent").startswith("Alive at step 2"))
        block = self.browser.run("document.querySelector('#panel-memory [data-block]').dataset.block")
        said = self.hover(*self.at('#panel-memory [data-block="%s"]' % block))
        self.assertIn(self.browser.run("blocks[%s].owner" % block), said)
        self.assertIn("steps", said)
        self.clean()

    def test_hostile_names_stay_text(self):
        self.open(self.odd)
        self.assertEqual(self.browser.run("report.layers[0].name.includes('</script>')"), True)
        self.assertIn("</script>", self.browser.run("document.getElementById('table').textContent"))
        saved = self.browser.run("csvText()")
        self.assertIn('"\'=HYPERLINK(""x"");?[2J??"', saved)  # U+009B is one character here
        self.assertNotRegex(saved, r'(^|,)"?[=+@-]')
        self.assertEqual(self.browser.run("document.querySelectorAll('#charts script, .picture foreignObject').length"), 0)
        for chart in ("roofline", "modules"):  # names reach the pictures and their tips as text
            marks = {"roofline": '[data-operator="0"]', "modules": '[data-module="0"]'}
            self.assertTrue(self.hover(*self.at("#panel-%s %s" % (chart, marks[chart]))), chart)
        self.assertEqual(self.browser.run("rowTip(layers[0])[0]"), self.browser.run("layers[0].name"))
        self.clean()

    def test_ten_thousand_nodes(self):
        self.open(self.long)
        self.assertEqual(self.browser.run("layers.length"), 10000)
        self.assertLess(self.browser.run("document.querySelectorAll('#table tr').length"), 100)
        pictures = self.browser.run("document.querySelectorAll('.picture *').length")
        self.assertLess(pictures, 16000)
        self.assertLess(self.browser.run("document.getElementsByTagName('*').length") - pictures, 3000)
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
