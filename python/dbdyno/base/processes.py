"""Starting of other processes: safe lookup of programs, and a Python that runs no code from the current folder.

`python -m` puts the current folder first on its path: a `subprocess.py` in a shared folder, or beside a plan from a
stranger, would run with the user's rights. So helper processes are started with `-P` and see only the folders of our
own packages. A relative entry of PATH (`.`, or an empty one) also means the current folder; it is ignored, and no
process that we start inherits it, since that process may be a script that starts other programs by name.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from dbdyno.base.own_variables import without_own_variables

HELPER_PACKAGES = ("dbdyno", "psycopg", "pymysql", "asyncssh", "altair", "vl_convert")
"""Packages that a helper process imports besides the standard library."""


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a dbdyno module in a separate interpreter, to be used with `python_environment`.

    Raises:
        RuntimeError: the path of the current interpreter is not absolute.
    """
    if not Path(sys.executable or "").is_absolute():
        raise RuntimeError(f"the interpreter has no absolute path: {sys.executable!r}")
    return [sys.executable, "-P", "-m", module, *arguments]


def python_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment without variables that control Python, and with only dbdyno's packages on PYTHONPATH.

    PYTHONHOME is kept: without it an interpreter that was moved does not find its standard library.
    """
    env = os.environ if env is None else env
    kept = {name: value for name, value in env.items() if not name.startswith("PYTHON") or name == "PYTHONHOME"}
    return {**child_environment(kept), "PYTHONPATH": os.pathsep.join(_places())}


def child_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a child process.

    PATH has no entries that depend on the current folder, and variables that dbdyno set for itself are left out.
    """
    env = without_own_variables(os.environ if env is None else env)
    if "PATH" not in env:
        return env
    return {**env, "PATH": os.pathsep.join(map(str, search_folders(env["PATH"]))) or os.defpath}


def find_program(name: str, path: str | None = None) -> Path | None:
    """Return the path of a program found in an absolute PATH entry, or None."""
    given = os.environ.get("PATH", os.defpath) if path is None else path
    import shutil  # here: no command should wait for it that starts nothing

    found = shutil.which(name, path=os.pathsep.join(str(folder) for folder in search_folders(given)))
    return Path(found) if found else None


def search_folders(path: str) -> list[Path]:
    """Return the folders of a PATH, without entries that depend on the current folder."""
    return [folder for part in path.split(os.pathsep) if (folder := Path(part)).is_absolute()]


def _places() -> list[str]:
    """Return the absolute paths of the folders that contain dbdyno's packages, without duplicates."""
    found: dict[str, None] = {}
    for package in HELPER_PACKAGES:
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec else []:
            found.setdefault(str(Path(place).resolve().parent))
    return list(found)
