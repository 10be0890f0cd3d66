"""Maturin, and before it the program that it packs as `dbdyno` (crates/dyno-entry).

A wheel made by maturin holds either a module or a program; here it needs both. So the program is built first and put
where `[tool.maturin] data` points; from there it goes into the wheel and is installed beside Python's own scripts.
`python tools/wheel_backend.py [FOLDER]` does no more than that, and puts it into FOLDER, too: `make build` and `make
wheel` call it. `DBDYNO_PROFILE` names another profile of cargo than release, `DBDYNO_BUILD` another subcommand than
`build`, with its options: `tools/portable-wheel` cross-compiles by it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "target" / "entry" / "scripts"


def build_entry() -> Path:
    """Build the program and put it where it is packed from."""
    cargo = os.environ.get("CARGO", "cargo")
    # Named together, so that both take the same features of their dependencies and nothing is compiled twice.
    packages = ["--package", "dyno-python", "--package", "dyno-entry", "--bin", "dbdyno"]
    profile = os.environ.get("DBDYNO_PROFILE", "release")
    build = os.environ.get("DBDYNO_BUILD", "build").split()
    command = [cargo, *build, "--profile", profile, "--locked", "--quiet", *packages]
    command += ["--message-format", "json-render-diagnostics"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    made = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    (program,) = [Path(one["executable"]) for one in made if one.get("executable")]
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return _put(program, SCRIPTS)


def _put(program: Path, folder: Path) -> Path:
    """Replace a copy under its name in one step: the one before it may be running."""
    aside = folder / ".dbdyno.new"
    shutil.copy2(program, aside)
    return aside.replace(folder / "dbdyno")


def _refuse_musl() -> None:
    """Raise an error if this Python is linked with musl and the user does not insist, before anything is compiled."""
    if "musl" in str(sysconfig.get_config_var("HOST_GNU_TYPE")) and not os.environ.get("DBDYNO_ON_MUSL"):
        raise RuntimeError(
            "dbdyno cannot be installed here: this Python is linked with musl, as on Alpine, and DuckDB and vl-convert,"
            " which dbdyno needs, have no wheels for musl\n  next: use a system with glibc, such as Debian; if you have"
            " built both packages yourself, set DBDYNO_ON_MUSL=1"
        )


def _maturin(name: str, *given: Any) -> Any:
    import maturin

    if name == "build_wheel":
        _refuse_musl()
    build_entry()
    return getattr(maturin, name)(*given)


def build_wheel(directory: str, settings: Any = None, metadata: str | None = None) -> str:
    """Build a wheel (PEP 517)."""
    return str(_maturin("build_wheel", directory, settings, metadata))


def build_sdist(directory: str, settings: Any = None) -> str:
    """Build the source archive (PEP 517)."""
    return str(_maturin("build_sdist", directory, settings))


def build_editable(directory: str, settings: Any = None, metadata: str | None = None) -> str:
    """Build a wheel that points here (PEP 660)."""
    return str(_maturin("build_editable", directory, settings, metadata))


def prepare_metadata_for_build_wheel(directory: str, settings: Any = None) -> str:
    """Metadata without a wheel (PEP 517)."""
    _refuse_musl()
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    import maturin

    return str(maturin.prepare_metadata_for_build_wheel(directory, settings))


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def get_requires_for_build_wheel(settings: Any = None) -> list[str]:
    """Nothing beside maturin."""
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel

if __name__ == "__main__":
    built = build_entry()
    for given in sys.argv[1:]:
        _put(built, Path(given))
    sys.stdout.write(f"{built.relative_to(ROOT)}\n")
