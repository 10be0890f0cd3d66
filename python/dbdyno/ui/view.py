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
        page: The page to show, for the renderer of reports.
        model: The model that is written as JSON and, unless there is a `picture`, drawn as SVG and PNG; None if the
            view offers none of these.
        picture: The model that is drawn as SVG and PNG.
        rows: The rows for CSV and Arrow; None means the page's own rows.
        command: The command that shows the same on a terminal.
        trail: The links that lead to this view, beginning with the first page.
        widget: Name of a template that is shown above the page, with `extra` as its values.
        follows: What changes this view: `runs`, `stores`, `sums`; an open page is refreshed then.
        links: Links to neighbouring views.
        bare: True if the widget shows the head of the page itself.
        later: Address of a part that is loaded after the page, because it takes longer.
        waiting: What is shown in place of that part until then.
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
