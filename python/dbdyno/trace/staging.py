"""Creation of a folder that appears completely or not at all: it is filled under another name, synced and renamed.

    with staged_folder(Path("runs/batch")) as aside:
        ...  # fill it
    # runs/batch exists and is complete

While it is being filled it is called `.batch.importing-4f2a` and has no manifest, so nothing takes it for a run. An
error or a signal removes it. After `kill -9` or a power failure it stays, and the next import to the same place removes
it once the process that created it no longer exists.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from dbdyno.base.errors import EvidenceError, TraceError
from dbdyno.base.files import make_folder, os_errors_as, sync_folder
from dbdyno.evidence.run import is_alive, this_process
from dbdyno.trace.job import delay_signals

_MAKER = ".maker.json"
_NOTE_WITHIN_S = 60.0


@contextlib.contextmanager
def staged_folder(out: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield an empty folder beside `out` that is renamed to `out` at the end.

    With `replace`, an existing folder of that name is replaced.

    Raises:
        TraceError: `out` exists, or the folder cannot be created or renamed.
    """
    if out.exists() and not replace and (not out.is_dir() or any(out.iterdir())):
        raise TraceError("exists already", where=str(out), next_step="choose another place with --out")
    aside = out.with_name(f".{out.name}.importing-{os.urandom(4).hex()}")
    try:
        with delay_signals():
            _make(aside, out)
        yield aside
        (aside / _MAKER).unlink()
        _put(aside, out)
    except (OSError, EvidenceError) as error:
        _remove(aside)
        raise TraceError(
            f"the import could not be written: {_reason_of(error)}",
            where=str(out),
            next_step="free disk space or check the permissions, then import again; no part of this import is left",
        ) from error
    except BaseException:
        _remove(aside)
        raise


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _reason_of(error: OSError | EvidenceError) -> str:
    """Return what went wrong, without the name of the temporary folder, which no longer exists."""
    said = error.message if isinstance(error, EvidenceError) else error.strerror or str(error)
    return said.splitlines()[0].rpartition(": ")[2]


def _make(temp_path: Path, out: Path) -> None:
    """Create the temporary folder with a note that names this process; remove folders left by dead processes."""
    with os_errors_as(TraceError, "the folder cannot be created", out, "choose another place with --out"):
        out.parent.mkdir(parents=True, exist_ok=True)
        for left in out.parent.glob(f".{glob.escape(out.name)}.importing-*"):
            if _is_dead(left):
                _remove(left)
        make_folder(temp_path)
        (temp_path / _MAKER).write_text(json.dumps(this_process() | {"host": os.uname().nodename}))


def _is_dead(folder: Path) -> bool:
    """Return True if the folder was created by a process of this host that no longer exists.

    A folder without a note was created just now, or just before its process was killed. It counts as dead if it is
    empty and older than a minute.
    """
    try:
        maker = json.loads((folder / _MAKER).read_text())
        return maker["host"] == os.uname().nodename and not is_alive(maker)
    except (ValueError, TypeError, KeyError):
        return False
    except OSError:
        with contextlib.suppress(OSError):
            return not any(folder.iterdir()) and time.time() - folder.stat().st_mtime > _NOTE_WITHIN_S
        return False


def _put(temp_path: Path, out: Path) -> None:
    """Rename the folder; an earlier folder is removed only when the new one is in its place."""
    for folder in (temp_path, *(path for path in temp_path.rglob("*") if path.is_dir())):
        sync_folder(folder)
    before = None
    if out.is_dir() and any(out.iterdir()):
        before = out.with_name(f".{out.name}.replaced-{os.urandom(4).hex()}")
        out.rename(before)
    try:
        temp_path.rename(out)
    except OSError:
        if before is not None:
            before.rename(out)
        raise
    sync_folder(out.parent)
    if before is not None:
        _remove(before)
