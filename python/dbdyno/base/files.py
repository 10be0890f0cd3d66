"""Files that are written completely or not at all, and that other users can neither redirect nor read.

New content goes to a temporary file with a random name, created exclusively (O_EXCL: no link is followed), which is
then renamed into place; a link at that place is replaced, never written through. A new file is readable by all users
who may enter its folder: in a folder of mode 0700 it gets mode 0600, in a folder that others may read it is readable by
them, always within the umask. So a run folder is private unless it was created to be shared.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from dbdyno.base.errors import Error
from dbdyno.base.json_types import JsonObject

PRIVATE = 0o700
SHARED = 0o755
READ_WRITE = 0o066
READ_ONLY = 0o044
USER_FILE_MOST = 16 << 20
"""Maximum length of a user's file, in characters; lists of hosts, the longest such files, have a few thousand."""
_SHARED: ContextVar[bool] = ContextVar("shared", default=False)


def share_new_folders(shared: bool = True) -> None:
    """Make all folders for evidence that are created later readable by others, within the umask."""
    _SHARED.set(shared)


def state_folder() -> Path:
    """Return the folder of this user's records: $DBDYNO_STATE, or dbdyno below $XDG_STATE_HOME or ~/.local/state."""
    own = os.environ.get("DBDYNO_STATE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "dbdyno"


def make_folder(path: Path) -> None:
    """Create a folder for evidence and its parents; its mode is 0700 unless `share_new_folders` was called.

    Raises:
        FileExistsError: the folder exists.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=SHARED if _SHARED.get() else PRIVATE)


def make_inner_folder(path: Path, *, exist_ok: bool = False) -> None:
    """Create a folder with the same access for others as its parent folder.

    Raises:
        FileExistsError: the folder exists and `exist_ok` is False.
    """
    path.mkdir(mode=PRIVATE | (_mode(path.parent) & 0o077), exist_ok=exist_ok)


def read_user_file(path: Path) -> str:
    """Return the text of a file written by a user: a plan, a script, a list of hosts.

    Raises:
        OSError: the file cannot be read; with `EFBIG` if it has more than `USER_FILE_MOST` characters, so that a device
            or a data file given by mistake does not fill the memory.
        UnicodeDecodeError: the file is not UTF-8 text.
    """
    with path.open(encoding="utf-8") as file:
        text = file.read(USER_FILE_MOST + 1)
    if len(text) > USER_FILE_MOST:
        raise OSError(
            errno.EFBIG,
            f"the file has more than {USER_FILE_MOST >> 20} million characters, which is too large for a file of this "
            "kind",
        )
    return text


CHECK_FILE = "check the path and the permissions of the file"
"""Next step for `os_errors_as` where a file cannot be read."""


@contextlib.contextmanager
def os_errors_as(failed: type[Error], problem: str, where: Path | str, next_step: str) -> Iterator[None]:
    """Turn an `OSError` raised in the context into an error of class `failed`: the problem, then the system's reason.

    Raises:
        Error: The system refused an operation.
    """
    try:
        yield
    except OSError as error:
        raise failed(f"{problem}: {error.strerror or error}", where=str(where), next_step=next_step) from error


def user_file_text(path: Path, failed: type[Error], *, next_step: str | None = None) -> str:
    """Return the text of a file written by a user, as `read_user_file` does, with errors of the class `failed`.

    Raises:
        Error: The file cannot be read or is not UTF-8 text; the error has the file and the next step.
    """
    try:
        return read_user_file(path)
    except OSError as error:
        raise failed(f"cannot be read: {error.strerror}", where=str(path), next_step=next_step) from error
    except UnicodeDecodeError as error:
        raise failed(f"is not UTF-8 text at byte {error.start}", where=str(path), next_step=next_step) from error


def user_file_toml(path: Path, failed: type[Error], *, next_step: str | None = None) -> JsonObject:
    """Return the tables of a TOML file written by a user, with errors of the class `failed`.

    Raises:
        Error: The file cannot be read or is not valid TOML; the error has the file and the next step.
    """
    return parse_toml(user_file_text(path, failed, next_step=next_step), path, failed, next_step=next_step)


def parse_toml(text: str, path: Path, failed: type[Error], *, next_step: str | None = None) -> JsonObject:
    """Return the tables of the text of a TOML file, with errors of the class `failed`.

    Raises:
        Error: The text is not valid TOML; the error has the file and the next step.
    """
    import tomllib

    try:
        return toml_tables(text)
    except tomllib.TOMLDecodeError as error:
        raise failed(f"is not valid TOML: {error}", where=str(path), next_step=next_step) from error


def toml_tables(text: str) -> JsonObject:
    """Return the tables of TOML text.

    Raises:
        tomllib.TOMLDecodeError: the text is not valid TOML, or is nested too deeply.
    """
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise tomllib.TOMLDecodeError("nested too deeply") from error


def write_atomically(path: Path, content: bytes, *, durable: bool = False, mode: int | None = None) -> None:
    """Write a file completely or not at all.

    Args:
        path: the path of the file.
        content: its bytes.
        durable: wait until the file is on disk under its name.
        mode: mode of the file; by default the mode of its folder decides who may read it.

    Raises:
        OSError: the file cannot be written.
    """
    aside = path.with_name(f".{path.name[:80]}.{os.urandom(8).hex()}.tmp")
    try:
        with os.fdopen(_create_file(aside, mode), "wb") as file:
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
    """Write a file named by the user, and create the folders above it.

    An existing device or pipe is opened and written to directly. A link is refused, since it may belong to another
    user.

    Raises:
        OSError: the file cannot be written, or is a link.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        kind = stat.S_IFREG
    if stat.S_ISLNK(kind):
        raise OSError(0, "the path is a link: name the file that it leads to, or remove the link")
    if stat.S_ISREG(kind):
        write_atomically(path, content)
        return
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_NOFOLLOW), "wb") as file:
        file.write(content)


@contextlib.contextmanager
def file_replacement(path: Path) -> Iterator[Path]:
    """Yield a temporary path in a private folder beside `path`, and move that file to `path` at the end.

    This is for libraries that open the file themselves and need a name.

    Raises:
        OSError: the folder cannot be created, or the file cannot be renamed.
    """
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix=f".{path.name[:80]}.", suffix=".tmp", dir=path.parent))
    try:
        yield folder / path.name
        (folder / path.name).replace(path)
        restrict_mode(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def restrict_mode(path: Path) -> None:
    """Set the mode of a file that another library created to the mode that its folder permits."""
    path.chmod(0o600 | (_mode(path.parent) & READ_ONLY))


def sync_folder(folder: Path) -> None:
    """Wait until the directory entries of a folder are on disk; a folder without read permission is skipped.

    Raises:
        OSError: the folder cannot be opened or synced.
    """
    with contextlib.suppress(PermissionError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def sync_files(folder: Path) -> None:
    """Wait until the content of the files in a folder, which other libraries wrote, is on disk.

    Raises:
        OSError: a file cannot be opened or synced.
    """
    for file in folder.iterdir():
        if file.is_file() and not file.is_symlink():
            opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)


def _create_file(temp_path: Path, mode: int | None) -> int:
    """Create a new file and return its descriptor; its access rights follow from its folder unless `mode` is given."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.open(temp_path, flags, 0o600 | (_mode(temp_path.parent) & READ_WRITE) if mode is None else mode)


def _mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)
