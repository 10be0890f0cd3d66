"""Escaping of control characters in foreign text: no text of a server, file or trace reaches a terminal as a command.

    \\x1b]0;title\\x07      ->  the characters \\x1b]0;title\\x07
    U+202E (right to left)  ->  \\u202e

This is done in one place for all commands: `escape_output` replaces stdout and stderr by a stream that writes only
escaped text. Our own colours and screens are written to `unwrap(stream)`, by code that has already escaped the foreign
text; so are data (CSV, JSON) for a file or a pipe, which are written unchanged.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

# C0 and C1 controls, bidirectional overrides, zero-width characters, line separators, lone surrogates: characters that
# could hide, reorder or forge text on a terminal or a page, or that XML parsers reject.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_SPACES = re.compile(r"\s+")


def escape_text(value: object) -> str:
    """Return foreign text with control and direction characters replaced by escapes such as `\\x1b` and `\\u202e`.

    Line feeds and tabs are kept. The caller still has to escape the result for HTML or for the terminal's markup.
    """
    plain = str(value)
    if plain.isascii() and plain.isprintable():  # the most frequent case, much faster than the search below
        return plain
    return _UNSAFE.sub(_escape_of, plain.replace("\r\n", "\n"))


def escape_line(value: object, longest: int | None = None) -> str:
    """Return foreign text as one line: escaped like `escape_text`, white space folded, cut to `longest` characters."""
    folded = _SPACES.sub(" ", escape_text(value)).strip()
    if longest is not None and len(folded) > longest:
        return folded[: longest - 1] + "…"
    return folded


def _escape_of(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class EscapingStream:
    """A text stream that escapes everything written to it; its other attributes come from the wrapped stream."""

    def __init__(self, behind: TextIO) -> None:
        self.behind = behind

    def write(self, value: str) -> int:
        """Write the text, escaped, and return the length of the original text.

        Raises:
            TypeError: the value is not a str, as with any text stream.
        """
        if not isinstance(value, str):
            raise TypeError(f"write() argument must be str, not {type(value).__name__}")
        self.behind.write(escape_text(value))
        return len(value)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each line, escaped."""
        for each in lines:
            self.write(each)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


def escape_output() -> None:
    """Replace stdout and stderr by streams that write only escaped text."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, EscapingStream):
            setattr(sys, name, EscapingStream(stream))


def unwrap_stream(stream: TextIO) -> TextIO:
    """Return the unwrapped stream, for dbdyno's own output: colours, screens, data in a pipe."""
    found = cast(object, stream)
    return found.behind if isinstance(found, EscapingStream) else stream
