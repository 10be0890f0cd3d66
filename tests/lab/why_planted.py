"""Causes planted between two runs, two arms or two intervals of snapshots, and a check of the cause named first.

A case has the initial statements (`setup`), the load (`script`), the planted cause, and the kinds of cause naming it.
The cases of `why_cases` were used to write the rules; those of `why_held_out` were not.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.study.analysis.analyse import analyse
from dbdyno.study.analysis.pair import analyse_pair
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.run.execute import start
from together import meanwhile, together

sys.path.insert(0, str(Path(__file__).parents[1] / "snapshot"))

Engine = EmbeddedPostgres
Planting = Callable[[Engine], contextlib.AbstractContextManager[None]]
MORE = 4
"""Factor for the number of blocks when the tool reports that more blocks are needed."""
RESET = (
    "alter database postgres reset all",
    "drop schema public cascade",
    "create schema public",
    "create extension pg_stat_statements",
)
"""Statements that restore the initial state before a case."""
SETTINGS: dict[str, Any] = {
    "shared_preload_libraries": "pg_stat_statements",
    "autovacuum": "off",
    "shared_buffers": "32MB",
    "checkpoint_timeout": "1h",
    "max_wal_size": "4GB",
    "wal_recycle": "off",
}
"""Settings of the server. WAL segments are not recycled, so that checkpoints do not save work for sessions that write
WAL: with the default, a storm of checkpoints was 16 % faster than none.
"""

_PLAN = """\
title = "planted"
target = "{dsn}"
[workload]
scripts = [{{name = "s", text = '''{script}'''}}]
[load]
sessions = {sessions}
[schedule]
blocks = {blocks}
warmup_blocks = 1
turn = "{turn}"
slice = "50ms"
[watch]
overhead_blocks = 0
activity_hz = 60
[verdict]
metric = "mean"
accept = ["level", "difference"]
{more}
"""


@dataclass(frozen=True)
class Case:
    """A planted cause between two runs, or two intervals of snapshots."""

    name: str
    where: str
    names_it: tuple[str, ...]
    script: str
    setup: tuple[str, ...] = ()
    plant: Planting | None = None
    sessions: int = 2
    plan: str = ""
    about: str = ""
    sampled: bool = False
    times: int = 30
    statements: tuple[str, ...] = field(default=())


def in_runs(
    name: str, cause: str, script: str, setup: tuple[str, ...], plant: Planting, *, about: str = "", sessions: int = 2
) -> Case:
    """Return a cause planted between two runs of a script."""
    return Case(name, "runs", (cause,), script, setup, plant, sessions=sessions, about=about)


def cold_plan(title: str, setup: tuple[str, ...], script: str, arms: tuple[str, str]) -> str:
    """Return a plan whose second arm has cold caches."""
    return f"""\
