#!/usr/bin/env python3
"""Draws a picture of WaveDrom as SVG. Needs the Python package wavedrom.

`draw.py FILE.json` writes FILE.svg beside it. The drawing keeps the text that it is made from in
its description, so that a test sees when the two differ.
"""

import argparse
import pathlib
import sys
import xml.sax.saxutils


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=pathlib.Path, help="WaveDrom's JSON")
    path = parser.parse_args().picture
    try:
        import wavedrom
    except ImportError:
        sys.exit("draw.py: the Python package wavedrom is missing: pip install wavedrom==2.0.3.post3")
    if path.suffix != ".json" or not path.is_file():
        parser.error(f"{path}: no such file of JSON")
    text = path.read_text(encoding="utf-8")
    drawing = wavedrom.render(text, strict_js_features=True).tostring()
    begin = drawing.index(">") + 1
    description = xml.sax.saxutils.escape(text)
    paper = '<rect width="100%" height="100%" fill="white"/>'
    drawing = f"{drawing[:begin]}<desc>{description}</desc>{paper}{drawing[begin:]}\n"
    path.with_suffix(".svg").write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
