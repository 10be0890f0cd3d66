"""New side made from the old one: a server of another version, with the old settings and a copy of the data.

Only settings that change plans or execution, and those that sessions see, are copied to the new server, which keeps its
own paths, log sizes and connection limits. Settings that the new version renamed get their new name; settings that it
no longer has are reported.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from psycopg import errors, sql

from dbdyno.base.errors import MoveError, TargetError
from dbdyno.base.processes import child_environment
from dbdyno.bench.postgres.binaries import (
    Binaries,
    binaries_in,
    fetched_folders,
    inspect,
    installed_folders,
    newest,
    wheel_folders,
)
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.database.job import move_database
from dbdyno.move.database.masks import Mask
from dbdyno.move.database.result import MovedDatabase
from dbdyno.move.reading.run import JobOptions, new_id
from dbdyno.rehearse.changed_settings import change_clause, name_in, value_in
from dbdyno.rehearse.database_settings import search_path
from dbdyno.rehearse.setting_trials import TRIED_SETTINGS
from dbdyno.rehearse.settings import settable_value

CARRIED_NAMES = (
    *TRIED_SETTINGS,
    "default_statistics_target",
    "shared_buffers",
    "temp_buffers",
    "maintenance_work_mem",
    "max_parallel_workers",
    "max_worker_processes",
    "cursor_tuple_fraction",
    "jit_inline_above_cost",
    "jit_optimize_above_cost",
    "parallel_leader_participation",
    "min_parallel_index_scan_size",
    "recursive_worktable_factor",
    "enable_async_append",
    "enable_distinct_reordering",
    "enable_gathermerge",
    "enable_group_by_reordering",
    "enable_parallel_append",
    "enable_partitionwise_aggregate",
    "enable_presorted_aggregate",
    "enable_self_join_elimination",
    "geqo_effort",
    "geqo_generations",
    "geqo_pool_size",
    "geqo_seed",
    "geqo_selection_bias",
    "geqo_threshold",
    "force_parallel_mode",
    "debug_parallel_query",
    "timezone",
    "datestyle",
    "intervalstyle",
    "bytea_output",
    "default_transaction_isolation",
    "standard_conforming_strings",
    "default_text_search_config",
    "extra_float_digits",
    "xmloption",
    "transform_null_equals",
    "quote_all_identifiers",
    "operator_precedence_warning",
    "db_user_namespace",
)
"""Settings that the new server takes over if the old server's files or command line set them."""
_UNLISTED = ("force_parallel_mode", "debug_parallel_query")
"""Settings for developers, which `postgres --describe-config` does not list."""
_SET = """select name, setting || coalesce(' ' || unit, '') from pg_settings
where source in ('configuration file', 'command line', 'database', 'user', 'database user')
and context <> 'internal' order by name"""
_KIND = """select pg_encoding_to_char(encoding), datcollate, datctype, pg_database_size(oid),
to_jsonb(d) ->> 'datlocprovider', coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')
from pg_database d where datname = current_database()"""
_PROVIDERS = {
    "i": sql.SQL(" locale_provider icu icu_locale {}"),
    "b": sql.SQL(" locale_provider builtin builtin_locale {}"),
}
"""Options of CREATE DATABASE for collation providers other than the system, and for their locale."""


@dataclass(frozen=True, slots=True)
class CarriedSettings:
    """What a new server takes over.

    Attributes:
        settings: Settings for the new server.
        gone: Names of settings that the new server does not have.
        fates: Clauses about settings of the old server that were renamed or removed, or mean something else.
        moved: Sentences that the move of the data reported.
    """

    settings: Mapping[str, str]
    gone: tuple[str, ...]
    fates: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()


def named_binaries(text: str, needed: Sequence[str] = ()) -> Binaries:
    """Return the server programs that `bindir=FOLDER` or `version=17` refers to.

    Args:
        text: What the user wrote.
        needed: Programs that must be in the same folder as the server program.

    Raises:
        TargetError: The folder has no server, no server of the version is installed, or a needed program is missing.
    """
    found = _named_binaries(text, needed)
    missing = [name for name in needed if not found.program(name).exists()]
    if missing:
        raise TargetError(
            f"has no {missing[0]}",
            where=str(found.bindir),
            next_step=f"install all programs of PostgreSQL {found.major}, or rehearse without --upgrade",
        )
    return found


def _named_binaries(text: str, needed: Sequence[str]) -> Binaries:
    kind, _, value = text.partition("=")
    if kind == "bindir" and value:
        return binaries_in(Path(value).expanduser(), "--new")
    if kind != "version" or not value.isdigit():
        raise TargetError(
            f"--new {text}: expected bindir=FOLDER or version=17", next_step="name a folder with a server's programs"
        )
    folders = (*installed_folders(os.environ), *wheel_folders(), *fetched_folders())
    all_found = [one for one in inspect(folders, "--new") if one.major == int(value)]
    complete = [one for one in all_found if all(one.program(name).exists() for name in needed)]
    found = newest(complete or all_found)
    if found is None:
        raise TargetError(
            f"no PostgreSQL {value} is installed here",
            next_step=f"install it, or name the folder of its programs: --new bindir=/usr/lib/postgresql/{value}/bin;"
            f" in a clone of dbdyno, `tools/matrix --fetch {value}` downloads it (12 to 18 only)",
        )
    return found


