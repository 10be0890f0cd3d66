"""A plan.toml as text, for a statement, or for a finding that a setting can test; nothing is run."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from dbdyno.advise.experiments import plan_text, untestable
from dbdyno.advise.statement_plan import plan_of_seen
from dbdyno.base.errors import SnapshotError
from dbdyno.page import Head, Page, Section
from dbdyno.pages import format as fmt
from dbdyno.ui.places import Server
from dbdyno.ui.routes.advice import advice_of
from dbdyno.ui.routes.common import HOME, parameter, server_address, server_name, server_of
from dbdyno.ui.stretch import Stretch, stretch_of
from dbdyno.ui.view import View, shell_words

HOW = (
    "Save it as plan.toml, read it, and run it on a copy of the server: dbdyno run plan.toml --target DSN.",
    "dbdyno ui cannot run plans.",
)


def view(request: Request) -> View:
    """Return the plan for the statement `id`, or for the finding with the number `finding`."""
    server = server_of(request)
    stretch = stretch_of(server.snapshots(), parameter(request, "stretch"))
    number, name = parameter(request, "finding"), parameter(request, "id")
    text = _of_finding(server, stretch, number) if number else plan_of_seen(server.store, stretch.ends, name)
    first, last = stretch.numbers
    subject = f"finding {number}" if number else f"statement {name}"
    head = Head(
        "Experiment", fmt.line(subject, 60), name="experiment", headline=_title(text), sentences=HOW, section="Plan"
    )
    store = ("--store", server.store.folder)
    command: Sequence[object] = (
        ("dbdyno", "advise", f"snap:{first}..{last}", "--plan", ".", *store, "--target", server.target)
        if number
        else ("dbdyno", "snap", "statement", name, first, last, "--experiment", *store)
    )
    return View(
        Page(head, (Section("plan", "plan.toml", text=fmt.text(text)),)),
        rows=lambda: [{"plan": text}],
        command=shell_words(*command),
        trail=(HOME, (server_name(server), server_address("/server", server, stretch=stretch.text))),
    )


def _title(text: str) -> str:
    import tomllib

    return fmt.line(tomllib.loads(text).get("title") or "Experiment", 120)


def _of_finding(server: Server, stretch: Stretch, number: str) -> str:
    """Return the plan for a finding.

    Raises:
        SnapshotError: There is no such finding, or no setting can test it.
    """
    model = advice_of(server, stretch)
    one = next((one for one in model["findings"] if str(one["number"]) == number), None)
    why = untestable(one, None) if one is not None else f"there is no finding {number!r:.20}"
    if one is None or why:
        raise SnapshotError(
            why, next_step="choose a finding on the advice page that can be tested by changing a setting"
        )
    return plan_text(model, one, None)
