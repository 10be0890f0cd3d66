"""End of a job with files: the requested checks, stored in the ledger and printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from dbdyno.cli.move.options import say

if TYPE_CHECKING:
    from dbdyno.move.ledger.folder import Ledger
    from dbdyno.move.proof.statement import Proof


def finish(ledger: Ledger, level: str, source: Callable[[Proof], Proof] | None = None) -> None:
    """Check the files as requested, print the result, and exit with 1 if something differs.

    `source` is a function that reads the source again, or that compares rows which have been read again.
    """
    from dbdyno.move.proof import statement as proof

    proved = proof.recorded_proof(ledger)
    if level != "counts":
        say("reading the files again" + (", and the source in the same snapshot" if level == "source" else ""))
        with ledger.phase("checking"):
            proved = proof.check_files(ledger, proved)
            if level == "source" and source is not None:
                proved = source(proved)
            ledger.manifest["proved"] = proved.sentences()
    show(proved)


def show(proved: Proof) -> None:
    """Print what is proved, and exit with 1 if something differs."""
    for line in proved.sentences():
        click.echo(line)
    if proved.differs:
        click.get_current_context().exit(1)
