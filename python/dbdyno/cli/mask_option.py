"""Option --mask of the commands that copy a database."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import click

from dbdyno.cli.parameters import FILE

mask_option = click.option(
    "--mask",
    "masks",
    multiple=True,
    metavar="'TABLE.COLUMN = METHOD'",
    help="Mask a column of the copied database: hash, keep-length, year, constant:VALUE or null. Repeatable.",
)

mask_key_option = click.option(
    "--mask-key-file",
    "mask_key_file",
    type=FILE,
    metavar="FILE",
    help="Derive masked values from the key in this file (32 random bytes in base64), so that every copy gets the same "
    "values; by default each copy gets a random key.",
)


def mask_key_of(file: Path | None, masks: Collection[object]) -> str:
    """Return the key for masks, read from a file; empty if no file is named.

    Raises:
        UsageError: A key file is named, but no mask.
        EvidenceError: The file has no key, or others may read it.
    """
    from dbdyno.evidence.encryption import read_key
    from dbdyno.move.database.mask_key import derived_key

    if file is None:
        return ""
    if not masks:
        raise click.UsageError("--mask-key-file works only with --mask")
    return derived_key(read_key(file))
