#!/usr/bin/env python3
"""Opens pages of `rackweave` in headless Chromium, without a network, and checks what a reader would see.

    tests/page/check.py PAGE.html... [--width 1400] [--width 400] [--theme light] [--theme dark] [--turns] [--axe axe.min.js] [--screenshot SHOT.png]

Every page is opened at each width in each theme, or in half of these ways with --turns. It fails when a figure was not drawn (empty, no marks, or an axis without a title), when two series of one share a
colour, when letters of a figure are smaller than 11 px, when the console got an error, when a page asked for anything outside its folder or was refused something by
its policy, when something is wider than the window, when a page is longer than 30,000 px, or when axe-core finds a violation.
Exit status: 0 fine, 1 defects (one a line), 2 no Chromium or it did not start.
"""

import argparse
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# Runs before anything else of the page, and reports into an element of its own when the figures are done.
PROBE = r"""
<script>
(() => {
  const errors = [];
  const error = console.error;
  console.error = (...parts) => { errors.push("console: " + parts.join(" ")); error.apply(console, parts); };
  window.addEventListener("error", event => errors.push("error: " + (event.message || event.target.outerHTML)), true);
  window.addEventListener("unhandledrejection", event => errors.push("rejection: " + event.reason));
  document.addEventListener("securitypolicyviolation", event => errors.push("policy: " + event.violatedDirective + " " + event.blockedURI));
  const marks = svg => svg.querySelectorAll(".mark-symbol path, .mark-rect path, .mark-line path").length;
  const titles = svg => [...svg.querySelectorAll(".role-axis-title text")].map(text => text.textContent).filter(Boolean);
  const drawing = place => {
    const svg = place.querySelector("svg");
    return { name: place.getAttribute("aria-label"), drawn: !!svg, marks: svg ? marks(svg) : 0, titles: svg ? titles(svg) : [],
             width: svg ? Math.round(svg.getBoundingClientRect().width) : 0, natural: svg ? Number(svg.getAttribute("width")) : 0,
             letters: svg ? Math.min(...[...svg.querySelectorAll("text")].filter(text => text.textContent).map(text => parseFloat(getComputedStyle(text).fontSize))) : 0 };
  };
  const scrolls = element => { for (let up = element; up; up = up.parentElement) { if (getComputedStyle(up).overflowX === "auto") return true; } return false; };
  const colours = place => {
    const found = new Set();
    const look = part => {
      if (!part || typeof part !== "object") return;
      if (part.color && part.color.scale && part.color.scale.range) {
        const range = part.color.scale.range;
        range.filter((colour, at) => range.indexOf(colour) !== at).forEach(colour => found.add(colour));
      }
      Object.values(part).forEach(look);
    };
    look(JSON.parse(place.textContent));
    return { name: place.parentElement.querySelector("h2").textContent, repeated: [...found] };
  };
  const empty = () => [...document.querySelectorAll("figure")].filter(figure => figure.querySelector("p.notice"))
    .map(figure => figure.querySelector("h2").textContent);
  const wide = () => [...document.body.querySelectorAll("*")]
    .filter(element => element.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !scrolls(element))
    .map(element => element.tagName + "." + (element.getAttribute("class") || "")).slice(0, 5);
  const violations = async () => {
    if (!window.axe) return [];
    // A light and a dark page are judged by what is seen, folded parts included.
    document.querySelectorAll("details").forEach(part => { part.open = true; });
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations.map(rule => `${rule.id} (${rule.impact}): ${rule.help}: ${rule.nodes.slice(0, 3).map(node => node.target.join(" ") + " " + (node.any[0] ? node.any[0].message : "")).join("; ")}`);
  };
  const report = async () => {
    const found = {
      done: document.documentElement.dataset.figures === "done" || !document.querySelector("script.specification"),
      errors, width: document.documentElement.clientWidth, scroll: document.documentElement.scrollWidth, wide: wide(),
      requests: performance.getEntriesByType("resource").map(entry => entry.name),
      expected: document.querySelectorAll("script.specification").length,
      empty: empty(), colours: [...document.querySelectorAll("script.specification")].map(colours),
      drawings: [...document.querySelectorAll(".drawing")].map(drawing),
      rows: document.querySelectorAll("table.claims tbody").length, height: document.documentElement.scrollHeight,
    };
    found.violations = await violations();
    const place = document.createElement("pre");
    place.id = "page-check";
    place.textContent = JSON.stringify(found);
    document.body.append(place);
  };
  window.addEventListener("load", () => {
    let rounds = 0;
    const timer = setInterval(() => {
      if (document.documentElement.dataset.figures !== "done" && document.querySelector("script.specification") && ++rounds < 300) return;
      clearInterval(timer);
      report();
    }, 50);
  });
})();
</script>
"""

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9", "--virtual-time-budget=30000",
]

# Headless Chromium has windows of 500 px and more: narrower ones are frames in a page.
NARROWEST = 500
LETTERS_MIN = 11
BROWSERS = 2
HEIGHT_MAX = 30_000


def chromium():
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


def browse(browser, folder, page, width, *more):
    """Opens `page` in a profile of its own and returns what Chromium prints."""
    command = [browser, *FLAGS, f"--user-data-dir={folder}/profile", f"--window-size={width},900", *more, page.as_uri()]
    return subprocess.run(command, capture_output=True, timeout=240, check=False).stdout.decode("utf-8", "replace")


