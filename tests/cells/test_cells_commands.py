"""The commands on archived and recorded cells: diff, import, record, watch."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from ssh_server import servers
from test_cells_diff import AFTER, BEFORE

from dbdyno.cli.cells.diff import command as diff
from dbdyno.cli.cells.imports import command as import_
from dbdyno.cli.cells.record import command as record
from dbdyno.cli.cells.watch import command as watch
from dbdyno.evidence.run import Run


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "before.txt").write_text(BEFORE)
    (tmp_path / "after.txt").write_text(AFTER)
    return tmp_path / "before.txt", tmp_path / "after.txt"


def test_diff_of_two_files_tells_the_share_in_words(files):
    found = CliRunner().invoke(diff, [str(files[0]), str(files[1])])
    assert found.exit_code == 0, found.output
    assert "flash first in 19,190: 3.48 % (95 % CI 3.43 to 3.53" in found.stdout
    assert "Outliers prevented: 7" in found.stdout
    assert "Bypassed the flash log: BUSY 2." in found.stdout


def test_diff_as_json_keeps_every_number(files):
    found = CliRunner().invoke(diff, [str(files[0]), str(files[1]), "--format", "json"])
    assert json.loads(found.stdout)["flash_log"]["writes"] == 551_342


def test_import_keeps_what_is_read_and_lists_what_is_not(tmp_path: Path, files):
    (tmp_path / "after.txt").write_text(AFTER + "dcli: something went wrong\n")
    out = tmp_path / "week"
    found = CliRunner().invoke(import_, [str(files[0]), str(files[1]), "--out", str(out)])
    assert found.exit_code == 2
    assert "10 values in 2 round(s)" in found.stderr
    assert "after.txt:6" in found.stderr
    assert Run.open(out).status == "complete"
    again = CliRunner().invoke(diff, [str(files[0]), str(out)])
    assert "flash first in 19,190" in again.stdout


def test_a_history_becomes_a_round_a_minute(tmp_path: Path):
    file = tmp_path / "history.txt"
    file.write_text(
        "".join(f"\t FL_IO_W\t FLASHLOG\t {n} IO requests\t 2012-10-12T14:{n:02}:45-04:00\n" for n in range(5))
    )
    found = CliRunner().invoke(import_, [str(file), "--out", str(tmp_path / "h")])
    assert found.exit_code == 0, found.output
    assert "5 values in 5 round(s)" in found.stderr


QUESTIONS = itertools.count()


def counting(process):
    """Answer as a cell whose counter and clock advance with every question."""
    at = next(QUESTIONS)
    process.stdout.write(f"FL_IO_W FLASHLOG {100 * at} IO requests 2012-10-12T14:{at % 60:02}:00Z\n".encode())
    process.exit(0)


def reach(rig) -> list[str]:
    return ["-H", f"x@127.0.0.1:{rig.ports[0]}", "--key", str(rig.key), "--known-hosts", str(rig.known_hosts)]


def test_a_recording_keeps_a_block_a_round(tmp_path: Path):
    out = tmp_path / "rec"
    with servers(tmp_path, [counting]) as rig:
        found = CliRunner().invoke(record, [*reach(rig), "--every", "1s", "--for", "2s", "--out", str(out)])
    assert found.exit_code == 0, found.output
    run = Run.open(out)
    assert (run.status, [block.rows for block in run.blocks()]) == ("complete", [1, 1, 1])


def test_a_cell_that_fails_in_each_round_is_told_of_once_and_not_counted(tmp_path: Path):
    """Each round said "values of 2 cells" and the same two lines."""
    with servers(tmp_path, [counting]) as rig:
        way = reach(rig)
        way[1] += ",x@127.0.0.1:1"
        found = CliRunner().invoke(record, [*way, "--every", "1s", "--for", "2s", "--out", str(tmp_path / "rec")])
    assert found.exit_code == 2, found.output
    assert found.stderr.count(": cannot be reached: connection refused") == 1, found.stderr
    assert found.stderr.count("1 values of 1 cells; 1 of 2 gave nothing") == 3, found.stderr


def test_watching_shows_rates_over_the_cells_own_times(tmp_path: Path):
    with servers(tmp_path, [counting]) as rig:
        found = CliRunner().invoke(watch, [*reach(rig), "--every", "1s", "--for", "1s"])
    assert found.exit_code == 0, found.output
    assert "1.667" in found.stdout  # 100 in 60 s of the cell's clock, whatever ours says
