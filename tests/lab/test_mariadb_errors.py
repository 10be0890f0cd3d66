"""Tests of the example of stored procedures in MariaDB that signal, resignal and read diagnostics, at small size."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from command_line import dbdyno
from mariadb_server import missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=str(missing()))

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/mariadb_errors.toml"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the example's run: one block, in which half of the bookings are refused."""
    folder = tmp_path_factory.mktemp("errors")
    text = (
        EXAMPLE.read_text().replace("[0, 50]", "[50]").replace('"300ms"', '"100ms"').replace("blocks = 8", "blocks = 2")
    )
    (folder / "plan.toml").write_text(text)
    done = dbdyno("run", "plan.toml", "--seed", "7", cwd=folder, NO_COLOR="1")
    assert done.returncode in (0, 1), f"{done.stdout}\n{done.stderr}"
    assert "Expected errors" in done.stdout and "1062 ER_DUP_ENTRY" in done.stdout
    return next((folder / "runs").iterdir())


def test_a_handled_error_is_none_and_the_others_are_told_in_full(run: Path) -> None:
    model = json.loads((run / "analysis.json").read_text())
    assert [arm["errors"] for arm in model["arms"]] == [0, 0, 0, 0]
    names = [arm["name"] for arm in model["arms"]]
    told = {
        names[row["arm"]].split(",")[0]: (row["sqlstate"], row["vendor_code"], row["condition"], row["message"])
        for row in model["errors"]
    }
    duplicate = ("23000", 1062, "ER_DUP_ENTRY", "Duplicate entry '…' for key …")
    assert told["no handler"] == duplicate
    assert told["passed on"] == duplicate, "RESIGNAL leaves it as it was"
    assert told["clear message"][:3] == ("45000", 1644, "ER_SIGNAL_EXCEPTION")
    assert "left out" in told["clear message"][3], "what one's own code says may be anything"
    assert "handled" not in told


def test_the_evidence_has_number_and_message_of_each_failed_operation(run: Path) -> None:
    calls = f"read_parquet('{run}/calls/*.parquet')"
    found = duckdb.sql(
        f"select error, vendor_code, expected, count(distinct message) from {calls} where error is not null"
        " group by all order by error"
    ).fetchall()
    assert found == [("23000", 1062, True, 1), ("45000", 1644, True, 1)]
    texts = [path.read_text(errors="replace") for path in run.rglob("*") if path.suffix in (".json", ".html")]
    assert not any("PRIMARY" in text or "this seat is taken (D" in text for text in texts)
