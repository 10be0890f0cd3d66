"""Answers in CellCLI's output formats: rows, DETAIL, XML.

    \t FL_IO_W      \t FLASHLOG\t 551,342 IO requests          a row: no header, no types
    \t name:        \t cell01_FLASHLOG                          DETAIL: one line per attribute
    <metric><name>FL_IO_W</name>...</metric>                    -xml: nothing rounded

It is unknown whether CellCLI prints something after the last column; nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from dbdyno_rig.objects import NOTHING, TAGS, ListedObject


def rows(things: Sequence[ListedObject], columns: Sequence[str]) -> str:
    """Return one row per object, with all columns but the last padded to their maximum width."""
    table = [[_flat(thing.get(column, NOTHING).text) for column in columns] for thing in things]
    if not table:
        return ""
    widths = [max(len(row[at]) for row in table) for at in range(len(columns) - 1)]
    return "".join(
        "".join(f"\t {text:<{width}}" for text, width in zip(row, [*widths, 0], strict=True)) + "\n" for row in table
    )


def detail(things: Sequence[ListedObject], columns: Sequence[str]) -> str:
    """Return one attribute per line; an empty line separates objects, and further lines of a value are indented."""
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


def xml(things: Sequence[ListedObject], columns: Sequence[str], kind: str, cell: str, started_ms: int) -> str:
    """Return the objects as an XML document, with the cell's name and the start time of its service [ms since 1970]."""
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
    """Return an error as an XML document."""
    return f"{_head(cell, started_ms)}\n<error>{escape(words)}</error>\n</cli-output>\n"


def _head(cell: str, started_ms: int) -> str:
    context = f'<context cell={quoteattr(cell)} realm="" ossStartTimestamp="{started_ms}"/>'
    return f'<?xml version="1.0" encoding="utf-8" ?>\n<cli-output>\n{context}'


def _flat(text: str) -> str:
    return text.replace("\n", " ")
