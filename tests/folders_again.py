"""Data folders of stopped servers, which are overwritten for the next server instead of deleted and created again.

A server's data folder has a thousand files. ext4 does not reuse a deleted inode for a minute, and inspects each such
inode again for every new file. A test run that removed one folder after the other and created the next paid up to a
second of kernel time for each copy. The folder of a stopped server is therefore kept for the next server of its kind
and made equal to its template again: unchanged files stay, and the others are overwritten.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path

_made_from: dict[Path, Path] = {}
"""The template of each data folder that is in use."""


def note(data: Path, template: Path) -> None:
    """Record that this folder was made from that template."""
    _made_from[data] = template


def retire(folder: Path) -> None:
    """Keep the data folder of a stopped server if its template is known."""
    data = folder / "data"
    template = _made_from.pop(data, None)
    if template is not None:
        with contextlib.suppress(OSError):  # on another file system, or gone: it is removed with its server's folder
            data.rename(_aside(template) / secrets.token_hex(8))


def remove(folder: Path, ignore_errors: bool = False) -> None:
    """Keep the data folder of a server for reuse, and remove the rest of its folder as `shutil.rmtree` does."""
    retire(folder)
    shutil.rmtree(folder, ignore_errors=ignore_errors)


def take(template: Path, data: Path) -> bool:
    """Return True if a kept folder was reused for this data folder; False if there is none."""
    for kept in _aside(template).iterdir():
        try:
            kept.rename(data)  # of several processes one gets it
        except OSError:
            continue
        make_equal(template, data)
        return True
    return False


def make_equal(template: Path, data: Path) -> None:
    """Make a folder equal to its template in content and attributes."""
    there = {entry.name: entry for entry in os.scandir(data)}
    for entry in os.scandir(template):
        to, old = data / entry.name, there.pop(entry.name, None)
        if old is not None and (_kind(old) != _kind(entry) or entry.is_symlink()):
            _remove(old)
            old = None
        if entry.is_symlink():
            to.symlink_to(Path(entry).readlink())
        elif entry.is_dir():
            to.mkdir(exist_ok=True)
            make_equal(Path(entry), to)
        elif old is None or _state(old) != _state(entry):
            _write_over(Path(entry), to)
    for left in there.values():
        _remove(left)
    _give_attributes(template, data)


def _aside(template: Path) -> Path:
    place = template.with_name(f"{template.name}-used")
    place.mkdir(exist_ok=True)
    return place


def _kind(entry: os.DirEntry[str]) -> tuple[bool, bool]:
    return entry.is_symlink(), entry.is_dir(follow_symlinks=False)


def _state(entry: os.DirEntry[str]) -> tuple[int, ...]:
    """Return a file's size, times and owner, which change if somebody writes to it."""
    stat = entry.stat(follow_symlinks=False)
    return stat.st_size, stat.st_mtime_ns, stat.st_mode, stat.st_uid, stat.st_gid


def _remove(entry: os.DirEntry[str]) -> None:
    if entry.is_dir(follow_symlinks=False):
        shutil.rmtree(entry)
    else:
        Path(entry).unlink()


def _write_over(template: Path, to: Path) -> None:
    """Overwrite the existing file, with its holes left out, because a log of 16 MB contains only a few pages."""
    with template.open("rb", buffering=0) as source, to.open("wb", buffering=0) as out:
        size, at = os.fstat(source.fileno()).st_size, 0
        while at < size:
            try:
                at = os.lseek(source.fileno(), at, os.SEEK_DATA)
            except OSError:  # nothing but a hole is left
                break
            end = os.lseek(source.fileno(), at, os.SEEK_HOLE)
            out.seek(at)
            out.write(os.pread(source.fileno(), end - at, at))
            at = end
        out.truncate(size)
    _give_attributes(template, to)


def _give_attributes(template: Path, to: Path) -> None:
    stat = template.stat()
    os.chown(to, stat.st_uid, stat.st_gid)
    shutil.copystat(template, to)
