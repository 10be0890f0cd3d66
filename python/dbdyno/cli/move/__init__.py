"""`dbdyno move`: copy tables to files exactly, with jobs that can always be resumed; one file per command.

`dbdyno move SOURCE TARGET` has no verb: a first argument that is not a verb is the source.
"""

from __future__ import annotations

import click

from dbdyno.cli.main import LazyGroup, current_names

ROWS = {
    "status": "What a job has finished.",
    "resume": "Resume a job that was interrupted.",
    "verify": "Read the files of a job again and compare.",
    "abort": "Abort a job and remove its files.",
}
OUT = "SOURCE"


class _MoveGroup(LazyGroup):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in self.rows:
            return super().resolve_command(ctx, args)
        from dbdyno.cli.move.tables import command as out

        return OUT, out, current_names(out, _places(args))


def _places(args: list[str]) -> list[str]:
    """Return the arguments, with the value of --to (the former option for the target) moved to follow the source."""
    for place, word in enumerate(args):
        name, sign, value = word.partition("=")
        if name == "--to" and (sign or place + 1 < len(args)):
            rest = args[:place] + args[place + (1 if sign else 2) :]
            return [*rest[:1], value if sign else args[place + 1], *rest[1:]]
    return args


@click.group(
    "move",
    cls=_MoveGroup,
    package=__name__,
    rows=ROWS,
    subcommand_metavar="SOURCE TARGET [OPTIONS] | VERB JOB",
    epilog="Options of a move: `dbdyno move SOURCE --help`.",
)
def command() -> None:
    """Move tables, exactly: one snapshot for all workers, a ledger that survives any kill, a proof at the end.

    SOURCE and TARGET are connection strings, folders or files; JOB is the folder that a move wrote:

    dbdyno move postgresql://me@db1/shop orders/ --table sales.orders

    dbdyno move postgresql://me@db1/shop postgresql://me@db2/shop --database
    """
