"""A folder that an attacker has filled: any program that runs from it, or module imported from it, leaves a mark."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGES = (
    "psycopg",
    "psycopg_binary",
    "asyncssh",
    "cryptography",
    "duckdb",
    "numpy",
    "click",
    "rich",
    "dbdyno_plugin",
)
PROGRAMS = ("postgres", "initdb", "pg_ctl", "pg_config", "pg_dump", "ssh", "sh", "git", "lsblk", "chromium")
IN_SCRIPTS = ("ls", "tail", "sed", "uname", "dirname", "basename", "locale", "grep", "expr", "cat")
"""Programs that scripts start by name, such as Debian's pg_config and R."""


class HostileFolder:
    """Folder with a fake of every module of the standard library and every program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = folder.parent / "taken"
        for name in (*sys.stdlib_module_names, *PACKAGES):
            (folder / f"{name}.py").write_text(f"open({str(self.mark)!r}, 'a').write('module {name}\\n')\n")
        for name in (*PROGRAMS, *IN_SCRIPTS, Path(sys.executable).name, "python", "python3"):
            program = folder / name
            program.write_text(f"#!/bin/sh\necho 'program {name}' >> '{self.mark}'\nexit 1\n")
            program.chmod(0o755)

    @property
    def taken(self) -> list[str]:
        """Return the names of the fakes that ran."""
        return sorted(set(self.mark.read_text().splitlines())) if self.mark.exists() else []
