"""Numbers that stay whole where a line breaks: `7.6 %`, `-3 ms` and `2026-11-23` are never torn apart in a page, nor is
an identifier of 15 digits or more, whose minus stays one that can be typed. A path of a file breaks behind its slashes
and colons; at the head of a row, which is narrow, a name of 20 letters or more behind its underscores and dots.

Text that a reader may copy as code (`code`, `pre`, scripts, drawings) is left as it is.
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


def unbroken(page: str) -> str:
    """The page with no-break spaces between numbers and their units, minus signs that stick, whole dates, and paths
    that break."""
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
    """How a tag changes the depth inside what is left alone."""
    named = _TAG.match(tag)
    if named is None or named[2].lower() not in _LEFT_ALONE or tag.endswith("/>"):
        return 0
    return -1 if named[1] else 1
