"""Answers as CellCLI prints them: rows, DETAIL, XML.

    \t FL_IO_W      \t FLASHLOG\t 551,342 IO requests          a row: no header, no types
    \t name:        \t cell01_FLASHLOG                          DETAIL: a line an attribute
    <metric><name>FL_IO_W</name>...</metric>                    -xml: nothing rounded

What CellCLI prints behind the last column is not known here: nothing is.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from dbdyno_rig.things import NOTHING, TAGS, Thing


def rows(things: Sequence[Thing], columns: Sequence[str]) -> str:
    """A row each, columns padded to the widest but for the last."""
    table = [[_flat(thing.get(column, NOTHING).text) for column in columns] for thing in things]
    if not table:
        return ""
    widths = [max(len(row[at]) for row in table) for at in range(len(columns) - 1)]
    return "".join(
        "".join(f"\t {text:<{width}}" for text, width in zip(row, [*widths, 0], strict=True)) + "\n" for row in table
    )


def detail(things: Sequence[Thing], columns: Sequence[str]) -> str:
    """An attribute a line, objects apart by an empty line, further lines of a value indented."""
    width = max((len(column) for column in columns), default=0) + 4
    blocks = []
    for thing in things:
        lines = []
        for column in columns:
            first, *more = thing.get(column, NOTHING).text.split("\n")
            lines.append(f"\t {f'{column}:':<{width}}\t {first}".rstrip() + "\n")
            lines += [f"\t {'':<{width}}\t {line}\n" for line in more]
        blocks.append("".join(lines))
    return "\n".join(blocks)


def xml(things: Sequence[Thing], columns: Sequence[str], kind: str, cell: str, started_ms: int) -> str:
    """A document with the name of the cell and the time at which its service began."""
    tag = TAGS.get(kind, kind)
    lines = [_head(cell, started_ms)]
    for thing in things:
        lines.append(f"<{tag}>")
        for column in columns:
            value = thing.get(column, NOTHING).xml
            lines.append(f"<{column}>{escape(value)}</{column}>" if value else f"<{column}/>")
        lines.append(f"</{tag}>")
    return "\n".join([*lines, "</cli-output>\n"])


def xml_error(words: str, cell: str, started_ms: int) -> str:
    """An error as a document."""
    return f"{_head(cell, started_ms)}\n<error>{escape(words)}</error>\n</cli-output>\n"


def _head(cell: str, started_ms: int) -> str:
    context = f'<context cell={quoteattr(cell)} realm="" ossStartTimestamp="{started_ms}"/>'
    return f'<?xml version="1.0" encoding="utf-8" ?>\n<cli-output>\n{context}'


def _flat(text: str) -> str:
    return text.replace("\n", " ")
