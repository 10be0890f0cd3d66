"""`dbdyno move`: copy tables to files exactly, with jobs that can always be resumed; one file per command.

`dbdyno move SOURCE --to ...` has no verb: a first argument that is not a verb is the source.
"""

from __future__ import annotations

from typing import ClassVar

import click

from dbdyno.cli.main import LazyGroup

ROWS = {
    "status": ("dbdyno.cli.move.status", "What a job has finished."),
    "resume": ("dbdyno.cli.move.resume", "Go on with a job that was ended."),
    "verify": ("dbdyno.cli.move.verify", "Read the files of a job again and compare."),
    "abort": ("dbdyno.cli.move.abort", "Give a job up and remove its files."),
}
OUT = "SOURCE"


class _MoveGroup(LazyGroup):
    rows: ClassVar[dict[str, tuple[str, str]]] = ROWS

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in self.rows:
            return super().resolve_command(ctx, args)
        from dbdyno.cli.move.out import command as out

        return OUT, out, args


@click.group(
    "move",
    cls=_MoveGroup,
    subcommand_metavar="SOURCE --to FOLDER [OPTIONS] | VERB JOB",
    epilog="Options of a move: `dbdyno move SOURCE --help`.",
)
def command() -> None:
    """Move tables, exactly: one snapshot for all workers, a ledger that survives any kill, a proof at the end.

    SOURCE is a connection string, JOB the folder that a move wrote:

    dbdyno move postgresql://me@db1/shop --table sales.orders --to orders/
    """
