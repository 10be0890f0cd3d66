"""Tests of stored procedures that raise errors, pass them on, or return them as messages, on a live engine."""

from __future__ import annotations

import json

from dbdyno.base.decisions import WITHHOLDING


def _function(name: str, handler: str = "") -> str:
    caught = f"exception when unique_violation then {handler};" if handler else ""
    body = f"begin insert into seats values (1); return 'reserved'; {caught} end"
    return f"create function {name}() returns text language plpgsql as $$ {body} $$"


SETUP = [
    "create table seats (seat int primary key)",
    "insert into seats values (1)",
    _function("passed_on"),
    _function("clear_message", "raise exception 'seat % is taken', 'Ottilie' || 'Quux' using errcode = 'U0001'"),
    _function("handled", "return 'taken'"),
]
TEARDOWN = ["drop function passed_on, clear_message, handled", "drop table seats"]
PROCEDURES = f"setup = {json.dumps(SETUP)}\nteardown = {json.dumps(TEARDOWN)}\nexpected_errors = "
ACCEPTED = f"[verdict]\naccept = {json.dumps(list(WITHHOLDING))}\n"
"""Verdict section that accepts every gate, because these tests check only counts."""
ARMS = ACCEPTED + "".join(
    f'[[arm]]\nname = "{how}"\nscripts = [{{name = "{how}", text = \'select {how}();\'}}]\n'
    for how in ("handled", "passed_on", "clear_message")
)


def test_expected_errors_are_outcomes_with_a_row_of_their_own(lab, html_page):
    lab("run", lab.plan(ARMS, more=PROCEDURES + '["unique_violation", "U0001"]'))
    run = next((lab.folder / "runs").iterdir())
    model = json.loads((run / "analysis.json").read_text())
    by_arm = {arm["name"]: arm for arm in model["arms"]}
    assert [arm["errors"] for arm in model["arms"]] == [0, 0, 0]
    assert all(arm["throughput_per_s"] > 0 and arm["ops"] > 0 for arm in model["arms"])
    assert set(by_arm["passed_on"]["expected_codes"]) == {"23505"}
    assert by_arm["passed_on"]["expected_codes"]["23505"] == by_arm["passed_on"]["ops"]
    assert (by_arm["handled"]["expected_codes"], by_arm["passed_on"]["error_codes"]) == ({}, {})
    rows = {(row["sqlstate"], row["error_class"], row["expected"]) for row in model["errors"]}
    assert rows == {("23505", "integrity constraint violation", True), ("U0001", "", True)}
    gates = {gate["name"]: gate["ok"] for gate in model["gates"] if gate["code"] == "errors"}
    assert gates == {"transactions went well": True}
    told = [warning["text"] for warning in model["warnings"] if warning["code"] == "expected errors"]
    assert told[0] == "100 % of passed_on's transactions ended in 23505, 0 % of handled's"
    for page in ("report.html", "analysis.json"):
        assert "OttilieQuux" not in (run / page).read_text()


def test_others_are_failures(lab):
    done = lab("run", lab.plan(ARMS, more=PROCEDURES + '["U0001"]'), code=2)
    assert "arm 'passed_on': all" in done.stderr
    assert "(SQLSTATE 23505)" in done.stderr
