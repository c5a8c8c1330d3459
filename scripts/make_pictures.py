"""Makes the pictures of README.md and docs/tutorials/read_a_report.md: the terminal's first screen and parts of the HTML report.

    python3 scripts/make_pictures.py --prony BUILD/prony --model MODEL.onnx [--out docs/images]

Needs Chromium. The terminal is drawn by it, too: the command runs in a terminal of 80 columns, and what it prints, colours
included, becomes a page. Exit status: 0 done, 1 it failed, 2 wrong usage.
"""
import argparse
import base64
import html
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "command"))
import chromium  # noqa: E402

COLUMNS, ROWS, WIDTH, TWO_COLUMNS, QUALITY = 80, 48, 1100, 1400, 70
STYLES = {"1": "font-weight:bold", "2": "color:#8b949e", "31": "color:#ff7b72", "32": "color:#7ee787", "33": "color:#e3b341",
          "34": "color:#79c0ff", "35": "color:#d2a8ff", "36": "color:#a5d6ff", "90": "color:#8b949e"}
PAGE = """<!doctype html><meta charset="utf-8"><style>body{margin:0;background:#0d1117}pre{margin:0;padding:16px 20px;color:#e6edf3;
font:14px/1.35 "DejaVu Sans Mono",monospace;display:inline-block;min-width:%dch}</style><pre>%s</pre>"""


def terminal_text(command, folder):
    """The command's output on a terminal, with colours."""
    leader, follower = pty.openpty()
    environment = dict(os.environ, COLUMNS=str(COLUMNS), TERM="xterm-256color")
    environment.pop("NO_COLOR", None)
    done = subprocess.Popen(command, stdout=follower, stderr=subprocess.DEVNULL, env=environment, cwd=folder)
    os.close(follower)
    text = b""
    while True:
        try:
            piece = os.read(leader, 1 << 16)
        except OSError:  # the end, as Linux tells it
            break
        if not piece:
            break
        text += piece
    os.close(leader)
    if done.wait():
        raise SystemExit("make_pictures: %s ended with %d" % (" ".join(map(str, command)), done.returncode))
    return text.decode().replace("\r\n", "\n")


def coloured(text):
    out, styles = [], []
    for part in re.split(r"\x1b\[([\d;]*)m", text):
        styles.append(part)
    for i, part in enumerate(styles):
        if i % 2 == 0:
            out.append(html.escape(part))
        elif part in ("", "0"):
            out.append("</span>")
        else:
            out.append('<span style="%s">' % ";".join(STYLES.get(code, "") for code in part.split(";")))
    return "".join(out)


def capture(browser, path, clip):
    clip = dict(clip, scale=1)
    data = browser.call("Page.captureScreenshot", format="webp", quality=QUALITY, captureBeyondViewport=True, clip=clip)["data"]
    path.write_bytes(base64.b64decode(data))
    print("%s: %d KiB" % (path, path.stat().st_size // 1024))


def element(browser, selector, margin=0):
    box = browser.run("(() => { const r = document.querySelector(%r).getBoundingClientRect(); return [r.x + scrollX, r.y + scrollY,"
                      " r.width, r.height]; })()" % selector)
    return {"x": max(0, box[0] - margin), "y": max(0, box[1] - margin), "width": box[2] + 2 * margin, "height": box[3] + 2 * margin}


def picture_of_text(browser, folder, text, path):
    page = folder / "terminal.html"
    page.write_text(PAGE % (COLUMNS, coloured(text)), encoding="utf-8")
    browser.open(page, width=WIDTH)
    capture(browser, path, element(browser, "pre"))


def main():
    parser = argparse.ArgumentParser(description="Makes the pictures of the documents.")
    parser.add_argument("--prony", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "images")
    args = parser.parse_args()
    path = chromium.find()
    if not path:
        raise SystemExit("make_pictures: Chromium is not installed")
    prony, model = args.prony.resolve(), args.model.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="prony-pictures-") as name:
        folder = pathlib.Path(name)
        text = terminal_text([prony, "profile", model.name, "--html", folder / "report.html", "--no-progress"], model.parent)
        lines = text.splitlines()
        question = "$ prony %s\n" % model.name
        with chromium.Browser(path) as browser:
            picture_of_text(browser, folder, question + "\n".join(lines[:ROWS]), args.out / "terminal.webp")
            browser.open(folder / "report.html", width=WIDTH, height=900)
            browser.settle()
            top = {"x": 0, "y": 0, "width": WIDTH, "height": 900}
            capture(browser, args.out / "report.webp", top)
            for name, part, width in (("graph", "#panel-graph", WIDTH), ("tables", "#tables", WIDTH), ("charts", "#charts", TWO_COLUMNS)):
                browser.open(folder / "report.html", width=width, height=900)
                browser.settle()
                clip = element(browser, part)
                clip["height"] = min(clip["height"], 900)
                capture(browser, args.out / ("report_%s.webp" % name), clip)
    return 0


if __name__ == "__main__":
    sys.exit(main())
