"""Other processes: which program is meant, and an interpreter that runs no code of the folder it is started in.

`python -m` puts the current folder first on its path: a `subprocess.py` in a shared folder, or beside a plan from a
stranger, would run with the user's rights. So helpers are started with `-P`, and see the places of our own packages
alone. A relative entry of PATH (`.`, or an empty one) is the current folder too; it is passed over, and no process of
ours inherits it: what we start may be a script that starts others by their names.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

HELPER_PACKAGES = ("dbdyno", "psycopg", "pymysql", "asyncssh")
"""What a helper imports beside the standard library."""


def python_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours in an interpreter of its own; start it with `python_environment`."""
    if not Path(sys.executable or "").is_absolute():
        raise RuntimeError(f"the interpreter has no absolute path: {sys.executable!r}")
    return [sys.executable, "-P", "-m", module, *arguments]


def python_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment without what steers Python; its path holds our packages and nothing else.

    PYTHONHOME stays: without it an interpreter that was moved does not find its standard library.
    """
    env = os.environ if env is None else env
    kept = {name: value for name, value in env.items() if not name.startswith("PYTHON") or name == "PYTHONHOME"}
    return {**child_environment(kept), "PYTHONPATH": os.pathsep.join(_places())}


def child_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment for a process of ours, its PATH without what depends on the current folder."""
    env = os.environ if env is None else env
    if "PATH" not in env:
        return dict(env)
    return {**env, "PATH": os.pathsep.join(map(str, search_folders(env["PATH"]))) or os.defpath}


def find_program(name: str, path: str | None = None) -> Path | None:
    """The program of that name in a folder that PATH names by its whole path."""
    given = os.environ.get("PATH", os.defpath) if path is None else path
    import shutil  # here: no command should wait for it that starts nothing

    found = shutil.which(name, path=os.pathsep.join(str(folder) for folder in search_folders(given)))
    return Path(found) if found else None


def search_folders(path: str) -> list[Path]:
    """The folders of a PATH, without those that depend on the current folder."""
    return [folder for part in path.split(os.pathsep) if (folder := Path(part)).is_absolute()]


def _places() -> list[str]:
    """The folders that hold our packages, each once, by their whole paths."""
    found: dict[str, None] = {}
    for package in HELPER_PACKAGES:
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec else []:
            found.setdefault(str(Path(place).resolve().parent))
    return list(found)
