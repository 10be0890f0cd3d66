"""Which sibling differs: found when planted, quiet when all are alike."""

from __future__ import annotations

import random
from pathlib import Path

from click.testing import CliRunner

from dbdyno.cells.collect import Collection, Column
from dbdyno.cells.hosts import Host
from dbdyno.cells.listing import Listing, Reading
from dbdyno.cells.record import Pace, all_rounds, keep, new_recording
from dbdyno.cells.skew import kind_of, skew_page
from dbdyno.cli.cells_skew import command

MINUTE = 60 * 10**9


def recording(dice: random.Random, rounds: int, slow: float = 1.0) -> list[Collection]:
    """Three cells of four disks; one disk of cel02 has `slow` times the latency of the others."""
    counters: dict[tuple[str, str, str], float] = {}
    found = []
    for at in range(rounds):
        columns = []
        for cell in ("cel01", "cel02", "cel03"):
            own = []
            for disk in range(4):
                item = f"CD_0{disk}_{cell}"
                requests = round(1000 * dice.lognormvariate(0, 0.1))
                worse = slow if (cell, disk) == ("cel02", 3) else 1.0
                time = round(requests * 900 * worse * dice.lognormvariate(0, 0.05))
                for name, more in (("CD_IO_RQ_R_SM", requests), ("CD_IO_TM_R_SM", time)):
                    key = cell, item, name
                    counters[key] = counters.get(key, 0.0) + more
                    own.append(Reading(cell, name, item, counters[key], "", "", 0, at * MINUTE))
            columns.append(Column(Host(cell, cell), Listing(own), at * MINUTE, 0.1))
        found.append(Collection(columns))
    return found


def test_a_slow_disk_among_its_siblings_is_found_and_named():
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    page = skew_page(recording(random.Random(seed), 16, slow=3.0))
    named = [row for row in page["rows"] if row["differs"] and row["siblings"] == "cell disks"]
    assert {(row["metric"], row["name"]) for row in named} >= {
        ("CD_IO_TM_R_SM_RQ", "cel02 CD_03_cel02")
    }
    assert 2 < named[0]["ratio"] < 4
    assert {row["name"] for row in named} == {"cel02 CD_03_cel02"}


def test_siblings_that_are_alike_give_no_finding():
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    findings = sum(
        row["differs"] for _ in range(10) for row in skew_page(recording(dice, 12))["rows"]
    )
    assert findings == 0  # the threshold of 25 % stands beside the test


def test_too_few_rounds_test_nothing():
    page = skew_page(recording(random.Random(1), 3, slow=9.0))
    assert (page["enough"], page["rows"]) == (False, [])


def test_siblings_are_of_one_kind():
    assert kind_of("CD_IO_RQ_R_SM", "CD_00_cel01", "cel01") == "cell disks"
    assert kind_of("CD_IO_RQ_R_SM", "FD_07_cel01", "cel01") == "flash disks"
    assert kind_of("GD_IO_RQ_R_SM", "DATA_CD_03_cel01", "cel01") == "grid disks DATA"
    assert kind_of("FL_IO_W", "FLASHLOG", "cel01") == ""


def test_the_command_reads_a_recording_and_exits_1_on_a_finding(tmp_path: Path):
    run = new_recording(tmp_path / "rec", [Host(f"cel0{n}", "") for n in (1, 2, 3)], Pace())
    for index, one in enumerate(recording(random.Random(7), 12, slow=3.0)):
        keep(run, index, one)
    assert len(all_rounds(run)) == 12
    found = CliRunner().invoke(command, [str(run.path), "-m", "CD_IO_TM.*RQ"])
    assert found.exit_code == 1, found.output
    assert "cel02 CD_03_cel02" in found.stdout
