"""`dbdyno move SOURCE TARGET --database`: move a whole PostgreSQL database into an empty one."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from dbdyno.base.errors import MoveError
from dbdyno.cli.mask_option import mask_key_of
from dbdyno.cli.move import options as shared
from dbdyno.cli.move.load import LOAD_OPTIONS, refuse

if TYPE_CHECKING:
    from dbdyno.move.database.masks import Mask
    from dbdyno.move.database.result import MovedDatabase
    from dbdyno.move.ledger.folder import Ledger
    from dbdyno.move.reading.run import JobOptions

REFUSED_OPTIONS = (
    *LOAD_OPTIONS,
    "tables",
    "patterns",
    "query",
    "where",
    "columns",
    "as_text",
    "into",
    "partition_by",
    "master",
)
LEVELS = ("counts", "target")


def move_whole_database(
    source: str, to: str, level: str, options: JobOptions, other_options: Mapping[str, Any]
) -> None:
    """Move a database and print the result, or show what would be moved."""
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.database.job import move_database
    from dbdyno.move.database.mask_key import refuse_other_key
    from dbdyno.move.database.masks import read_masks
    from dbdyno.move.reading.run import new_id

    refuse(other_options, REFUSED_OPTIONS, "works only for single tables: --database moves all tables")
    level, masks = level_of(level), read_masks(other_options["masks"])
    key = mask_key_of(other_options["mask_key_file"], masks)
    options = replace(options, mask_key=key)
    if other_options["dry_run"]:
        _show_plan(source, to, other_options["form"], masks)
        return
    begun = unfinished_job(other_options["job"])
    if begun is not None:
        _refuse_other_masks(begun, masks)
        if key:
            refuse_other_key(begun.plan["database"].get("mask_key", ""), key)
        with shared.report_interruption(begun.folder):
            resume_job(begun, source, to, options, level, other_options["form"], hold=other_options["hold"])
        return
    opened, target, job = Postgres.open(source, keep_first=True), Postgres.open(to, keep_first=True), new_id()

    made: list[Path] = []

    def folder() -> Path:
        made.append(
            shared.job_folder({**other_options, "tables": [opened.libpq_parameters().get("dbname", "database")]})
        )
        return made[0]

    try:
        moved = move_database(
            opened,
            target,
            folder,
            job,
            options,
            shared.meter,
            hold=other_options["hold"],
            level=level,
            masks=masks,
        )
    except KeyboardInterrupt:
        if not made:
            raise
        with shared.report_interruption(made[0]):
            raise
    show(moved, other_options["form"])


def _refuse_other_masks(begun: Ledger, masks: Sequence[Mask]) -> None:
    """Raise an error if the user names masks other than those with which the job began."""
    known = list(begun.plan["database"].get("masks", ()))
    if masks and [one.words for one in masks] != known:
        raise MoveError(
            f"the job was started with {'; '.join(known) or 'no mask'}",
            where="--mask",
            next_step="use the same masks, or start a new job in an empty database",
        )


def level_of(level: str) -> str:
    """Return the level of verification: the target's rows are read again unless --verify says otherwise."""
    chosen = click.get_current_context().get_parameter_source("level")
    if chosen is ParameterSource.DEFAULT:
        return "target"
    if level not in LEVELS:
        raise click.UsageError(
            "expected --verify counts or target: the rows of a database are loaded straight into the target's tables"
        )
    return level


def unfinished_job(folder: Path | None) -> Ledger | None:
    """Return the unfinished job in a folder, which the same command resumes, or None."""
    from dbdyno.move.ledger.folder import INNER, Ledger

    if folder is None or not (folder / INNER / "manifest.json").exists():
        return None
    ledger = Ledger.open(folder)
    if ledger.manifest["status"] != "running" or not ledger.plan.get("database"):
        return None
    shared.say(f"job {ledger.plan['id']} was ended before it was complete, and now continues")
    return ledger


def resume_job(
    ledger: Ledger,
    source: str,
    to: str,
    options: JobOptions,
    level: str,
    form: str | None,
    *,
    hold: int = 0,
    restart: bool = False,
) -> None:
    """Resume a job and print the result."""
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.database.job import resume_database

    moved = resume_database(
        lambda: Postgres.open(source, keep_first=True),
        Postgres.open(to, keep_first=True),
        ledger,
        options,
        shared.meter,
        level=level,
        hold=hold,
        restart=restart,
    )
    show(moved, form)


def show(moved: MovedDatabase, form: str | None) -> None:
    """Print the result, and exit with 1 if something differs."""
    if form == "json":
        click.echo(json.dumps(moved.to_json(), ensure_ascii=False, indent=1))
    else:
        for line in moved.sentences():
            click.echo(line)
    if moved.differs:
        click.get_current_context().exit(1)


def _show_plan(source: str, to: str, form: str | None, masks: Sequence[Mask]) -> None:
    """Print what would be moved, after checking the target; nothing is written."""
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.database.job import check_move
    from dbdyno.move.database.plan import plan_move
    from dbdyno.move.database.target import session
    from dbdyno.move.reading.run import new_id

    opened, target, job = Postgres.open(source, keep_first=True), Postgres.open(to, keep_first=True), new_id()
    with session(target, job) as conn, tempfile.TemporaryDirectory(prefix="dbdyno-move-") as place:
        programs = check_move(opened, target, conn, job)
        plan = plan_move(opened, conn, programs, Path(place), job, masks)
    if form == "json":
        click.echo(json.dumps(plan.to_json(), ensure_ascii=False, indent=1))
        return
    for line in plan.sentences():
        click.echo(line)


def refuse_without_database(other_options: Mapping[str, Any]) -> None:
    """Raise `click.UsageError` for --format or a mask without --database."""
    for name, option in (("masks", "--mask"), ("mask_key_file", "--mask-key-file")):
        if other_options.get(name):
            raise click.UsageError(f"{option} works only with --database")
    if other_options["form"] is not None:
        raise click.UsageError("--format works only with --database: use `dbdyno move status JOB` for other formats")


def refuse_servers(source: str, to: str) -> None:
    """Raise an error unless both ends are PostgreSQL servers.

    Raises:
        MoveError: One of them is another engine, a folder or a file.
    """
    for name in (source, to):
        scheme = name.partition("://")[0].lower() if "://" in name else None
        if scheme not in (None, "postgres", "postgresql") or (scheme is None and "=" not in name):
            raise MoveError(
                "--database moves a PostgreSQL database into another PostgreSQL database",
                where=name,
                next_step="write postgresql://user@host/database for both",
            )
