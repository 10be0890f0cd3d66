"""The options of all commands in one table, which docs/reference/options.md shows.

python tests/manners/options.py     # writes that page
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from dbdyno.cli.main import cli

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "options.md"
HEAD = """# Options

One name means one thing in every command. This table is made of the commands themselves by `tests/manners/options.py`.

| you give | option |
|---|---|
| a server | `--target` |
| the file to write | `-o`, `--output` |
| the run folder to make | `--out` |
| the folder that has the runs; the store that has the snapshots | `--runs`; `--store` |
| how long; how often | `--for`; `--every` |
| from when; until when | `--from`; `--to` |
| the output format; JSON | `--format`; `--json` |
| yes to a question; show what would happen | `--yes`; `--dry-run` |

Former names work for one version: `--dsn` (now `--target`), `--since` and `--until` (now `--from` and `--to`),
`--machine` of kept results (now `--ran-on`), and `move SOURCE --to TARGET` (now `move SOURCE TARGET`).
Commands that write a file and no run folder, such as `trace replay`, take `--out` for `--output`.

| option | commands |
|---|---|
"""


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its words, groups included."""

    def walk(command: click.Command, words: str) -> Iterator[tuple[str, click.Command]]:
        yield words, command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                if found is not None:
                    yield from walk(found, f"{words} {name}".strip())
        if words == "move":
            from dbdyno.cli.move.tables import command as out

            yield "move SOURCE TARGET", out

    yield from walk(cli, "")


def options() -> Iterator[tuple[str, click.Option]]:
    """Yield every option with the words of its command."""
    for words, command in commands():
        for one in command.params:
            if isinstance(one, click.Option):
                yield words, one


def page() -> str:
    """Return the page of all options."""
    found: dict[str, set[str]] = {}
    for words, option in options():
        names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
        found.setdefault(names, set()).add(words or "dbdyno")
    rows = [f"| {names} | {', '.join(sorted(where))} |" for names, where in found.items()]
    return HEAD + "\n".join(sorted(rows, key=lambda row: row.replace("-", "").lower())) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
