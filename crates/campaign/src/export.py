import pathlib
import sys

import vl_convert

VERSION = "6.4"
for name in sys.argv[1:]:
    file = pathlib.Path(name)
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".svg":
        file.with_suffix(".png").write_bytes(vl_convert.svg_to_png(text, scale=2))
        file.with_suffix(".pdf").write_bytes(vl_convert.svg_to_pdf(text))
        continue
    stem = file.name.removesuffix(".vl.json")
    file.with_name(stem + ".svg").write_text(vl_convert.vegalite_to_svg(text, vl_version=VERSION), encoding="utf-8")
    file.with_name(stem + ".png").write_bytes(vl_convert.vegalite_to_png(text, vl_version=VERSION, scale=2))
    file.with_name(stem + ".pdf").write_bytes(vl_convert.vegalite_to_pdf(text, vl_version=VERSION))
