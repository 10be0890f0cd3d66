"""Helpers of several views: folders, rows about runs, names of servers, intervals in addresses."""

from __future__ import annotations

from typing import cast

from starlette.requests import Request

from dbdyno.base import decisions
from dbdyno.base.dsn import without_secrets
from dbdyno.base.errors import EvidenceError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.manifest import Section as Entry
from dbdyno.evidence.run import Run
from dbdyno.page import Cell, Row, Section, Table
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns
from dbdyno.ui.places import Places, Server
from dbdyno.ui.view import address

RUN_COLUMNS = columns("run:text started:text kind:text status:text verdict:verdict headline:text:what_it_says")
HOME = ("Home", "/")
NO_RUN = "There are no runs here. Make one with `dbdyno run redo-size`."


def list_section(name: str, title: str, table: Table, nothing: str = "") -> Section:
    """Return a section with a table; if the table has no rows, return a section that says `nothing`."""
    return (
        Section(name, title, tables=(table,))
        if table.rows
        else Section(name, title, notes=(nothing,) if nothing else ())
    )


def places_of(request: Request) -> Places:
    """Return the folders whose contents the application shows."""
    return cast("Places", request.app.state.places)


def parameter(request: Request, name: str) -> str:
    """Return a parameter of the address, or an empty string."""
    return str(request.query_params.get(name, ""))


def server_of(request: Request) -> Server:
    """Return the server named in the address.

    Raises:
        SnapshotError: There is no such server.
    """
    return places_of(request).server(parameter(request, "store"), parameter(request, "target"))


def server_address(path: str, server: Server, **more: str | int | None) -> str:
    """Return the address of a view of a server."""
    return address(path, store=server.name, target=server.target, **more)


def server_name(server: Server) -> str:
    """Return the name of a server, with its store's name if there are several stores."""
    return fmt.line(f"{server.name}: {server.target}" if server.name else server.target, 80)


def kind_of(run: Run) -> str:
    """Return the kind of a run in one word: experiment, trace, cells, rehearsal and so on."""
    return fmt.line(run.manifest.kind or "experiment", 20)


def target_of(run: Run) -> str:
    """Return the target of a run, such as `postgres` or `model:exadata-x2`; "" if it had no plan."""
    if not run.manifest.has("plan"):
        return ""
    named = run.manifest.plan.get("dsn") or (run.manifest.bench if run.manifest.has("bench") else "")
    return fmt.line(without_secrets(str(named)), 60)


def run_row(run: Run) -> Row:
    """Return a run's row for a list: linked title, time and verdict."""
    verdict: Entry | JsonObject = run.manifest.verdict or {}
    answer = decisions.decision_named(verdict.get("decision"))
    word = fmt.line(answer.word or verdict.get("word") or "", 30) if verdict else ""
    title = fmt.line(run.manifest.title or run.id, 80)
    cells = {
        "run": Cell(title, href=address("/run", id=run.id), notes=(fmt.line(run.id, 90),)),
        "started": fmt.moment(str(run.manifest.started_at)),
        "kind": kind_of(run),
        "status": status_of(run),
        "verdict": Cell(word, tone=answer.tone if word else ""),
        "headline": fmt.line(headline_of(run), 200),
    }
    return Row(cells)


def headline_of(run: Run) -> str:
    """Return the headline of a run's verdict; "" if the run has not been analysed yet."""
    return str(run.manifest.verdict.get("headline") or "") if run.manifest.verdict else ""


def status_of(run: Run) -> str:
    """Return the status of a run; `running, 3 of 20 blocks` while it runs."""
    if run.status != "running" or not run.manifest.has("blocks_planned"):
        return run.status
    try:
        return f"running, {run.measured_blocks()} of {run.manifest.blocks_planned} blocks"
    except EvidenceError:
        return "running"
