"""New side made by `pg_upgrade` from a data folder that the user has named as expendable.

The folder is a physical copy of the old server's data on which no server runs. Its own version's programs must be on
this machine, too. The upgraded server is an embedded one and is removed at the end. The data folder remains. With
`copy`, pg_upgrade has started it once; with `link`, it shares its files with the new server, so it must never be
started again.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.errors import TargetError
from dbdyno.bench.engine.os_user import Account, engine_account, reachable_binaries, run_as
from dbdyno.bench.engine.server_paths import free_port
from dbdyno.bench.postgres.binaries import Binaries, fetched_folders, inspect, installed_folders, wheel_folders
from dbdyno.bench.postgres.embedded import USER, EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.rehearse.new_server import CarriedSettings, carried_settings

PG_UPGRADE = "pg_upgrade"
_NEEDED = ("pg_controldata", "pg_resetwal")
"""Programs of the old version that pg_upgrade runs, besides the server."""
_CHECK_S, _UPGRADE_S = 600, 24 * 3600
_PASSED = re.compile(r"^(?:Checking|Performing|Finding|Verifying).*\bok$")
_OUTCOME = re.compile(r"^\S.*\s(?:ok|warning|fatal|failure)$|^-+$|^\*|^Performing Consistency|^\s*$")
_SAID_MOST, _LISTED_MOST = 12, 20
"""Maximum number of lines that an error quotes from pg_upgrade's output, and from a list that pg_upgrade wrote."""
_CHECKSUMS_OPTION_SINCE = 18
"""Major version since which initdb enables checksums by default."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A data folder to upgrade.

    Attributes:
        folder: The data folder.
        binaries: Programs of its version.
        is_link: True to link files instead of copying them.
        control: Output of pg_controldata for the folder, by label.
    """

    folder: Path
    binaries: Binaries
    is_link: bool
    control: Mapping[str, str]


def named_upgrade(text: str) -> Upgrade:
    """Return the upgrade that `copy=FOLDER` or `link=FOLDER` refers to.

    Raises:
        TargetError: It is no data folder, a server runs on it, or the programs of its version are not here.
    """
    kind, _, value = text.partition("=")
    if kind not in ("copy", "link") or not value:
        raise TargetError(
            f"--upgrade {text}: expected copy=FOLDER or link=FOLDER",
            next_step="name a copy of the old server's data folder, on which no server runs; the upgrade makes "
            "it unusable",
        )
    folder = Path(value).expanduser().absolute()
    try:
        major = int((folder / "PG_VERSION").read_text())
        is_used = (folder / "postmaster.pid").exists()
        spaces = list((folder / "pg_tblspc").iterdir())
    except (OSError, ValueError) as error:
        raise TargetError(
            f"is not a data folder of PostgreSQL: {error}",
            where=str(folder),
            next_step="name the folder that contains PG_VERSION",
        ) from None
    if is_used:
        raise TargetError(
            "a server runs on this data folder, or was not shut down (it has a postmaster.pid)",
            where=str(folder),
            next_step="name a copy of the data folder on which no server runs; the upgrade makes it unusable",
        )
    if spaces:
        raise TargetError(
            f"has {len(spaces)} tablespaces: pg_upgrade would write into their folders, which are outside this one",
            where=str(folder),
            next_step="rehearse without --upgrade, which copies the database instead",
        )
    binaries = _programs(major)
    account = engine_account()
    control = _control(account, reachable_binaries(account, binaries), folder)
    if control.get("Database cluster state") != "shut down":
        raise TargetError(
            f"was not shut down cleanly: {control.get('Database cluster state', 'its state is unknown')}",
            where=str(folder),
            next_step="start a server of the same version on this folder, and stop it with `pg_ctl stop -m fast`",
        )
    return Upgrade(folder, binaries, kind == "link", control)


@contextlib.contextmanager
def upgraded_server(
    old: Postgres, binaries: Binaries, upgrade: Upgrade, show: Callable[[str], None]
) -> Iterator[tuple[Postgres, CarriedSettings, tuple[str, ...]]]:
    """Upgrade the data folder, start a server on the result, and analyze the database.

    Yields the server, the settings that it took over, and sentences on the upgrade.

    Raises:
        TargetError: pg_upgrade refuses, or the upgraded server lacks the database.
    """
    carried = carried_settings(old, binaries)
    engine = _UpgradedPostgres(binaries, dict(carried.settings), upgrade, show)
    with engine:
        server = Postgres.from_engine(engine).in_database(old.libpq_parameters()["dbname"])
        show("analyzing the upgraded database")
        with contextlib.closing(server.connect(statement_timeout_ms=0)) as conn:
            conn.execute("analyze")
        yield server, carried, tuple(engine.said)


