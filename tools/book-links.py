"""A preprocessor of mdBook: links that leave docs lead to the repository instead."""

import json
import posixpath
import re
import sys

REPOSITORY = "https://github.com/rackweave/rackweave/blob/main/"


def outward(page, target):
    """Returns the web address of `target` if it leaves docs, as seen from `page`."""
    path, _, anchor = target.partition("#")
    place = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), path))
    if "://" in target or not path or place.startswith("docs/"):
        return target
    return REPOSITORY + place + ("#" + anchor if anchor else "")


def visit(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            page = chapter["path"] or ""
            link = lambda match: "](" + outward(page, match[1]) + ")"
            chapter["content"] = re.sub(r"\]\(([^)\s]+)\)", link, chapter["content"])
            visit(chapter["sub_items"])


if sys.argv[1:2] == ["supports"]:
    sys.exit(0)
_, book = json.load(sys.stdin)
visit(book.get("items") or book.get("sections"))
json.dump(book, sys.stdout)
