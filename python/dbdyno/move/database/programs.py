"""pg_dump of the newer of two servers: where it is, and how to run it without a password in its arguments.

pg_dump reads servers of its own version and older ones, and its archives are meant for servers of its own version and
newer. The programs of the newer server are therefore the right ones, whether that is the source or the target.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psycopg

from dbdyno.base.errors import MoveError
from dbdyno.base.processes import child_environment
from dbdyno.bench.postgres.binaries import Binaries, installed_folders, version_of, wheel_folders
from dbdyno.bench.postgres.server import Postgres

LOCK_WAIT_MS = 10_000


def find_programs(least: int, env: Mapping[str, str] | None = None) -> Binaries:
    """Return the programs of major version `least`, else of the next newer installed version.

    Args:
        least: Major version of the newer server.
        env: Environment variables; None means those of this process.

    Raises:
        MoveError: No pg_dump of that version or a newer one is installed.
    """
    env = os.environ if env is None else env
    found: list[Binaries] = []
    for one in _find_installed(env):
        if one.major == least:
            return one  # none fits better, and to ask the others takes a tenth of a second
        found.append(one)
    fits = [one for one in found if one.major > least]
    if fits:
        return min(fits, key=lambda one: one.major)
    known = ", ".join(sorted({one.version for one in found})) or "none"
    raise MoveError(
        f"no pg_dump of PostgreSQL {least} or newer is installed (found: {known})",
        where="pg_dump",
        next_step=f"install PostgreSQL's client programs {least} (Debian: postgresql-client-{least}), or name their"
        " folder in DBDYNO_PG_BIN",
    )


def _find_installed(env: Mapping[str, str]) -> Iterator[Binaries]:
    seen = set()
    forced = env.get("DBDYNO_PG_BIN")
    for folder in [*([Path(forced)] if forced else []), *installed_folders(env), *wheel_folders()]:
        if folder not in seen and (folder / "pg_dump").is_file():
            seen.add(folder)
            version = version_of(folder / "pg_dump")
            if version is not None:
                yield Binaries(folder, version, "installed")


def dump(server: Postgres, programs: Binaries, file: Path, arguments: Sequence[str], name: str) -> None:
    """Write an archive of a database with pg_dump, in its custom format.

    Args:
        server: The server and its database.
        programs: The programs to use.
        file: The archive to write.
        arguments: What to dump.
        name: Application name of pg_dump's session.

    Raises:
        MoveError: pg_dump failed; the error contains its message.
    """
    command: list[str | Path] = [programs.bindir / "pg_dump", "--format=custom", "--compress=0", "--encoding=UTF8"]
    command += [f"--lock-wait-timeout={LOCK_WAIT_MS}", "--no-password", *arguments, f"--file={file}"]
    kept = {key: value for key, value in child_environment().items() if not key.startswith("PG")}
    env = {**kept, **connection_environment({**server.libpq_parameters(), "application_name": name})}
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _, said = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    if process.returncode != 0:
        lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
        raise MoveError(
            f"pg_dump {programs.version} failed: {'; '.join(lines[:4]) or process.returncode}",
            where=server.safe_dsn,
            next_step="check that this role may read the whole database; run pg_dump manually to see the same error",
        )
    file.chmod(0o600)


def connection_environment(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that make libpq of any version use these connection parameters.

    An older libpq ignores environment variables that it does not know, but refuses unknown parameters in a connection
    string.

    Raises:
        MoveError: There is no environment variable for a secret parameter.
    """
    names = {
        one.keyword.decode(): one.envvar.decode()
        for one in psycopg.pq.Conninfo.get_defaults()
        if one.envvar is not None
    }
    if "sslpassword" in parameters:
        raise MoveError(
            "the password of a TLS key cannot be passed to pg_dump safely: other users can read its arguments",
            where="sslpassword",
            next_step="use a key that has no password and that only you can read",
        )
    return {names[key]: value for key, value in parameters.items() if key in names}
