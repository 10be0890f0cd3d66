"""Search for the programs of a MariaDB server: an installed one, or one in a folder that an arm or a variable names.

The variable is DBDYNO_MARIADB_BIN.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.errors import TargetError
from dbdyno.base.processes import find_program
from dbdyno.bench.engine.os_user import Account, refusal
from dbdyno.bench.postgres.binaries import is_program

PLACES = "/usr/sbin:/usr/local/sbin:/usr/local/mysql/bin:/opt/homebrew/bin"
"""Folders in addition to PATH in which distributions install the server's programs."""
SERVER, INSTALL = "mariadbd", "mariadb-install-db"
BESIDE = (".", "../scripts", "../bin")
"""Folders, relative to the server program's folder, that may hold the program that creates a data folder.

A build has this program in `scripts`, Debian in `/usr/bin`.
"""


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of a server.

    Attributes:
        server: The server.
        install: The program that creates a data folder.
        base: The installation's base folder, or None if the programs find it themselves.
    """

    server: Path
    install: Path
    base: Path | None = None

    @property
    def options(self) -> list[str]:
        """Return the options that tell both programs where the installation is."""
        return [f"--basedir={self.base}"] if self.base else []


def find_programs(env: Mapping[str, str] | None = None) -> Programs:
    """Return the programs in the folder that DBDYNO_MARIADB_BIN names, otherwise the programs of an installed server.

    Raises:
        TargetError: No server programs were found.
    """
    forced = (os.environ if env is None else env).get("DBDYNO_MARIADB_BIN")
    if forced:
        return programs_in(Path(forced), "DBDYNO_MARIADB_BIN")
    return Programs(_find_installed(SERVER), _find_installed(INSTALL))


def programs_in(folder: Path, who: str) -> Programs:
    """Return the programs in a folder such as /opt/mariadb-11.8/bin; `who` names the source of the folder in errors.

    Raises:
        TargetError: The folder does not hold a server.
    """
    folder = folder.resolve()
    server = folder / SERVER
    install = next((path for beside in BESIDE if is_program(path := (folder / beside / INSTALL).resolve())), None)
    if not is_program(server) or install is None:
        raise TargetError(
            f"{who} names {folder}, which does not contain a MariaDB server: {SERVER if install else INSTALL} "
            f"is missing",
            next_step=f"name the folder that contains {SERVER}, with {INSTALL} in it, in ../scripts or in ../bin",
        )
    return Programs(server, install, folder.parent)


def check_reachable(account: Account, programs: Programs) -> None:
    """Check that the account that is to run the server can execute its programs.

    Raises:
        TargetError: The account cannot execute them.
    """
    if said := refusal(account, [programs.server, "--no-defaults", "--version"]):
        raise TargetError(
            f"the user {account.name!r} cannot run {programs.server}: {said}",
            next_step="put the server's folder where that user can read it, or run dbdyno as an ordinary user",
        )


def _find_installed(name: str) -> Path:
    found = find_program(name, os.environ.get("PATH", os.defpath) + os.pathsep + PLACES)
    if found is None:
        raise TargetError(
            f"{name} was not found: an embedded MariaDB needs the programs of an installed server",
            next_step="install Debian's mariadb-server-core, or use a running server: --target mariadb://user@host/db",
        )
    return found