def carried_settings(old: Postgres, binaries: Binaries) -> CarriedSettings:
    """Return the old server's settings in the form that a server of these programs accepts."""
    with contextlib.closing(old.connect()) as conn:
        rows = conn.execute(_SET).fetchall()
        major = conn.info.server_version // 10_000
    known = _known_settings(binaries)
    settings, gone, fates = {}, [], []
    for name, value in rows:
        own, told = name_in(str(name), binaries.major), change_clause(str(name), major, binaries.major)
        if told is not None:
            fates.append(told)
        if name not in CARRIED_NAMES:
            continue
        if own in known or own in _UNLISTED:
            settings[own] = value_in(own, settable_value(str(value)), major, binaries.major)
        elif told is None:
            gone.append(str(name))
    settings["search_path"] = search_path(old)  # here the role is another one, and "$user" another schema
    return CarriedSettings(settings, tuple(gone), tuple(fates))


@contextlib.contextmanager
def copied_server(
    old: Postgres,
    binaries: Binaries,
    show: Callable[[str], None],
    masks: Sequence[Mask] = (),
    mask_key: str = "",
) -> Iterator[tuple[Postgres, CarriedSettings]]:
    """Start a server of these programs with a copy of the old database, and remove it when the context ends.

    Raises:
        TargetError: The disk is too small, or the server does not start or lacks the database's locale.
        MoveError: The database cannot be moved.
    """
    name = old.libpq_parameters()["dbname"]
    with contextlib.closing(old.connect()) as conn:
        row = conn.execute(_KIND).fetchone() or ("UTF8", "C", "C", 0, None, None)
    encoding, collate, ctype, size, provider, locale = row
    _refuse_small_disk(int(size))
    carried = carried_settings(old, binaries)
    show(f"starting PostgreSQL {binaries.version}")
    with EmbeddedPostgres(binaries=binaries, settings=dict(carried.settings)) as engine:
        server = Postgres.from_engine(engine)
        made = sql.SQL("create database {} template template0 encoding {} lc_collate {} lc_ctype {}")
        more = _PROVIDERS[provider].format(sql.Literal(locale)) if provider in _PROVIDERS and locale else sql.SQL("")
        if name != "postgres":
            with contextlib.closing(server.connect(statement_timeout_ms=0)) as conn:
                try:
                    names = (encoding, collate, ctype)
                    conn.execute(made.format(sql.Identifier(name), *map(sql.Literal, names)) + more)
                except (errors.WrongObjectType, errors.InvalidParameterValue) as error:
                    raise TargetError(
                        f"the new server cannot have the database's locale {collate}: {error}",
                        next_step="install the locale on this machine, or make the new server manually",
                    ) from None
        own = server.in_database(name)
        moved = _move_database(old, own, show, masks, mask_key)
        said = (*(f"The copy differs: {one}" for one in moved.differs), *moved.notes)
        yield own, replace(carried, moved=tuple(f"{one.rstrip('.')}." for one in said))


def _move_database(
    old: Postgres, new: Postgres, show: Callable[[str], None], masks: Sequence[Mask], mask_key: str
) -> MovedDatabase:
    """Move the database with a temporary job; errors do not contain the advice to resume that job."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-rehearse-") as folder:
        try:
            return move_database(
                old,
                new,
                lambda: Path(folder) / "job",
                new_id(),
                JobOptions(mask_key=mask_key, say=show),
                lambda: None,
                hold=0,
                level="counts",
                masks=masks,
            )
        except MoveError as error:
            error.next_step = _RESUME.sub(", then rehearse again", error.next_step or "")
            raise


_RESUME = re.compile(r", then `dbdyno move resume[^`]*`")


def _known_settings(binaries: Binaries) -> set[str]:
    """Return the names of the settings that a server program knows."""
    done = subprocess.run(
        [binaries.program("postgres"), "--describe-config"],
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return {line.split("\t", 1)[0].lower() for line in done.stdout.splitlines()}


def _refuse_small_disk(size: int) -> None:
    place = Path(tempfile.gettempdir() if os.environ.get("TMPDIR") else "/var/tmp")  # noqa: S108 - asked for its room
    found = os.statvfs(place)
    free = found.f_bavail * found.f_frsize
    if size * 1.3 > free:
        raise TargetError(
            f"the copy needs about {size * 1.3 / 1e9:.1f} GB, but only {free / 1e9:.1f} GB are free",
            where=str(place),
            next_step="set TMPDIR to a folder with more free space",
        )
