"""Line breaks of an HTML page: none within numbers, dates and identifiers, but allowed within long paths and names.

`7.6 %`, `-3 ms` and `2026-11-23` are never broken, nor is an identifier of 15 digits or more, whose minus stays an
ASCII hyphen that can be typed. A file path may break after its slashes and colons. In a row's heading, which is narrow,
a name of 20 letters or more may break after underscores and dots.

Text that a reader may copy as code (`code`, `pre`, scripts, drawings) is left unchanged.
"""

from __future__ import annotations

import re

_PART = re.compile(r"<[^<>]*>|[^<]+|<")
_LEFT_ALONE = {"code", "pre", "script", "style", "svg", "title"}
_TAG = re.compile(r"<(/?)([a-zA-Z0-9]+)")
_AMOUNT = re.compile(r"(?<=\d) (?=(?:%|ns|µs|us|ms|s|min|h|days?|B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB|times)(?![\w]))")
_BETWEEN_NUMBERS = re.compile(r"(?<=\d) (?=\d{3}(?!\d))")
_PATH = re.compile(r"(?<![^\s(])/(?:[\w.@-]+/)+[\w.@:-]+")
_DATE = re.compile(r"(?<![\w/.-])\d{4}-\d\d-\d\d(?![\w/-])")
_JOINT = re.compile(r"(?<=\w)[/:](?=\w)")
_IDENTIFIER = re.compile(r"(?<![\w.-])-?\d{15,}(?![\w.])")
_NAME = re.compile(r"(?<![\w/.])(?=[\w.]*[A-Za-z])(?=\w*[_.])\w[\w.]{18,}\w(?![\w/])")
_WORD_ENDS = re.compile(r"[_.](?=\w)")
_MINUS = re.compile(r"(?<![\w.)\]/-])-(?=\d)(?!\d{15})")


def add_no_break_spaces(page: str) -> str:
    """Return the page with no-break spaces before units, true minus signs, unbroken dates, and breakable paths."""
    parts = []
    inside = 0
    headed = False
    for found in _PART.finditer(page):
        part = found.group()
        if part.startswith("<"):
            inside += _step(part)
            headed = part.startswith("<th")
        elif not inside:
            part = _PATH.sub(_breakable, part)
            part = _MINUS.sub(
                "\N{MINUS SIGN}", _BETWEEN_NUMBERS.sub("\N{NO-BREAK SPACE}", _AMOUNT.sub("\N{NO-BREAK SPACE}", part))
            )
            part = _NAME.sub(_by_words, part) if headed else part
            part = _IDENTIFIER.sub(r'<span class="whole">\g<0></span>', part)
            part = _DATE.sub(r'<span class="whole">\g<0></span>', part)
        parts.append(part)
    return "".join(parts)


def _breakable(path: re.Match[str]) -> str:
    return _JOINT.sub(lambda joint: f"{joint.group()}<wbr>", path.group())


def _by_words(name: re.Match[str]) -> str:
    return _WORD_ENDS.sub(r"\g<0><wbr>", name.group())


def _step(tag: str) -> int:
    """Return by how much a tag changes the nesting depth of elements whose text is left unchanged: 1, -1 or 0."""
    named = _TAG.match(tag)
    if named is None or named[2].lower() not in _LEFT_ALONE or tag.endswith("/>"):
        return 0
    return -1 if named[1] else 1
