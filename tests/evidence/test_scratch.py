"""Temporary folders: private, removed with their process, or by the next process if it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from dbdyno.base.scratch import ScratchFolder

MAKER = "import os, signal\nfrom dbdyno.base.scratch import ScratchFolder\nmade = ScratchFolder('t')\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def made_by(code: str) -> tuple[Path, int]:
    """Run a program that makes a folder and prints its path; return the path and the exit code."""
    done = subprocess.run([sys.executable, "-c", MAKER + code], text=True, capture_output=True, check=False)
    return Path(done.stdout.strip()), done.returncode


def old(folder: Path) -> Path:
    """Let a folder look as if nothing had changed in it for an hour."""
    hour_ago = time.time() - 3600
    os.utime(folder, (hour_ago, hour_ago))
    return folder


def test_a_folder_is_private_and_goes_when_it_is_removed_or_no_longer_needed(place: Path) -> None:
    folder = ScratchFolder("t")
    assert folder.path.parent == place and folder.path.stat().st_mode & 0o777 == 0o700
    (folder.path / "inside").mkdir()
    folder.remove()
    folder.remove()
    assert not folder.path.exists()
    path = ScratchFolder("t").path
    assert not path.exists()


def test_a_folder_goes_with_its_process_and_not_with_one_that_was_forked_from_it() -> None:
    folder, code = made_by("if os.fork() == 0: raise SystemExit\nos.wait()\nprint(made.path, made.path.exists())")
    assert code == 0 and folder.name.endswith(" True")
    assert not Path(str(folder).removesuffix(" True")).exists()


def test_what_a_killed_process_left_is_removed_by_the_next_of_its_kind(place: Path) -> None:
    left, code = made_by("print(made.path, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)")
    assert code == -signal.SIGKILL and left.exists()
    fresh, other = place / "dbdyno-scratch-t-new", place / "dbdyno-scratch-u-old"
    fresh.mkdir()
    other.mkdir()
    old(other)
    ScratchFolder("t").remove()
    assert left.exists(), "its process may still be about to lock it"
    old(left)
    ScratchFolder("t").remove()
    assert not left.exists()
    assert fresh.exists() and other.exists()


def test_a_folder_in_use_is_kept_however_old_it_is() -> None:
    held = ScratchFolder("t")
    old(held.path)
    assert ScratchFolder("t").path != held.path and held.path.exists()


def test_a_link_in_place_of_a_folder_is_not_followed(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "precious").write_text("")
    link = place / "dbdyno-scratch-t-link"
    link.symlink_to(elsewhere)
    os.utime(link, (0, 0), follow_symlinks=False)
    ScratchFolder("t").remove()
    assert (elsewhere / "precious").exists()
