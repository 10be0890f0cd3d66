"""Text for a terminal: tables, items, and a console that depends only on its arguments.

Neither environment nor terminal is queried: width and colour are arguments. Foreign text never becomes markup.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.pages import format as fmt

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

NARROWEST = 40
HEIGHT = 25
"""Height of the console in lines; no output depends on it, but without it rich queries the terminal every time."""


def render_text(draw: Callable[[Console], None], *, width: int, color: bool) -> str:
    """Return as text what `draw` prints on a console that is `width` columns wide (at least 40)."""
    out = io.StringIO()
    console = _console_type()(
        file=out,
        width=max(width, NARROWEST),
        height=HEIGHT,
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    draw(console)
    lines = out.getvalue().replace(fmt.THIN, " ").replace("\xa0", " ").split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


@functools.cache
def _console_type() -> type[Console]:
    """Return a console class that escapes foreign text everywhere: in cells, titles and lines."""
    from rich.console import Console
    from rich.segment import Segment

    class VisibleConsole(Console):
        def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for found in super().render(renderable, options):
                yield found if found.control else Segment(fmt.text(found.text), found.style)

    return VisibleConsole


def table(
    title: str,
    left: Sequence[str],
    right: Sequence[str],
    *,
    narrowest: int = 15,
    padding: tuple[int, int] | tuple[int, int, int, int] = (0, 1),
) -> Any:
    """Return a table without borders: first the columns `left`, whose text wraps, then the right-aligned `right`."""
    from rich.table import Table

    made = Table(
        title=plain_text(title, "bold") if title else None,
        title_justify="left",
        box=None,
        pad_edge=False,
        padding=padding,
    )
    made.header_style = "dim"
    for name in left:
        made.add_column(name, overflow="fold", min_width=narrowest)
    for name in right:
        made.add_column(name, justify="right", no_wrap=True)
    return made


def are_plain(lines: Iterable[Sequence[str]]) -> bool:
    """Return True if each text is one line of printable characters that each take one column."""
    from rich.cells import cell_len

    whole = " ".join(" ".join(cells) for cells in lines).replace(fmt.THIN, " ").replace("\xa0", " ")
    return whole.isprintable() and (whole.isascii() or all(cell_len(sign) == 1 for sign in set(whole)))


def item(console: Console, sign: str, words: Text | str) -> None:
    """Print a sign, and beside it words that wrap with a hanging indentation."""
    from rich.table import Table

    text = words if isinstance(words, str) else words.plain
    if console.no_color and len(text) < console.width - 2 and are_plain([[sign, text]]):
        console.file.write(f"{sign} {text}\n")
        return
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    grid.add_row(sign, words)
    console.print(grid)


def plain_text(words: str, style: str = "") -> Text:
    """Return text without markup, whatever it contains."""
    from rich.text import Text

    return Text(words, style=style)
