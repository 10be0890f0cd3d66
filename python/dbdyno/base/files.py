"""Files that appear whole or not at all, and that nobody else can redirect or read.

What is written aside has a random name, is made by us or not at all (O_EXCL: no link is followed), and is renamed into
place; a link at that place is replaced, never written through. Who may enter a folder may read its new files: in a
folder of mode 0700 a file is 0600, in one that others may read it is readable for them, always within the umask. So a
run folder is private, unless it was made to be shared.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

PRIVATE = 0o700
SHARED = 0o755
READ_WRITE = 0o066
READ_ONLY = 0o044
GIVEN_MOST = 16 << 20
"""Characters of a file that a user wrote; the longest that we know of, a list of hosts, has a few thousand."""
_SHARED: ContextVar[bool] = ContextVar("shared", default=False)


def share(shared: bool = True) -> None:
    """Makes folders of evidence from now on so that others may read them, as the umask allows."""
    _SHARED.set(shared)


def state_folder() -> Path:
    """Where this user's own records are: $DBDYNO_STATE, or dbdyno below $XDG_STATE_HOME or ~/.local/state."""
    own = os.environ.get("DBDYNO_STATE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "dbdyno"


def make_folder(path: Path) -> None:
    """Makes a folder for evidence, 0700 unless it is to be shared, and those above it. Raises FileExistsError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=SHARED if _SHARED.get() else PRIVATE)


def make_inner_folder(path: Path, *, exist_ok: bool = False) -> None:
    """Makes a folder that lets in whom the folder above lets in. Raises FileExistsError unless one may stand there."""
    path.mkdir(mode=PRIVATE | (_mode(path.parent) & 0o077), exist_ok=exist_ok)


def read_given(path: Path) -> str:
    """The text of a file that a user wrote: a plan, a script, a list of hosts. Raises `OSError`, and that of `EFBIG`
    for more than any such file holds, so that a device or a file of data given by mistake does not fill the memory;
    `UnicodeDecodeError` for what is no text."""
    with path.open(encoding="utf-8") as file:
        text = file.read(GIVEN_MOST + 1)
    if len(text) > GIVEN_MOST:
        raise OSError(errno.EFBIG, f"it holds more than {GIVEN_MOST >> 20} million characters, so it is no such file")
    return text


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file that a user wrote. Raises what `read_given` and `toml_tables` raise."""
    return toml_tables(read_given(path))


def toml_tables(text: str) -> dict[str, Any]:
    """The tables of TOML text. Raises `tomllib.TOMLDecodeError`, also for what is nested too deeply."""
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise tomllib.TOMLDecodeError("nested too deeply") from error


def write_whole(path: Path, content: bytes, *, durable: bool = False, mode: int | None = None) -> None:
    """Writes a file whole or not at all; raises OSError. `durable`: it is on disk, under its name, after that. `mode`
    where it is not the folder that says who may read it."""
    aside = path.with_name(f".{path.name[:80]}.{os.urandom(8).hex()}.tmp")
    try:
        with os.fdopen(_made(aside, mode), "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def write_output(path: Path, content: bytes) -> None:
    """Writes a file that the user named, and the folders above it; raises OSError. A device or a pipe is written into
    as it stands; a link is refused, since it may be somebody else's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        kind = stat.S_IFREG
    if stat.S_ISLNK(kind):
        raise OSError(0, "is a link: name the file that it leads to, or remove the link")
    if stat.S_ISREG(kind):
        write_whole(path, content)
        return
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_NOFOLLOW), "wb") as file:
        file.write(content)


@contextlib.contextmanager
def written_by_name(path: Path) -> Iterator[Path]:
    """For writers that open a name themselves: a name in a private folder beside `path`, renamed into place at the
    end. Raises OSError."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix=f".{path.name[:80]}.", suffix=".tmp", dir=path.parent))
    try:
        yield folder / path.name
        (folder / path.name).replace(path)
        narrow(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def narrow(path: Path) -> None:
    """Gives a file that another library made the mode that its folder asks for."""
    path.chmod(0o600 | (_mode(path.parent) & READ_ONLY))


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on disk; raises OSError. A folder that may be written and not read cannot
    be waited for."""
    with contextlib.suppress(PermissionError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _made(aside: Path, mode: int | None) -> int:
    """A new file, readable by whom its folder lets in."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.open(aside, flags, 0o600 | (_mode(aside.parent) & READ_WRITE) if mode is None else mode)


def _mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)
