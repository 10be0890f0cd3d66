"""Copying of files to every cell: read once, sent through the shell, complete or not at all.

A file is written under a temporary name beside its target, its length is checked, then it is renamed: if the connection
to a cell breaks, the cell still has its old file. SFTP, which cells may have disabled, is not needed.
"""

from __future__ import annotations

import asyncio
import secrets
import shlex
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.errors import CellsError
from dbdyno.base.files import os_errors_as
from dbdyno.cells.commands import failure
from dbdyno.cells.hosts import Host
from dbdyno.cells.identity import renamed_answers
from dbdyno.cells.ssh import Access, Answer, Fleet

MOST_BYTES = 256 << 20
Outcome = tuple[Host, str | None, str | None]
"""Result of a copy to one cell: the cell, its problem or None, and the next step or None."""


@dataclass(frozen=True)
class Copy:
    """File to copy: its local path, its name and folder on the cell, its bytes and its mode."""

    source: Path
    name: str
    folder: str
    data: bytes
    mode: int

    @property
    def command(self) -> str:
        """Return the shell command that runs on a cell and reads the file from stdin."""
        folder = self.folder if self.folder.startswith("/") else f"./{self.folder}"
        aside, place = (shlex.quote(f"{folder}/{name}") for name in (f".{self.name}.{secrets.token_hex(6)}", self.name))
        return (
            f"cd || exit; umask 077; trap 'rm -f -- '{shlex.quote(aside)} EXIT; set -C; cat > {aside}"
            f' && [ "$(wc -c < {aside})" -eq {len(self.data)} ]'
            f" && chmod {self.mode:04o} {aside} && mv -f -- {aside} {place}"
        )


def copies_of(files: Sequence[Path], folder: str) -> list[Copy]:
    """Read the files to copy.

    Raises:
        CellsError: A file cannot be read or is too large, or two files have the same name.
    """
    found: dict[str, Copy] = {}
    for file in files:
        if file.name in found:
            raise CellsError(
                f"has the same name as {found[file.name].source}",
                where=str(file),
                next_step="copy this file separately",
            )
        with os_errors_as(CellsError, "cannot be read", file, "check the path and the permissions of the file"):
            size, mode = file.stat().st_size, stat.S_IMODE(file.stat().st_mode) & 0o777
            if size > MOST_BYTES:
                raise CellsError(
                    f"has {size:,} bytes; expected at most {MOST_BYTES:,}",
                    where=str(file),
                    next_step="split the file, or copy it with scp",
                )
            data = file.read_bytes()
        found[file.name] = Copy(file, file.name, folder.rstrip("/") or "/", data, mode)
    return list(found.values())


def copy_everywhere(
    copies: Sequence[Copy], hosts: Sequence[Host], access: Access
) -> Iterator[tuple[Copy, list[Outcome]]]:
    """Yield each file with its outcome on every cell; cells have the names that they report themselves."""

    async def work() -> list[list[Answer]]:
        async with Fleet(hosts, access) as fleet:
            made = [await fleet.run(copy.command, data=copy.data) for copy in copies]
            own = await fleet.own_names([answer.host for answer in made[0] if not answer.problem])
            for answers in made:
                renamed_answers(answers, own)
            return made

    for copy, answers in zip(copies, asyncio.run(work()), strict=True):
        yield copy, [(answer.host, failure(answer), answer.next_step) for answer in answers]
