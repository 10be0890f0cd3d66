"""An import is complete or absent: full disks, signals, kills, and unfinished imports by earlier versions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import dbdyno
from dbdyno.base.errors import EvidenceError, TraceError
from dbdyno.trace.source import read_trace
from dbdyno.trace.staging import staged_folder
from waiting import until

LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
sys.argv = ["dbdyno", *sys.argv[1:]]
from dbdyno.cli.main import entry
entry()
"""


def limited(*words: object):
    """Run a command in its own process, because a limit applies to the entire process."""
    command = [sys.executable, "-c", LIMITED, *map(str, words)]
    return subprocess.run(command, text=True, capture_output=True, check=False, stdin=subprocess.DEVNULL)


def test_a_half_trace_import_passes_as_whole_after_a_full_disk(big: Path, tmp_path: Path):
    """The limit on a file's size stands in for the disk's end: the write fails in the same way."""
    out = tmp_path / "runs" / "half"
    done = limited("trace", "import", big, "--out", out)
    assert done.returncode == 2
    assert "could not be written" in done.stderr and str(out) in done.stderr
    assert "--resume" not in done.stderr
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_full_temporary_folder_is_told_with_a_way_out(big: Path):
    done = limited("trace", "sql", big)
    assert done.returncode == 2
    assert "TMPDIR" in done.stderr and "--resume" not in done.stderr


@pytest.mark.parametrize("status", ["running", "aborted"])
@pytest.mark.parametrize(
    "words",
    [
        ("trace", "profile"),
        ("trace", "sql"),
        ("trace", "waits"),
        ("trace", "tree"),
        ("sql", "select 1", "--run"),
        ("trace", "write", "--out", "copy"),
        ("compare", "OTHER"),
    ],
    ids=lambda words: " ".join(words),
)
def test_an_unfinished_import_is_refused_everywhere(file: Path, tmp_path: Path, status: str, words: tuple[str, ...]):
    run = read_trace(file, tmp_path / "run")
    other = read_trace(file, tmp_path / "other")
    run.save(status=status)
    given = [str(other.path) if word == "OTHER" else word for word in words]
    given = [str(tmp_path / word) if word == "copy" else word for word in given]
    done = dbdyno(*given, run.path)
    assert done.returncode == 2, done.stdout
    assert "did not finish" in done.stderr
    assert f"--out {run.path} --force" in done.stderr


def test_the_advised_next_step_for_an_unfinished_import_works(file: Path, tmp_path: Path):
    run = read_trace(file, tmp_path / "run")
    run.save(status="aborted")
    assert dbdyno("trace", "import", file, "--out", run.path, "--force").returncode == 0
    assert dbdyno("trace", "sql", run.path).returncode == 0


def test_an_earlier_import_stays_when_its_replacement_fails(file: Path, tmp_path: Path):
    out = tmp_path / "runs" / "kept"
    read_trace(file, out)
    (tmp_path / "bad.trc").write_bytes(bytes(range(256)) * 40)
    done = dbdyno("trace", "import", tmp_path / "bad.trc", "--out", out, "--force")
    assert done.returncode == 2
    assert json.loads((out / "manifest.json").read_text())["status"] == "complete"
    assert [path.name for path in out.parent.iterdir()] == ["kept"]


def begun(words: list[object], place: Path, sign: str = "*", **environment: str) -> subprocess.Popen[bytes]:
    """Start a command, and return it once a file in `place` matches the pattern."""
    running = subprocess.Popen(
        [sys.executable, "-m", "dbdyno", *map(str, words)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until(lambda: list(place.glob(sign)) or running.poll() is not None, 120, pause_s=0.002)
    return running


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_sigterm_leaves_the_temporary_import_behind(big: Path, tmp_path: Path, number: signal.Signals):
    place = tmp_path / "tmp"
    place.mkdir()
    running = begun(["trace", "sql", big], place, TMPDIR=str(place))
    running.send_signal(number)
    _, errors = running.communicate(timeout=120)
    assert (running.returncode, errors.strip()) == (130, b"interrupted")
    assert list(place.iterdir()) == []


def test_sigterm_during_an_import_leaves_no_half_run(big: Path, tmp_path: Path):
    runs = tmp_path / "runs"
    runs.mkdir()
    running = begun(["trace", "import", big, "--out", runs / "batch"], runs)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=120)
    assert running.returncode == 130
    assert list(runs.iterdir()) == []


def test_what_a_killed_import_left_is_no_run_and_goes_with_the_next(big: Path, file: Path, tmp_path: Path):
    runs = tmp_path / "runs"
    runs.mkdir()
    running = begun(["trace", "import", big, "--out", runs / "batch"], runs, "*/.maker.json")
    running.kill()
    running.communicate(timeout=120)
    assert [path.name.startswith(".batch.importing-") for path in runs.iterdir()] == [True]
    assert json.loads(dbdyno("runs", "--runs", runs, "--format", "json").stdout or "[]") == []
    read_trace(file, runs / "batch")
    assert [path.name for path in runs.iterdir()] == ["batch"]


def test_a_folder_aside_of_a_living_import_is_left_alone(file: Path, tmp_path: Path):
    with staged_folder(tmp_path / "batch") as aside:
        (aside / "x").write_text("mine")
        with pytest.raises(TraceError, match="exists already"), staged_folder(file):
            pass
        with staged_folder(tmp_path / "batch") as other:
            (other / "y").write_text("theirs")
        assert (aside / "x").exists()
        (tmp_path / "batch" / "y").unlink()
    assert [path.name for path in (tmp_path / "batch").iterdir()] == ["x"]


def test_evidence_that_cannot_be_written_is_a_trace_error_with_the_users_place(tmp_path: Path):
    with pytest.raises(TraceError, match="No space left") as raised, staged_folder(tmp_path / "batch"):
        raise EvidenceError("/x/.batch.importing-1/calls.parquet: No space left on device\n  next: --resume")
    assert "importing" not in str(raised.value)