def examine(browser, page, width, theme, axe):
    """What the probe found in `page`, or None when Chromium did not get so far."""
    text = page.read_text(encoding="utf-8")
    # A script inside the page would be refused by no policy; one that is said to be outside would be.
    probe = PROBE + (f"<script>{axe}</script>" if axe else "")
    text = text.replace("<head>", "<head>" + probe, 1).replace('<html lang="en">', f'<html lang="en" data-theme="{theme}">', 1)
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "page.html")
        copy.write_text(text, encoding="utf-8")
        for script in page.parent.glob("*.js"):
            shutil.copy(script, folder)
        dom = browse(browser, folder, framed(copy, width), max(width, NARROWEST), "--dump-dom", "--allow-file-access-from-files")
    found = re.search(r'<pre id="page-check">(.*?)</pre>', dom, re.S)
    unescaped = found and found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return json.loads(unescaped) if found else None


def framed(page, width):
    """The page, or one that shows it in a frame as narrow as is asked, and has its report afterwards."""
    if width >= NARROWEST:
        return page
    frame = page.with_name("frame.html")
    frame.write_text(
        f'<!DOCTYPE html><iframe src="{page.name}" style="width:{width}px;height:900px;border:0"></iframe><script>'
        "const timer = setInterval(() => { const found = document.querySelector('iframe').contentDocument.getElementById('page-check');"
        "if (found) { clearInterval(timer); document.body.append(found.cloneNode(true)); } }, 50);</script>",
        encoding="utf-8",
    )
    return frame


def defects(found):
    """Everything wrong with what was found, as sentences."""
    if not found["done"]:
        yield "the figures were not finished in time"
    yield from found["errors"]
    yield from (f"asked for {request}" for request in found["requests"] if not request.startswith("file://"))
    yield from found["violations"]
    if found["height"] > HEIGHT_MAX:
        yield f"longer than {HEIGHT_MAX} px: {found['height']} px"
    if found["scroll"] > found["width"] or found["wide"]:
        yield f"wider than the window of {found['width']} px: {found['scroll']} px, {', '.join(found['wide'])}"
    if len(found["drawings"]) != found["expected"]:
        yield f"{found['expected']} figures have {len(found['drawings'])} drawings"
    yield from (f"figure {name!r} is empty" for name in found["empty"])
    for figure in found["colours"]:
        if figure["repeated"]:
            yield f"figure {figure['name']!r} has several series in {', '.join(figure['repeated'])}"
    for drawing in found["drawings"]:
        if drawing["name"] in (None, "", "Vega visualization"):
            yield f"a figure's label {drawing['name']!r} does not say what it shows"
        if drawing["marks"] == 0:
            yield f"figure {drawing['name']!r} has no marks"
        if len(drawing["titles"]) < 2:
            yield f"figure {drawing['name']!r} has axis titles {drawing['titles']}, expected two"
        if 0 < drawing["marks"] and drawing["letters"] < LETTERS_MIN:
            yield f"figure {drawing['name']!r} has letters of {drawing['letters']} px"
        if drawing["width"] < 0.99 * drawing["natural"]:
            yield f"figure {drawing['name']!r} was shrunk from {drawing['natural']} to {drawing['width']} px"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("pages", type=pathlib.Path, nargs="+")
    arguments.add_argument("--screenshot", type=pathlib.Path, help="of the first page")
    arguments.add_argument("--width", type=int, action="append", help="of the window; 1280 when not given")
    arguments.add_argument("--theme", choices=["light", "dark"], action="append", help="light when not given")
    arguments.add_argument("--turns", action="store_true", help="each page at each width in one theme: the themes take turns over widths and pages")
    arguments.add_argument("--axe", type=pathlib.Path, help="axe-core's script")
    arguments.add_argument("--height", type=int, default=6000, help="of the screenshot")
    given = arguments.parse_args()
    browser = chromium()
    if browser is None:
        print("no chromium on PATH", file=sys.stderr)
        return 2
    axe = given.axe.read_text(encoding="utf-8") if given.axe else None
    widths, themes = given.width or [1280], given.theme or ["light"]
    cases = [
        (page.resolve(), width, theme)
        for (turn, page), (at, width), (of, theme) in itertools.product(enumerate(given.pages), enumerate(widths), enumerate(themes))
        if not given.turns or (turn + at + of) % len(themes) == 0
    ]
    with ThreadPoolExecutor(BROWSERS) as pool:
        everything = list(pool.map(lambda case: examine(browser, *case, axe), cases))
    failed = False
    for (page, width, theme), found in zip(cases, everything, strict=True):
        if found is None:
            print("chromium did not open the page", file=sys.stderr)
            return 2
        wrong = list(defects(found))
        failed |= bool(wrong)
        name = f"{page.name} at {width} px, {theme}"
        print("\n".join(f"{name}: {one}" for one in wrong) if wrong else f"fine: {name}: {len(found['drawings'])} figures, {found['rows']} claims, {found['height']} px")
    if given.screenshot:
        with tempfile.TemporaryDirectory() as folder:
            shot = f"--screenshot={given.screenshot.resolve()}"
            browse(browser, folder, given.pages[0].resolve(), widths[0], shot, f"--window-size={widths[0]},{given.height}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
