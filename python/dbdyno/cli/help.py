"""`dbdyno help`: topics that concern many commands, and the help of any command."""

from __future__ import annotations

import click

from dbdyno.base.errors import Error
from dbdyno.cli.main import LazyGroup

TOPICS = {
    "targets": (
        "How a server, a model or a set of cells is named.",
        """\
postgresql://user@host:5432/db    a PostgreSQL; also key=value, PG* variables, service files, ~/.pgpass
mariadb://user@host:3306/db       a MariaDB
oracle://user@host:1521/service   an Oracle database (move, snap; password in ORACLE_PASSWORD)
cassandra://host/keyspace         a Cassandra (move, wide)
embedded, mariadb                 a server that dbdyno starts in a temporary folder and removes
model:NAME, model:FILE.toml       a machine in virtual time (dbdyno model list)
cells:HOST1,HOST2                 storage cells over SSH

Keep passwords in PGPASSWORD, ~/.pgpass or MYSQL_PWD. They never reach evidence, logs or reports.""",
    ),
    "times": (
        "How times, durations and sizes are written.",
        """\
a duration    500ms, 5s, 2min, 1h, 7d            --for, --every, slice = "250ms"
a time        2026-11-28, 2026-11-28T10:00       UTC, unless it has a zone: 2026-11-28T10:00+01:00
a period      snap:1..12, snap:2026-11-28T10:00..2026-11-28T11:00, a baseline's name
a size        64MB, 1.5GiB, 50MB/s""",
    ),
    "output": (
        "Formats, files and what goes where.",
        """\
Data goes to stdout; progress, warnings and errors go to stderr.
--format table|csv|json|jsonl|arrow|html|markdown, whichever the command offers; --json is --format json.
-o FILE, --output FILE: the suffix selects the format: report.html, rows.csv, rows.arrow.
Tables for people have three or four digits; CSV and JSON have all of them.
--csv-safe protects spreadsheets from text that they would read as a formula.""",
    ),
    "exit-codes": (
        "What the exit code says.",
        """\
0      done; nothing was found
1      done, and something was found: no verdict, slower (of compare), a failed check, other answers
2      an error; the message says what was expected, what was found and the next step
130    interrupted

`dbdyno run --fail-on slower|cannot-tell|gate` selects what makes a run fail.""",
    ),
    "files": (
        "Where dbdyno keeps what it records.",
        """\
runs/     run folders: manifest, blocks, calls, waits, metrics, analysis.json, report.html
snaps/    snapshots, packed hours, sums, baselines, plans
jobs/     ledgers of moves
Any Parquet reader opens them; `dbdyno sql` asks a run by SQL. Folders are readable by their owner only,
unless --share was given. See docs/reference/evidence.md.""",
    ),
    "verdicts": ("What the words of a verdict mean.", ""),
}


@click.command("help")
@click.argument("words", nargs=-1, metavar="[TOPIC|COMMAND...]")
def command(words: tuple[str, ...]) -> None:
    """Show a topic, or the help of a command; without an argument, list the topics.

    \b
    dbdyno help targets
    dbdyno help snap report
    """
    if not words:
        width = max(map(len, TOPICS))
        click.echo("Topics:")
        for name, (meaning, _) in TOPICS.items():
            click.echo(f"  {name:<{width}}  {meaning}")
        click.echo("\n`dbdyno help TOPIC` shows one; `dbdyno --help` lists the commands.")
    elif len(words) == 1 and words[0] in TOPICS:
        meaning, text = TOPICS[words[0]]
        click.echo(f"{meaning}\n\n{text or _verdicts()}")
    else:
        click.echo(_help_of(words))


def _verdicts() -> str:
    from dbdyno.base.decisions import DECISIONS

    width = max(len(one.word) for one in DECISIONS.values())
    rows = [f"{one.word:<{width}}  {one.when}" for one in DECISIONS.values()]
    return "\n".join([*rows, "", "The unit of inference is the block. See docs/explanation/method.md."])


def _help_of(words: tuple[str, ...]) -> str:
    """Return the help of a command.

    Raises:
        Error: no topic and no command has this name.
    """
    from dbdyno.cli.main import cli

    found: click.Command = cli
    context = click.Context(cli, info_name="dbdyno")
    for word in words:
        inner = found.get_command(context, word) if isinstance(found, LazyGroup | click.Group) else None
        if inner is None:
            raise Error(
                f"there is neither a topic nor a command named {' '.join(words)!r}",
                next_step=f"use one of the topics {', '.join(TOPICS)}, or list the commands with `dbdyno --help`",
            )
        found, context = inner, click.Context(inner, info_name=word, parent=context)
    return found.get_help(context)
