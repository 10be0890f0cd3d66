"""Option --mask of the commands that copy a database."""

from __future__ import annotations

import click

mask_option = click.option(
    "--mask",
    "masks",
    multiple=True,
    metavar="'TABLE.COLUMN = METHOD'",
    help="Mask a column of the copied database: hash, keep-length, year, constant:VALUE or null. Repeatable.",
)
