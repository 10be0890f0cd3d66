"""Data model of a page, whatever its subject: the contract between the code that judges and the code that renders.

A page is a head and sections; a section has sentences, tables, figures and findings, and may have parts, which are
sections again. Values are raw and have a unit; a renderer formats and draws them and does not depend on the kind of
page.

    >>> rate = Column("rate", "per second", "per_s")
    >>> table = Table("Load", (Column("name", "", "text"), rate), (Row({"name": "reads", "rate": 12.5}),))
    >>> Page(Head("Report", "one server"), (Section("load", "Load", tables=(table,)),)).sections[0].name
    'load'

Units: `text`, `code` (text set as code), `count`, `digits` (a number with all its digits), `number` and `quantity` (in
the `unit` of the row), `number2` to `number4` (that number of digits), `per_s`, `ratio` (1.0 is the whole), `share`
(one decimal), `percent`, `ns`, `ns4`, `seconds` (with all microseconds), `difference` (ns with a sign), `span`
(seconds), `bytes`, `bytes_per_s`, `aas`, `time` (microseconds since 1970), `change` (a ratio as a signed change),
`times`, `p`, `log10_p`, `mb`, `words` (right-aligned text). Kinds of columns besides `value`: `bar` (a share of 1),
`side` (-1 to 1), `heights` (a small bar for each value), `spark` (a line over time), `strip` (an estimate with its
interval), `verdict` (a word with a tone). Tones: `good`, `bad`, `even`, `doubt`.
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
"""Column units whose values have the unit of their row."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name in the rows, its label and its unit.

    `least` is the minimum width of a terminal on which it is shown (`where="page"`: never shown on a terminal);
    `narrowest` is the minimum width that it may be folded to; `help` explains the label.
    """

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
    """A value with additional attributes for its display.

    These are a unit other than its column's, notes below it, a tone, a link to another part of the page, a tag, or the
    series (an arm) whose colour it has. `lead` holds the branch characters of a tree in front of it.
    """

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
    """An estimate with its interval, as ratios.

    `reach` is the logarithm of the ratio at both ends of the strip's axis; within `band` a difference is too small to
    matter.
    """

    ratio: float
    low: float | None
    high: float | None
    reach: float
    band: float | None = None
    tone: Tone = "even"


@dataclass(frozen=True, slots=True)
class Row:
    """A row: values or `Cell`s by column name.

    A `verdict` marks a row that is out of the ordinary; `why` gives the reason.
    """

    cells: Mapping[str, Any]
    verdict: str = ""
    why: str = ""
    style: Literal["", "sum", "dim"] = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: columns and rows.

    A terminal shows the first `most` rows; `left_out` rows are on no page. `folded` is the line that a reader opens to
    see the table.
    """

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
    """A drawing: `kind` names a file of `report/figures`, `data` is what that file draws."""

    kind: str
    data: Mapping[str, Any] = field(repr=False)
    where: Where = "both"


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence, its weight and its evidence; `name` and `word` are printed before it, `next` is the next step."""

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
    """A part of a page; a terminal shows at most `most` of its findings, not counting checks.

    `rest` creates the parts that follow `parts` and that a terminal does not show: with ten thousand statements,
    creating them is most of the work.
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
    """The first part of a page.

    `headline` is the finding and the largest text on the page; without it the `title`, the name of the subject, takes
    its place. `word` is the answer in one word, `sentences` are the grounds for it, `next` is what to do.
    """

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
    """A page.

    `series` are the names of the items that have colours (arms); `baseline` is the index of the one that the others are
    compared with. `data` returns the table for CSV output; without it, CSV output has all tables. `source` is the model
    that the page was built from.
    """

    head: Head
    sections: tuple[Section, ...]
    series: tuple[str, ...] = ()
    baseline: int | None = None
    data: Callable[[], Table] | None = None
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)
    foot: tuple[str, ...] = ()
    capitals: bool = False
    """True to print the headings of the page's sections in capitals on a terminal."""
    schema: int = SCHEMA
