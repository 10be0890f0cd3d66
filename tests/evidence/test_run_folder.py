"""A run folder is complete up to its last complete block, whatever happened."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dbdyno.base.errors import EvidenceError
from dbdyno.evidence.files import read_json, write_json
from dbdyno.evidence.run import Block, Run, SliceRecord, find_run, list_runs, new_run


def block(index: int, kind: str = "measure") -> Block:
    return Block(index, kind, 1, 2, 3, [SliceRecord(0, 0), SliceRecord(1, 1, counts=False)])


def test_a_new_run_is_running_and_its_name_tells_when_and_what(tmp_path: Path):
    run = new_run(tmp_path, "Work mem: A/B!", {"title": "x"})
    assert run.status == "running"
    assert run.id[10] == "T" and "-work-mem-a-b-" in run.id


def test_a_run_whose_process_is_gone_is_aborted(tmp_path: Path):
    run = new_run(tmp_path, "x", {})
    run.save(process={"pid": 2**22 + 1, "started": None})
    assert Run.open(run.path).status == "aborted"
    run.save(process={"pid": os.getpid(), "started": "another boot:1"})
    assert Run.open(run.path).status == "aborted", "the number belongs to another process now"


def test_a_run_whose_process_number_can_be_none_is_aborted(tmp_path: Path):
    run = new_run(tmp_path, "x", {})
    run.save(process={"pid": 2**31, "started": None})
    assert Run.open(run.path).status == "aborted"


def test_blocks_come_back_in_their_order(tmp_path: Path):
    run = new_run(tmp_path, "x", {})
    for index in (2, 0, 1):
        run.add_block(block(index, "warmup" if index == 0 else "measure"))
    assert [b.index for b in run.blocks()] == [0, 1, 2]
    assert run.blocks()[1] == block(1)
    assert run.measured_blocks() == 2


def test_the_first_blocks_of_a_run_may_come_from_several_threads_at_once(tmp_path: Path):
    for trial in range(20):
        run = new_run(tmp_path, "x", {}, name=f"run{trial}")
        start = threading.Barrier(8)

        def add(index: int, run: Run = run, start: threading.Barrier = start) -> None:
            start.wait()
            run.add_block(block(index))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(add, range(8)))
        assert len(run.blocks()) == 8


def test_leftovers_go_and_whole_blocks_stay(tmp_path: Path):
    run = new_run(tmp_path, "x", {})
    run.add_block(block(0))
    (run.path / "calls").mkdir()
    for name in ("b000000.parquet", "b000001.parquet", "b000002.parquet.tmp"):
        (run.path / "calls" / name).write_text("x")
    run.drop_leftovers()
    assert [p.name for p in (run.path / "calls").iterdir()] == ["b000000.parquet"]


def test_a_run_is_found_by_name_end_path_and_last(tmp_path: Path):
    one = new_run(tmp_path, "a", {}, name="2026-01-01T00-00-00Z-a-aaaa")
    two = new_run(tmp_path, "b", {}, name="2026-01-02T00-00-00Z-b-bbbb")
    assert find_run("last", tmp_path).id == two.id
    assert find_run("aaaa", tmp_path).id == one.id
    assert find_run(str(one.path), Path("elsewhere")).id == one.id
    for text in ("2026", "cccc"):
        with pytest.raises(EvidenceError, match="dbdyno runs"):
            find_run(text, tmp_path)
    assert [run.id for run in list_runs(tmp_path)] == [one.id, two.id]


def test_a_folder_with_one_run_names_it_and_one_with_several_says_which(tmp_path: Path):
    """`run --out one` makes the run's own folder in it: `report one` means that."""
    one = new_run(tmp_path, "a", {}, name="2026-01-01T00-00-00Z-a-aaaa")
    assert find_run(str(tmp_path), Path("elsewhere")).id == one.id
    new_run(tmp_path, "b", {}, name="2026-01-02T00-00-00Z-b-bbbb")
    with pytest.raises(EvidenceError, match="contains 2 runs") as refused:
        find_run(str(tmp_path), Path("elsewhere"))
    assert "b-bbbb" in refused.value.next_step


def test_a_folder_that_is_no_run_says_so(tmp_path: Path):
    with pytest.raises(EvidenceError, match=r"manifest\.json is missing"):
        Run.open(tmp_path)
    (tmp_path / "manifest.json").write_text('{"schema": 99}')
    with pytest.raises(EvidenceError, match="schema 99"):
        Run.open(tmp_path)


def test_json_is_written_whole_or_not_at_all(tmp_path: Path):
    file = tmp_path / "x.json"
    write_json(file, {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(file, {"a": float("nan")})
    assert read_json(file) == {"a": 1}
    file.write_text('{"a": ')
    with pytest.raises(EvidenceError, match="complete JSON"):
        read_json(file)


def test_a_strange_block_record_names_its_file(tmp_path: Path):
    run = new_run(tmp_path, "x", {})
    run.add_block(block(0))
    file = run.path / "blocks" / "b000000.json"
    file.write_text(json.dumps({"index": 0}))
    with pytest.raises(EvidenceError) as caught:
        run.blocks()
    assert "b000000.json" in str(caught.value)
