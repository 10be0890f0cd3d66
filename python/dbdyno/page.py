"""What a page says, whatever it is about: the contract between who judges and who renders.

A page is a head and sections; a section has words, tables, figures and findings, and may have parts
of its own. Values are raw and have a unit; a renderer words and draws them and knows no kind of page.

    >>> rate = Column("rate", "per second", "per_s")
    >>> table = Table("Load", (Column("name", "", "text"), rate), (Row({"name": "reads", "rate": 12.5}),))
    >>> Page(Head("Report", "one server"), (Section("load", "Load", tables=(table,)),)).sections[0].name
    'load'

Units: `text`, `code` (text set as code), `count`, `digits` (all there are), `number` and `quantity` (the
row's own `unit`), `number2` to `number4` (that many digits), `per_s`, `ratio` (1.0 is the whole), `share` (one
decimal), `percent`, `ns`, `ns4`, `seconds` (all microseconds), `difference` (ns with a sign), `span` (seconds),
`bytes`, `bytes_per_s`, `aas`, `time` (microseconds since 1970), `change` (a ratio as a signed change), `times`,
`p`, `log10_p`, `mb`, `words` (text that stands to the right).
Kinds of columns beside `value`: `bar` (a share of 1), `side` (-1 to 1), `heights` (a small bar each),
`spark` (a line over time), `strip` (an estimate with its interval), `verdict` (a word with a tone).
Tones: `good`, `bad`, `even`, `doubt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SCHEMA = 1
Tone = Literal["", "good", "bad", "even", "doubt"]
Kind = Literal["value", "bar", "side", "heights", "spark", "strip", "verdict"]
Where = Literal["both", "page", "text"]
BY_ROW = ("number", "quantity")
"""Units of columns whose values have the unit of their row."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name in rows, its label, its unit. `least` is the width of a terminal from which on it
    is shown (`where="page"`: never), `narrowest` how narrow it may fold; `help` explains the label."""

    name: str
    label: str
    unit: str = "text"
    kind: Kind = "value"
    help: str = ""
    where: Where = "both"
    least: int = 0
    narrowest: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """A value with more than itself: another unit than its column's, notes below it, a tone, a link to another
    part of the page, a tag, or the series (an arm) whose colour it has. `lead` is a tree's branch before it."""

    value: Any = None
    unit: str = ""
    notes: tuple[str, ...] = ()
    code: str = ""
    tone: Tone = ""
    href: str = ""
    tag: str = ""
    series: int | None = None
    lead: str = ""
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Strip:
    """An estimate with its interval, as ratios; `reach` is the logarithm at either end of the strip, `band` what is
    too small to matter."""

    ratio: float
    low: float | None
    high: float | None
    reach: float
    band: float | None = None
    tone: Tone = "even"


@dataclass(frozen=True, slots=True)
class Row:
    """A row: values or `Cell`s by column. A `verdict` marks a row that is not as the others, `why` says why."""

    cells: Mapping[str, Any]
    verdict: str = ""
    why: str = ""
    style: Literal["", "sum", "dim"] = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows. `most` rows are shown on a terminal, `left_out` are on no page; `folded` is the line that
    a reader opens to see it."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    left_out: int = 0
    most: int | None = None
    where: Where = "both"
    look: str = ""
    headed: bool = True
    note: str = ""
    folded: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing: its kind is a file of `report/figures`, its data what that file draws."""

    kind: str
    data: Mapping[str, Any] = field(repr=False)
    where: Where = "both"


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence, how much it weighs, and what it rests on; `name` and `word` stand before it, `next` is a step."""

    sentence: str
    weight: Tone = "doubt"
    evidence: tuple[str, ...] = ()
    next: str = ""
    name: str = ""
    word: str = ""
    code: str = ""
    where: Where = "both"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page; `most` of its findings that are no checks are shown on a terminal.

    `rest` makes the parts behind `parts` that a terminal does not show: with ten thousand statements
    they are most of the work.
    """

    name: str
    title: str
    lead: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    text: str = ""
    text_title: str = ""
    parts: tuple[Section, ...] = ()
    rest: Callable[[], Iterable[Section]] = tuple
    most: int | None = None
    where: Where = "both"
    folded: str = ""
    share: float | None = None
    tone: Tone = ""
    word: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """What comes first. `headline` is the finding, and the largest on a page; without one it is the `title`, the name
    of what the page is about. `word` is the answer in a word, `sentences` what it rests on, `next` what to do."""

    kind: str
    title: str
    name: str = "summary"
    about: str = ""
    question: str = ""
    word: str = ""
    tone: Tone = ""
    headline: str = ""
    sentences: tuple[str, ...] = ()
    next: str = ""
    chips: tuple[str, ...] = ()
    alerts: tuple[tuple[str, str], ...] = ()
    section: str = "Summary"


@dataclass(frozen=True, slots=True)
class Page:
    """A page. `series` are the names of what has colours (arms), `baseline` the place of the one that the others are
    compared with; `data` is what CSV holds where that is not every table; `source` is what it was made of."""

    head: Head
    sections: tuple[Section, ...]
    series: tuple[str, ...] = ()
    baseline: int | None = None
    data: Callable[[], Table] | None = None
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)
    foot: tuple[str, ...] = ()
    capitals: bool = False
    """Headings of its sections stand in capitals on a terminal."""
    schema: int = SCHEMA