class _UpgradedPostgres(EmbeddedPostgres):
    """A temporary server whose data folder is made by pg_upgrade."""

    def __init__(
        self, binaries: Binaries, settings: Mapping[str, str], upgrade: Upgrade, show: Callable[[str], None]
    ) -> None:
        super().__init__(binaries=binaries, settings=settings, initdb=_initdb_options(binaries, upgrade.control))
        self.upgrade, self.show = upgrade, show
        self.said: list[str] = []

    def _init_data(self, account: Account) -> None:
        super()._init_data(account)
        # Neither the settings nor the rules of access of the old folder are needed: pg_upgrade alone connects.
        self._write("upgrade_hba.conf", "local all all trust\n")
        self._write("upgrade.conf", "")
        own = f"-c config_file={self.folder / 'upgrade.conf'} -c hba_file={self.folder / 'upgrade_hba.conf'}"
        old = reachable_binaries(account, self.upgrade.binaries)
        command: list[str | Path] = [self.binaries.program(PG_UPGRADE), "-b", old.bindir, "-B", self.binaries.bindir]
        command += ["-d", self.upgrade.folder, "-D", self.data_dir, "-U", USER, "-o", own]
        command += ["-p", str(free_port()), "-P", str(free_port()), *(["--link"] if self.upgrade.is_link else [])]
        self.show("pg_upgrade --check")
        checked = self._run_upgrade(account, [*command, "--check"], _CHECK_S)
        kind = "link" if self.upgrade.is_link else "copy"
        passed = sum(_PASSED.match(line) is not None for line in checked.splitlines())
        versions = f"{self.upgrade.binaries.version} to {self.binaries.version}"
        self.said.append(f"pg_upgrade --check, {versions}: {passed} checks passed.")
        self.said += [
            f"pg_upgrade --check: {line.strip()}" for line in checked.splitlines() if not _OUTCOME.match(line)
        ]
        self.show(f"pg_upgrade --{kind}")
        began = time.monotonic()
        self._run_upgrade(account, command, _UPGRADE_S)
        self.said.append(f"pg_upgrade --{kind} took {time.monotonic() - began:.1f} s; then the database was analyzed.")

    def _run_upgrade(self, account: Account, command: list[str | Path], limit_s: int) -> str:
        """Run pg_upgrade and return its output.

        Raises:
            TargetError: pg_upgrade refuses the folder, or does not finish within `limit_s`.
        """
        try:
            done = run_as(account, command, cwd=self.socket_dir, timeout_s=limit_s)
        except (OSError, subprocess.SubprocessError) as error:
            raise TargetError(
                f"pg_upgrade cannot be run: {error}",
                where=str(self.upgrade.folder),
                next_step="check the installation of PostgreSQL's programs",
            ) from error
        if done.returncode == 0:
            return done.stdout
        raise TargetError(
            f"pg_upgrade refuses the upgrade: {self._refusal(done.stdout) or f'exit {done.returncode}'}",
            where=str(self.upgrade.folder),
            next_step="correct this cause in a copy of the old database; the real upgrade would fail for the same "
            "reason",
        )

    def _refusal(self, output: str) -> str:
        """Return pg_upgrade's messages and the lists that they refer to, which are removed with the server."""
        said = []
        for line in output.splitlines():
            words = " ".join(line.split())
            if words.startswith("/") and self.folder in Path(words).parents:
                with contextlib.suppress(OSError):
                    said.append("; ".join(Path(words).read_text(errors="replace").splitlines()[:_LISTED_MOST]))
            elif words and (words.endswith("fatal") or not _OUTCOME.match(line)):
                said.append(words)
        return " ".join(said[-_SAID_MOST:])


def _programs(major: int) -> Binaries:
    """Return the programs of the old version that pg_upgrade needs.

    Raises:
        TargetError: They are not on this machine.
    """
    lacking = ""
    for found in inspect((*installed_folders(os.environ), *wheel_folders(), *fetched_folders()), "--upgrade"):
        missing = [name for name in _NEEDED if not found.program(name).exists()]
        if found.major == major and not missing:
            return found
        if found.major == major:
            lacking = f" ({found.bindir} has no {missing[0]})"
    raise TargetError(
        f"pg_upgrade needs the programs of PostgreSQL {major}, the version of the data folder, but they are not "
        f"installed here{lacking}",
        next_step=f"install PostgreSQL {major} beside the new version, or rehearse without --upgrade",
    )


def _control(account: Account, binaries: Binaries, folder: Path) -> dict[str, str]:
    done = run_as(account, [binaries.program("pg_controldata"), folder], cwd=Path("/"))
    if done.returncode != 0:
        raise TargetError(
            f"cannot be read by the user that runs servers ('{account.name}'): {done.stdout.strip().splitlines()[-1]}",
            where=str(folder),
            next_step=f"give the folder to that user with: chown -R {account.name} {folder}",
        )
    pairs = (line.partition(":") for line in done.stdout.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _initdb_options(binaries: Binaries, control: Mapping[str, str]) -> list[str]:
    """Return the initdb options that make the new cluster compatible with the old one for pg_upgrade."""
    size = int(control.get("Bytes per WAL segment", 16 << 20)) >> 20
    options = [f"--wal-segsize={size}"]
    if control.get("Data page checksum version", "0") != "0":
        options.append("--data-checksums")
    elif binaries.major >= _CHECKSUMS_OPTION_SINCE:
        options.append("--no-data-checksums")
    return options
