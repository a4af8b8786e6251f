#!/usr/bin/env python3
"""Opens a page of `rackweave reproduce` in headless Chromium, without a network, and checks what a reader would see.

    tests/page/check.py PAGE.html [--screenshot SHOT.png] [--width 1280]

It fails when a figure was not drawn (empty, no marks, or an axis without a title), when two series of one share a colour, when the console got an error, when anything
asked for the network or was refused by the page's policy, or when something is wider than the window.
Exit status: 0 fine, 1 defects (one a line), 2 no Chromium or it did not start.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

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
             width: svg ? Math.round(svg.getBoundingClientRect().width) : 0, natural: svg ? Number(svg.getAttribute("width")) : 0 };
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
    return { name: place.parentElement.querySelector("h3").textContent, repeated: [...found] };
  };
  const empty = () => [...document.querySelectorAll("figure")].filter(figure => figure.querySelector("p.notice"))
    .map(figure => figure.querySelector("h3").textContent);
  const wide = () => [...document.body.querySelectorAll("*")]
    .filter(element => element.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !scrolls(element))
    .map(element => element.tagName + "." + (element.getAttribute("class") || "")).slice(0, 5);
  const report = () => {
    const found = {
      done: document.documentElement.dataset.figures === "done" || !document.querySelector("script.specification"),
      errors, width: document.documentElement.clientWidth, scroll: document.documentElement.scrollWidth, wide: wide(),
      requests: performance.getEntriesByType("resource").map(entry => entry.name),
      expected: document.querySelectorAll("script.specification").length,
      empty: empty(), colours: [...document.querySelectorAll("script.specification")].map(colours),
      drawings: [...document.querySelectorAll(".drawing")].map(drawing),
      rows: document.querySelectorAll("table.claims tbody tr").length,
    };
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


def chromium():
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


def browse(browser, folder, page, width, *more):
    """Opens `page` in a profile of its own and returns what Chromium prints."""
    command = [browser, *FLAGS, f"--user-data-dir={folder}/profile", f"--window-size={width},900", *more, page.as_uri()]
    return subprocess.run(command, capture_output=True, timeout=240, check=False).stdout.decode("utf-8", "replace")


def examine(browser, page, width):
    """What the probe found in `page`, or None when Chromium did not get so far."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "page.html")
        copy.write_text(text.replace("<head>", "<head>" + PROBE, 1), encoding="utf-8")
        dom = browse(browser, folder, copy, width, "--dump-dom")
    found = re.search(r'<pre id="page-check">(.*?)</pre>', dom, re.S)
    unescaped = found and found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return json.loads(unescaped) if found else None


def defects(found):
    """Everything wrong with what was found, as sentences."""
    if not found["done"]:
        yield "the figures were not finished in time"
    yield from found["errors"]
    yield from (f"asked for {request}" for request in found["requests"])
    if found["scroll"] > found["width"] or found["wide"]:
        yield f"wider than the window of {found['width']} px: {found['scroll']} px, {', '.join(found['wide'])}"
    if len(found["drawings"]) != found["expected"]:
        yield f"{found['expected']} figures have {len(found['drawings'])} drawings"
    yield from (f"figure {name!r} is empty" for name in found["empty"])
    for figure in found["colours"]:
        if figure["repeated"]:
            yield f"figure {figure['name']!r} has several series in {', '.join(figure['repeated'])}"
    for drawing in found["drawings"]:
        if drawing["marks"] == 0:
            yield f"figure {drawing['name']!r} has no marks"
        if len(drawing["titles"]) < 2:
            yield f"figure {drawing['name']!r} has axis titles {drawing['titles']}, expected two"
        if drawing["width"] < 0.9 * drawing["natural"]:
            yield f"figure {drawing['name']!r} was shrunk from {drawing['natural']} to {drawing['width']} px"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("page", type=pathlib.Path)
    arguments.add_argument("--screenshot", type=pathlib.Path)
    arguments.add_argument("--width", type=int, default=1280)
    arguments.add_argument("--height", type=int, default=6000, help="of the screenshot")
    given = arguments.parse_args()
    browser = chromium()
    if browser is None:
        print("no chromium on PATH", file=sys.stderr)
        return 2
    found = examine(browser, given.page.resolve(), given.width)
    if found is None:
        print("chromium did not open the page", file=sys.stderr)
        return 2
    if given.screenshot:
        with tempfile.TemporaryDirectory() as folder:
            shot = f"--screenshot={given.screenshot.resolve()}"
            browse(browser, folder, given.page.resolve(), given.width, shot, f"--window-size={given.width},{given.height}")
    wrong = list(defects(found))
    print("\n".join(wrong) if wrong else f"fine: {len(found['drawings'])} figures, {found['rows']} claims, {found['width']} px")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
