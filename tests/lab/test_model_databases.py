"""Tests of a machine that two databases share: the plan in the documentation, and the counters of the cells."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from model_desk import Desk

DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "studies-on-models.md"


def test_shares_give_the_database_that_is_studied_its_part_of_the_disks(desk: Desk) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    (plan,) = [text for text in blocks if "exadata-x2-shared" in text]
    assert plan.count("\ntransactions = 40\n") == 1
    (desk.folder / "p.toml").write_text(plan.replace("\ntransactions = 40\n", "\ntransactions = 20\n"))
    assert "TEST: beside it, 400 sessions of key-lookup" in desk("plan", "check", "p.toml").stdout
    done = desk("run", "p.toml", "--seed", "15")
    assert "Databases side by side" in done.stdout
    model = json.loads((desk.run() / "analysis.json").read_text())
    found = {(row["arm"], row["database"]): row for row in model["databases"]}
    assert list(found) == [(0, "ORCL"), (0, "TEST"), (1, "ORCL"), (1, "TEST")]
    # First come, first served: by sessions, 100 of 300; then by shares, 10 of 14.
    assert found[0, "ORCL"]["share"] == pytest.approx(1 / 3, abs=0.04)
    assert found[1, "ORCL"]["share"] == pytest.approx(10 / 14, abs=0.04)
    for arm in (0, 1):
        assert found[arm, "ORCL"]["share"] + found[arm, "TEST"]["share"] == pytest.approx(1)
    assert found[0, "TEST"]["wait_ns"] == 0
    assert found[1, "TEST"]["wait_ns"] > 2 * found[1, "ORCL"]["wait_ns"] > 0
    assert model["verdict"]["decision"] == "faster"
    # Read at the end of the warm-up, when the first session ends, and at the end.
    (read,) = desk.sql(
        "select count(*) as n, min(value) as least, max(value) as most from metrics where"
        " object_type = 'database' and object = 'ORCL' and block = 0 and arm = 'shares 10 : 4'"
    )
    assert read == {"n": 3, "least": 0, "most": 100 * 20}


def test_a_machine_with_one_database_has_nothing_to_lay_side_by_side(desk: Desk, html_page: None) -> None:
    desk("run", "flash-log", "--quick", "--blocks", "2", "--seed", "3", "--set", "commits=100")
    model = json.loads((desk.run() / "analysis.json").read_text())
    assert model["databases"] == []
    assert "Databases side by side" not in (desk.run() / "report.html").read_text()
