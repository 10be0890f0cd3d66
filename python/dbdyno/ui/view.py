"""The result of a route: a page with its place in the navigation, its data, and the equivalent command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from dbdyno.base.json_types import TableRow
from dbdyno.page import Page
from dbdyno.pages import format as fmt

Link = tuple[str, str]
"""Text and address of a link."""


@dataclass(frozen=True)
class View:
    """A view of the web pages.

    Attributes:
        page: What is shown, for the renderer of reports.
        model: What JSON holds, and what SVG and PNG are drawn of unless there is a `picture`; None without either.
        picture: The model of the picture.
        rows: The rows for CSV and Arrow; None for the page's own.
        command: The command that gives the same on a terminal.
        trail: The links that lead here, from the first page down.
        widget: Name of a template that is shown above the page, with `extra` as its values.
        follows: What changes this view: `runs`, `stores`, `sums`; an open page is refreshed then.
        links: Links to neighbouring views.
        bare: True if the widget shows the head of the page itself.
        later: Address of a part that is read after the page, as it takes longer.
        waiting: What is shown in its place until then.
    """

    page: Page
    model: Mapping[str, Any] | None = None
    picture: Mapping[str, Any] | None = None
    rows: Callable[[], Sequence[TableRow]] | None = None
    command: str = ""
    trail: tuple[Link, ...] = ()
    widget: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)
    follows: str = ""
    links: tuple[Link, ...] = ()
    later: str = ""
    waiting: str = "Judging what happened in this interval…"
    bare: bool = False


def address(path: str, **query: str | int | None) -> str:
    """Return the address of a view; values that are None or empty are left out."""
    kept = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(kept)}" if kept else path


def without_figures(page: Page) -> Page:
    """Return a page without its figures, for a view that draws them elsewhere."""
    sections = tuple(replace(one, figures=()) for one in page.sections if one.name != "figures")
    return replace(page, sections=sections)


def shell_words(*words: object) -> str:
    """Return a command's words quoted for a shell; control characters are escaped, because they could act there."""
    import shlex

    return " ".join(shlex.quote(fmt.text(word)) for word in words)
