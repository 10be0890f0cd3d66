"""Symbolic links that lead out of a folder: another user must not decide which of this user's files are shown.

A folder is read again only if its modification time has changed, so that checking a month of snapshots costs only a few
stat calls.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.base.errors import EvidenceError

LAST_FILE = "manifest.json"
"""Name of the file that is written last: once a snapshot's folder contains it, the folder no longer changes."""


@dataclass
class _Folder:
    """A folder as last read: its change time, its subfolders, and the first link that leads out of the root folder."""

    changed_ns: int
    folders: list[str]
    link: str = ""
    settled: bool = False


@dataclass
class Links:
    """Finder of links that lead out of a root folder; it remembers the folders that have none."""

    _known: dict[str, _Folder] = field(default_factory=dict)

    def check(self, folder: Path) -> None:
        """Raise an error if a link in a run, a move or a store leads out of it.

        Raises:
            EvidenceError: A link leads out of the folder, or a folder cannot be read.
        """
        link = next(self._leading_out(str(folder), folder.resolve()), "")
        if link:
            raise EvidenceError(
                "is a link to a place outside of its folder, so it is not followed",
                where=os.path.relpath(link, folder.parent),
                next_step="replace the link with the file, or remove it",
            )

    def is_free(self, folder: Path) -> bool:
        """Return True if a folder is completely readable and no link in it leads out."""
        try:
            self.check(folder)
        except EvidenceError:
            return False
        return True

    def _leading_out(self, path: str, home: Path) -> Iterator[str]:
        known = self._read(path, home)
        if known.link:
            yield known.link
        for name in known.folders:
            inner = f"{path}/{name}"
            if not ((found := self._known.get(inner)) and found.settled and not found.link):
                yield from self._leading_out(inner, home)

    def _read(self, path: str, home: Path) -> _Folder:
        """Return what is known about a folder, read again if it has changed."""
        try:
            changed_ns = os.stat(path).st_mtime_ns  # noqa: PTH116 - a Path costs more than the call, thousands of times a page
            known = self._known.get(path)
            if known is None or known.changed_ns != changed_ns:
                known = self._known[path] = _folder(path, changed_ns, home)
        except OSError as error:
            raise EvidenceError(
                f"cannot be read: {error.strerror}", where=path, next_step="check the permissions of the file"
            ) from error
        return known


def _folder(path: str, changed_ns: int, home: Path) -> _Folder:
    found = _Folder(changed_ns, [])
    with os.scandir(path) as entries:
        for one in entries:
            if one.is_symlink():
                if not Path(one.path).resolve().is_relative_to(home):
                    found.link = found.link or one.path
            elif one.is_dir(follow_symlinks=False):
                found.folders.append(one.name)
            elif one.name == LAST_FILE and Path(path).name.isdigit():
                found.settled = True
    return found