title = "{title}"
target = "postgres"
[workload]
setup = {json.dumps(setup)}
scripts = [{{name = "s", text = '''
{script}
'''}}]
[load]
sessions = 2
[schedule]
blocks = 12
warmup_blocks = 1
turn = "250ms"
[watch]
overhead_blocks = 0
activity_hz = 100
[verdict]
metric = "mean"
accept = ["level", "difference"]
[[arm]]
name = "{arms[0]}"
[[arm]]
name = "{arms[1]}"
cold = true
"""


def in_plan(name: str, cause: str, plan: str) -> Case:
    """Return a cause planted between two arms of a plan."""
    return Case(name, "runs", (cause,), "", plan=plan)


def in_snapshots(
    name: str,
    cause: str,
    setup: tuple[str, ...],
    plant: Planting,
    *statements: str,
    times: int = 30,
    about: str = "",
    sampled: bool = False,
) -> Case:
    """Return a cause planted between two intervals of snapshots, while these statements run."""
    return Case(
        name, "snapshots", (cause,), "", setup, plant, about=about, sampled=sampled, times=times, statements=statements
    )


def run_sql(engine: Engine, *statements: str) -> None:
    """Execute statements in a new session."""
    known: Any = engine.conninfo()
    with contextlib.closing(psycopg.connect(**known, autocommit=True, prepare_threshold=None)) as session:
        for statement in statements:
            session.execute(statement)  # type: ignore[arg-type]


def work_sql(engine: Engine, *statements: str) -> None:
    """Execute statements of a load in a new session; two of them may deadlock, and the load continues."""
    known: Any = engine.conninfo()
    with contextlib.closing(psycopg.connect(**known, autocommit=True, prepare_threshold=None)) as session:
        for statement in statements:
            with contextlib.suppress(psycopg.errors.DeadlockDetected):
                session.execute(statement)  # type: ignore[arg-type]


def by_sql(*statements: str) -> Planting:
    """Plant the cause with statements, whose effect stays."""

    @contextlib.contextmanager
    def plant(engine: Engine) -> Iterator[None]:
        run_sql(engine, "set pg_stat_statements.track = 'none'", *statements)
        yield

    return plant


@contextlib.contextmanager
def _meanwhile(engine: Engine, work: Callable[[psycopg.Connection[Any], threading.Event], None]) -> Iterator[None]:
    """Repeat `work` in a session of its own until the context ends."""
    known: Any = engine.conninfo()

    def run(stop: threading.Event) -> None:
        with contextlib.closing(psycopg.connect(**known, autocommit=True, prepare_threshold=None)) as session:
            session.execute("set pg_stat_statements.track = 'none'")
            while not stop.is_set():
                work(session, stop)

    with meanwhile(run):
        yield


def by_session(*statements: str, hold_s: float, pause_s: float = 0.005) -> Planting:
    """Plant a session that holds a transaction open for a while, again and again."""

    def hold(session: psycopg.Connection[Any], stop: threading.Event) -> None:
        session.execute("begin")
        for statement in statements:
            session.execute(statement)  # type: ignore[arg-type]
        stop.wait(hold_s)
        session.execute("commit")
        stop.wait(pause_s)

    return lambda engine: _meanwhile(engine, hold)


def by_hogs(number: int = 8) -> Planting:
    """Twenty cases that were written before the rules were tuned, and not examined until the rules were finished."""

    @contextlib.contextmanager
    def plant(engine: Engine) -> Iterator[None]:
        hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
        try:
            yield
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()

    return plant


def by_checkpoints(every_s: float = 0.1) -> Planting:
    """Plant checkpoints, one after the other."""

    def ask(session: psycopg.Connection[Any], stop: threading.Event) -> None:
        if not stop.wait(every_s):
            session.execute("checkpoint")

    return lambda engine: _meanwhile(engine, ask)


def by_restart(*statements: str) -> Planting:
    """Execute statements, then restart the server."""

    @contextlib.contextmanager
    def plant(engine: Engine) -> Iterator[None]:
        run_sql(engine, *statements)
        engine.restart()
        yield

    return plant


def why_of_runs(case: Case, engine: Engine, folder: Path, *, blocks: int = 6, turn: str = "800ms") -> JsonObject:
    """Run the same load before and after; return the comparison of both runs."""
    run_sql(engine, *case.setup)
    dsn = make_conninfo("", **engine.tcp_conninfo())
    text = _PLAN.format(
        dsn=dsn, script=case.script, sessions=case.sessions, blocks=blocks, turn=turn, more='[[arm]]\nname = "s"'
    )
    found = _why_of_runs(case, engine, text, folder)
    if found["next"] != "more blocks":
        return found
    # What the tool says, a user does: the same on the same server, as it is now, with more blocks.
    run_sql(engine, *RESET, *case.setup)
    return _why_of_runs(case, engine, text.replace(f"blocks = {blocks}", f"blocks = {MORE * blocks}"), folder)


def _why_of_runs(case: Case, engine: Engine, text: str, folder: Path) -> JsonObject:
    plan = parse_plan(text, folder / "plan.toml")
    first = start(plan, folder, seed=1)
    with case.plant(engine) if case.plant else contextlib.nullcontext():
        second = start(plan, folder, seed=2)
    found: JsonObject = analyse_pair(first, second)["why"][0]
    return found


def why_of_plan(case: Case, folder: Path) -> JsonObject:
    """Run a plan with two arms as it is; return its causes."""
    run = start(parse_plan(case.plan, folder / "plan.toml"), folder, seed=1)
    found: JsonObject = analyse(run)["why"][0]
    return found


def why_of_snapshots(case: Case, engine: Engine, folder: Path) -> JsonObject:
    """Run one load in two intervals; return the comparison of both."""
    from planted import Planted

    from dbdyno.snapshot.engines.view import Options
    from dbdyno.snapshot.store.folder import Store

    run_sql(engine, *case.setup)
    store = Store(folder / "snaps")
    planted = Planted("postgres", make_conninfo("", **engine.conninfo()), store, Options(), pause_s=0.05)

    def load() -> None:
        with together(*[partial(work_sql, engine, *(case.statements * case.times))] * 2):
            pass

    with contextlib.ExitStack() as stack:

        def plant() -> None:
            if case.plant:
                stack.enter_context(case.plant(engine))

        compared, _ = planted.models(load, plant, None, sampled=case.sampled)
    found: JsonObject = compared["why"][0]
    return found


def hit(case: Case, why: JsonObject) -> bool:
    """Return True if the planted cause is the first one named."""
    first = why["causes"][0] if why["causes"] else None
    return (
        first is not None and first["code"] in case.names_it and case.about in f"{first['about']} {first['sentence']}"
    )


def told(case: Case, why: JsonObject, began: float) -> str:
    """Return one line of the score."""
    named = "; ".join(f"{one['code']} {100 * (one['share'] or 0):.0f} %: {one['sentence']}" for one in why["causes"])
    word = "hit " if hit(case, why) else "MISS"
    took = time.monotonic() - began
    return f"{word} {case.where:9} {case.name:34} {took:5.1f} s  {named or 'nothing: ' + why['withheld']}"


def asked(case: Case, engine: Engine, folder: Path) -> JsonObject:
    """Run a case and return the causes that were found."""
    if case.where == "snapshots":
        return why_of_snapshots(case, engine, folder)
    return why_of_plan(case, folder) if case.plan else why_of_runs(case, engine, folder)
