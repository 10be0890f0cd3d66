"""The user account under which an embedded engine runs, and that account's access to the engine's binaries.

PostgreSQL refuses to run as root. An ordinary user runs it under their own account; root runs it as `postgres` if that
account exists, otherwise as `nobody`. No account is created and no folder's mode is widened: if the engine's user
cannot reach the binaries (for example a clone in root's home), they are copied to a cache that it can read.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.errors import TargetError, errors_as
from dbdyno.base.processes import search_folders
from dbdyno.bench.postgres.binaries import Binaries

CACHE = "/var/cache/dbdyno"
"""Folder for copies of binaries for engines started by root; owned by root, readable by all.

The environment variable DBDYNO_CACHE names another folder.
"""

KEPT_VARIABLES = ("PATH", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""The only variables of this process's environment that are passed to the engine's processes."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user account of this machine, as numeric IDs; `other` is True if it is not the account of this process."""

    uid: int
    gid: int
    name: str
    other: bool


def engine_account() -> Account:
    """Return the unprivileged user account for the engine.

    Raises:
        TargetError: This process runs as root and no such account exists.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), "(this user)", other=False)
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return Account(entry.pw_uid, entry.pw_gid, name, other=True)
    raise TargetError(
        "PostgreSQL refuses to run as root, and there is neither a user 'postgres' nor 'nobody'",
        next_step="run dbdyno as an ordinary user, or use a running server: --target postgresql://...",
    )


def run_as(
    account: Account,
    command: Sequence[str | Path],
    *,
    cwd: Path,
    timeout_s: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a program to completion as the account, with a bare environment, and capture its output.

    Raises:
        OSError: The program cannot be started.
        subprocess.TimeoutExpired: It runs longer than `timeout_s` seconds.
    """
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=bare_environment(cwd),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout_s,
        check=False,
        umask=0o077,
        start_new_session=True,
        user=account.uid if account.other else None,
        group=account.gid if account.other else None,
        extra_groups=[] if account.other else None,
    )


def bare_environment(home: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment without PG* variables, without this process's locale and without secrets.

    Args:
        home: Value of HOME.
        env: Environment to take `KEPT_VARIABLES` from; None means the environment of this process.
    """
    env = os.environ if env is None else env
    kept = {name: env[name] for name in KEPT_VARIABLES if name in env}
    path = os.pathsep.join(str(folder) for folder in search_folders(kept.get("PATH", "")))
    return {**kept, "PATH": path or os.defpath, "LC_ALL": "C", "HOME": str(home)}


def can_enter(account: Account, folder: Path) -> bool:
    """Return True if the account can make this folder its working directory; a process of the account tries it."""
    try:
        done = run_as(account, ["/bin/sh", "-c", 'cd -- "$1"', "sh", folder], cwd=Path("/"))
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


@functools.cache
def can_run(account: Account, binaries: Binaries) -> bool:
    """Return True if the account can execute the server's programs; the answer is kept for further servers."""
    return all(refusal(account, [binaries.program(name), "--version"]) is None for name in ("postgres", "initdb"))


def refusal(account: Account, command: Sequence[str | Path]) -> str | None:
    """Return None if the account can run the command, otherwise its output or the error."""
    try:
        done = run_as(account, command, cwd=Path("/"))
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None if done.returncode == 0 else done.stdout.strip() or f"exit {done.returncode}"


def reachable_binaries(account: Account, binaries: Binaries) -> Binaries:
    """Return the binaries if the account can run them, otherwise a copy that it can run.

    Raises:
        TargetError: The account can run neither the binaries nor a copy.
    """
    if not account.other or can_run(account, binaries):
        return binaries
    if not can_enter(account, Path("/")):
        raise TargetError(
            f"PostgreSQL refuses to run as root, and this process may not switch to the user '{account.name}'",
            next_step="run dbdyno as an ordinary user, or grant the capabilities SETUID and SETGID",
        )
    cache = Path(os.environ.get("DBDYNO_CACHE") or CACHE)
    problem = f"the user '{account.name}' cannot run the server's programs in {binaries.bindir}"
    step = f"free space in {cache}, or run dbdyno as an ordinary user"
    with errors_as(TargetError, OSError, f"{problem}, and they cannot be copied", next_step=step):
        copied = Binaries(_copy(binaries, cache), binaries.version, binaries.source)
    if not can_run(account, copied):
        raise TargetError(
            f"the user '{account.name}' can run the server's programs neither in"
            f" {binaries.bindir} nor in the copy {copied.bindir}",
            next_step="run dbdyno as an ordinary user, or install a server for all users",
        )
    return copied


def _copy(binaries: Binaries, cache: Path) -> Path:
    """Copy bin, lib, share (and a wheel's bundled libraries) once per version and origin; return the copy's bindir."""
    tree = binaries.bindir.parent
    mark = f"{tree}:{binaries.bindir.stat().st_mtime_ns}"
    name = f"postgresql-{binaries.version}-{hashlib.sha256(mark.encode()).hexdigest()[:12]}"
    final = cache / name
    bindir = final / tree.parent.name / tree.name / "bin"
    if not cache.exists():
        cache.mkdir(parents=True)
        cache.chmod(0o755)
    if not _is_trusted(cache):
        raise TargetError(
            f"the cache folder {cache} belongs to another user or can be written by others",
            next_step=f"remove {cache}, then run the command again",
        )
    if _is_trusted(final):
        return bindir
    aside = Path(tempfile.mkdtemp(prefix=".copy-", dir=cache))
    try:
        _copy_tree(tree, aside / tree.parent.name / tree.name)
        libraries = tree.parent.parent / f"{tree.parent.name}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, aside / libraries.name)
        _open_for_reading(aside)
        try:
            aside.rename(final)
        except OSError:  # another process finished first: use its copy
            if not _is_trusted(final):
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return bindir


def _copy_tree(source: Path, goal: Path) -> None:
    for part in ("bin", "lib", "share"):
        if (source / part).is_dir():
            shutil.copytree(
                source / part,
                goal / part,
                symlinks=True,
                ignore=shutil.ignore_patterns("*.a", "pgxs", "pkgconfig", "doc", "man"),
            )


def _open_for_reading(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(0o755 if path.is_dir() or mode & 0o100 else 0o644)


def _is_trusted(path: Path) -> bool:
    """Return True if the path is a folder that we own and nobody else can write.

    In any other folder another user could plant programs.
    """
    try:
        found = path.lstat()
    except OSError:
        return False
    return path.is_dir() and found.st_uid == os.geteuid() and not found.st_mode & 0o022
