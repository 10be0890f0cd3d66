"""Foreign text made visible: what a server, a file or a trace says reaches no terminal as a command.

    \\x1b]0;title\\x07      ->  the characters \\x1b]0;title\\x07
    U+202E (right to left)  ->  \\u202e

One place for all commands: `install` puts a stream in the place of stdout and stderr that writes nothing else. Our own
colours and screens are drawn on `own(stream)`, by code that has made foreign text visible before; so is data (CSV,
JSON) that goes to a file or a pipe, where it stays as it is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

# C0 and C1 controls, bidirectional overrides, zero-width characters, line separators, lone surrogates: what could
# hide, reorder or forge text on a terminal or a page, or what no XML parser takes.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_SPACES = re.compile(r"\s+")


def text(value: object) -> str:
    """Foreign text made safe: control and direction characters become `\\x1b`, `\\u202e`.

    Line feeds and tabs stay. Escaping for HTML or a terminal's markup is the caller's, on top.
    """
    plain = str(value)
    if plain.isascii() and plain.isprintable():  # most of it, and much faster than looking for what is not
        return plain
    return _UNSAFE.sub(_named, plain.replace("\r\n", "\n"))


def line(value: object, longest: int | None = None) -> str:
    """Foreign text on one line: as `text`, white space folded, cut to `longest` characters."""
    folded = _SPACES.sub(" ", text(value)).strip()
    if longest is not None and len(folded) > longest:
        return folded[: longest - 1] + "…"
    return folded


def _named(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class VisibleStream:
    """A text stream that writes what it is given as `text`; all else is the stream's behind it."""

    def __init__(self, behind: TextIO) -> None:
        self.behind = behind

    def write(self, value: str) -> int:
        """Writes text; raises TypeError for bytes, as any text stream does."""
        if not isinstance(value, str):
            raise TypeError(f"write() argument must be str, not {type(value).__name__}")
        self.behind.write(text(value))
        return len(value)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes each."""
        for each in lines:
            self.write(each)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


def install() -> None:
    """Makes stdout and stderr write visible text alone, from now on."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, VisibleStream):
            setattr(sys, name, VisibleStream(stream))


def own(stream: TextIO) -> TextIO:
    """The stream itself, for what is ours: colours, screens, data in a pipe."""
    found = cast(object, stream)
    return found.behind if isinstance(found, VisibleStream) else stream
