"""Under which user an embedded engine runs, and what that user can reach.

PostgreSQL refuses to run as root. An ordinary user runs it as itself; root runs it as `postgres`
where that account exists, else as `nobody`. No account is made and no folder's mode is widened:
where the engine's user cannot reach the binaries (a clone in root's home, say), they are copied to
a cache that it can read.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.errors import TargetError
from dbdyno.base.processes import search_folders
from dbdyno.bench.postgres.binaries import Binaries

CACHE = "/var/cache/dbdyno"
"""Copies of binaries for engines started by root; owned by root, readable by all.

The variable DBDYNO_CACHE names another folder.
"""

KEPT_VARIABLES = ("PATH", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""The only variables of our environment that the engine's processes see."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this machine, given to a process by number; `other` says that it is not our own."""

    uid: int
    gid: int
    name: str
    other: bool


def engine_account() -> Account:
    """The unprivileged user for the engine. Raises `TargetError` for root without such a user."""
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
        "PostgreSQL does not run as root, and there is neither a user 'postgres' nor 'nobody'",
        next_step="run dbdyno as an ordinary user, or use an engine that runs already: --target postgresql://...",
    )


def run_as(
    account: Account,
    command: Sequence[str | Path],
    *,
    cwd: Path,
    timeout_s: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end as the account, with a bare environment; output is captured."""
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
    """An environment without PG* variables, locale, and whatever secrets ours may hold."""
    env = os.environ if env is None else env
    kept = {name: env[name] for name in KEPT_VARIABLES if name in env}
    path = os.pathsep.join(str(folder) for folder in search_folders(kept.get("PATH", "")))
    return {**kept, "PATH": path or os.defpath, "LC_ALL": "C", "HOME": str(home)}


def can_enter(account: Account, folder: Path) -> bool:
    """Whether the account can make this folder its working folder; the kernel is asked."""
    try:
        done = run_as(account, ["/bin/sh", "-c", 'cd -- "$1"', "sh", folder], cwd=Path("/"))
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def can_run(account: Account, binaries: Binaries) -> bool:
    """Whether the account can execute the server's programs."""
    return all(refusal(account, [binaries.program(name), "--version"]) is None for name in ("postgres", "initdb"))


def refusal(account: Account, command: Sequence[str | Path]) -> str | None:
    """None where the account can run the command, else what came of it."""
    try:
        done = run_as(account, command, cwd=Path("/"))
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None if done.returncode == 0 else done.stdout.strip() or f"exit {done.returncode}"


def within_reach(account: Account, binaries: Binaries) -> Binaries:
    """The binaries themselves where the account can run them, else a copy that it can.

    Raises `TargetError` where neither is possible.
    """
    if not account.other or can_run(account, binaries):
        return binaries
    if not can_enter(account, Path("/")):
        raise TargetError(
            f"PostgreSQL does not run as root, and this process may not become '{account.name}'",
            next_step="run dbdyno as an ordinary user, or grant the capabilities SETUID and SETGID",
        )
    cache = Path(os.environ.get("DBDYNO_CACHE") or CACHE)
    try:
        copied = Binaries(_copy(binaries, cache), binaries.version, binaries.source)
    except OSError as error:
        raise TargetError(
            f"the user '{account.name}' cannot run the server's programs in {binaries.bindir},"
            f" and they cannot be copied: {error}",
            next_step=f"make room in {cache}, or run dbdyno as an ordinary user",
        ) from error
    if not can_run(account, copied):
        raise TargetError(
            f"the user '{account.name}' can run the server's programs neither in"
            f" {binaries.bindir} nor in the copy {copied.bindir}",
            next_step="run dbdyno as an ordinary user, or install a server for all users",
        )
    return copied


def _copy(binaries: Binaries, cache: Path) -> Path:
    """Copy bin, lib, share (and a wheel's own libraries) once per version and origin; returns
    bindir.
    """
    tree = binaries.bindir.parent
    mark = f"{tree}:{binaries.bindir.stat().st_mtime_ns}"
    name = f"postgresql-{binaries.version}-{hashlib.sha256(mark.encode()).hexdigest()[:12]}"
    final = cache / name
    bindir = final / tree.parent.name / tree.name / "bin"
    if not cache.exists():
        cache.mkdir(parents=True)
        cache.chmod(0o755)
    if not _trusted(cache):
        raise TargetError(
            f"the cache folder {cache} belongs to another user or can be written by others",
            next_step=f"remove {cache}, then run again",
        )
    if _trusted(final):
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
        except OSError:  # another process was first: its copy is as good
            if not _trusted(final):
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


def _trusted(path: Path) -> bool:
    """Ours, and writable by nobody else: otherwise a stranger could plant programs there."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return path.is_dir() and found.st_uid == os.geteuid() and not found.st_mode & 0o022
