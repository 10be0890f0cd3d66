"""The model's core called from Python: machines, rejected input, runs in threads, evidence."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dbdyno import _core
from dbdyno.base.errors import EvidenceError, ModelError
from dbdyno.base.json_types import JsonObject

COMMITS = {"kind": "commit-loop", "redo_bytes": "512"}


def spec(**changes: Any) -> Any:
    """Return a specification with two arms: redo on disk and on flash."""
    arms = [
        {"name": place, "settings": {"storage.redo": f"log_{place}"}, "sessions": 4, "workload": COMMITS}
        for place in ("sas", "flash")
    ]
    toml = _core.model_machine("sas-and-flash")
    asked = {"machine": toml, "seed": 7, "transactions": 50, "warmup_transactions": 5, "arms": arms}
    return asked | changes


def rows(folder: Path, room: str, sql: str) -> list[tuple[Any, ...]]:
    return duckdb.sql(sql.format(room=f"'{folder}/{room}/*.parquet'")).fetchall()


def test_every_built_in_machine_is_described_with_a_source_for_every_parameter():
    names = _core.model_machines()
    assert {"exadata-x2", "san", "sas-and-flash", "nvme-server"} <= set(names)
    for name in names:
        described = _core.model_check(_core.model_machine(name))
        assert described["title"] and described["parameters"]
        for line in described["parameters"]:
            assert line["source"] and line["meaning"], line["path"]


def test_a_wrong_key_says_where_and_what_is_allowed():
    toml = _core.model_machine("san").replace("stripe_kb", "strip_kb")
    with pytest.raises(ModelError) as found:
        _core.model_check(toml)
    assert found.value.where is not None and found.value.where.startswith("line ")
    assert "devices.filesystem.strip_kb" in found.value.where
    assert "did you mean `stripe_kb`?" in (found.value.next_step or "")


def test_an_unknown_machine_lists_those_that_are_there():
    with pytest.raises(ModelError, match="no machine") as found:
        _core.model_machine("exadata")
    assert "exadata-x2" in (found.value.next_step or "")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arms": []}, "one arm"),
        ({"transactions": 0}, "one transaction"),
        ({"machine": "title ="}, "line 1"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_specification_that_cannot_be_runs_nothing(changes: JsonObject, words: str):
    with pytest.raises(ModelError, match=words):
        _core.ModelRun(spec(**changes))


def test_a_block_is_evidence_like_any_other(tmp_path: Path):
    answer = _core.ModelRun(spec()).block(3, tmp_path)
    assert answer["rows"] == 2 * 4 * 50 * 2
    assert [arm["transactions"] for arm in answer["report"]["arms"]] == [200, 200]
    assert answer["report"]["cpu_ns"] > 0
    kinds = rows(tmp_path, "calls", "select arm, kind, count(*) from {room} group by all")
    assert sorted(kinds) == [(arm, kind, 200) for arm in ("flash", "sas") for kind in ("commit", "transaction")]
    # What sessions waited for their commits is what the calls say, less what the core took.
    waits = rows(
        tmp_path,
        "waits",
        "select arm, count(*), min(session), max(session), bool_and(p2 > 0), any_value(class),"
        " any_value(fidelity) from {room} where event = 'log file sync' group by arm order by arm",
    )
    assert waits == [
        ("flash", 200, 0, 3, True, "commit", "exact"),
        ("sas", 200, 0, 3, True, "commit", "exact"),
    ]
    little = rows(
        tmp_path,
        "metrics",
        "select max(value), count(distinct object) from {room} where metric = 'little'",
    )
    assert little[0][0] == 0.0 and little[0][1] > 3


def test_blocks_run_in_several_threads_with_the_same_result(tmp_path: Path):
    run = _core.ModelRun(spec())
    alone = [run.block(at, tmp_path / "alone")["hash"] for at in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(lambda at: run.block(at, tmp_path / "beside"), range(4))
        assert [answer["hash"] for answer in answers] == alone
    assert len(set(alone)) == 4
    assert run.progress() == 2 * 4 * 2 * 4 * 50


def test_a_run_is_stopped_from_another_thread(tmp_path: Path):
    run = _core.ModelRun(spec(transactions=10_000_000))
    timer = threading.Timer(0.2, run.stop)
    timer.start()
    answer = run.block(0, tmp_path)
    timer.join()
    assert answer["stopped"] and run.progress() > 0
    assert not list(tmp_path.rglob("*.parquet*"))


def test_a_folder_that_cannot_be_written_is_an_error_of_evidence():
    with pytest.raises(EvidenceError, match="/proc/nowhere"):
        _core.ModelRun(spec()).block(0, Path("/proc/nowhere"))
