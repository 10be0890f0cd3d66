"""cellsrvstat, live and as archived by ExaWatcher: every statistic, its time, and its cell."""

from __future__ import annotations

import bz2
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dbdyno.cells.archive import import_files
from dbdyno.cells.catalogue import metric
from dbdyno.cells.documents import read_any
from dbdyno.cells.listing import Listing
from dbdyno.cells.rates import changes
from dbdyno.cells.record import all_rounds
from fresh_dice import fresh_dice

SAMPLE = """\
zzz <01/17/2015 09:02:55> Count:720
===Current Time===                                              Sat Jan 17 09:02:55 2015

== Input/Output related stats ==
Hard disk block IO reads (KB)                                      0   111186344274
Current read blocks in IO (KB)                                 -4096             10
== Memory related stats ==
Top 5 SGA consumers (KB)
          storidx:arrayRIDX                                        0         267676
          SUBHEAP Networ                                           0          81937
Allocation hwm in 4KB pool                                         0           2244
== Execution related stats ==
Incarnation number                                                 0              6
SQL ids consuming the most CPU
          MYDB                           0000000000000             82
          OKRA                           1g3c5u9p6fpwr             15
END SQL ids consuming the most CPU
== SmartIO related stats ==
Number of smart IO requests >= 512KB and < 1MB                    65      116155599
== FlashCache related stats ==
Number of read hits                                                0       21065931
Keepsize(KB):                                                      0              8
== Offload related stats ==
Offload group name: SYS_121111_130502
Number of  requests                                                1             77
"""


def by_name(found: Listing) -> dict[tuple[str, str], float]:
    return {(r.name, r.object): r.value for r in found.readings}


def test_every_statistic_has_its_group_or_what_stands_below_its_heading():
    found = read_any(SAMPLE, "cel01")
    assert found.unread == []
    assert by_name(found) == {
        ("Hard disk block IO reads (KB)", "Input/Output"): 111186344274,
        ("Current read blocks in IO (KB)", "Input/Output"): 10,
        ("Top 5 SGA consumers (KB)", "storidx:arrayRIDX"): 267676,
        ("Top 5 SGA consumers (KB)", "SUBHEAP Networ"): 81937,
        ("Allocation hwm in 4KB pool", "Memory"): 2244,
        ("Incarnation number", "Execution"): 6,
        ("SQL ids consuming the most CPU", "MYDB 0000000000000"): 82,
        ("SQL ids consuming the most CPU", "OKRA 1g3c5u9p6fpwr"): 15,
        ("Number of smart IO requests >= 512KB and < 1MB", "SmartIO"): 116155599,
        ("Number of read hits", "FlashCache"): 21065931,
        ("Keepsize(KB)", "FlashCache"): 8,
        ("Number of requests", "SYS_121111_130502"): 77,
    }
    assert {r.at_ns for r in found.readings} == {1_421_485_375 * 10**9}
    assert {r.cell for r in found.readings} == {"cel01"}
    assert found.readings[0].unit == "KB"


def test_through_dcli_the_cells_are_kept_apart_though_the_indents_are_lost():
    lines = [line.strip() for line in SAMPLE.splitlines()[1:] if line]
    text = "\n".join(f"{cell}: {line}" for cell in ("cel01", "cel02") for line in lines)
    found = read_any(text)
    assert found.unread == []
    for cell in ("cel01", "cel02"):
        own = Listing([r for r in found.readings if r.cell == cell])
        assert by_name(own) == by_name(read_any(SAMPLE))


@pytest.mark.parametrize(
    ("name", "kind", "unit", "rule"),
    [
        ("Number of hard disk block IO read requests", "counter", "", "sum"),
        ("Flash disk block IO writes (KB)", "counter", "KB", "sum"),
        ("Total bytes received from the network", "counter", "bytes", "sum"),
        ("Total block IO KB populated in flash (KB)", "counter", "KB", "sum"),
        ("Size of IO avoided due to storage index (KB)", "counter", "KB", "sum"),
        ("Current smart IO to be issued (KB)", "gauge", "KB", "sum"),
        ("SGA heap used - cellsrv statistics - KB", "gauge", "KB", "sum"),
        ("Number of active smart IO sessions", "gauge", "", "sum"),
        ("Hwm of active sendports", "gauge", "", "spread"),
        ("Dynamic buffer allocation hwm (KB)", "gauge", "KB", "spread"),
        ("Smart IO offload efficiency (percentage)", "gauge", "%", "spread"),
        ("io_nbiorr_hdd", "unknown", "", "sum"),
    ],
)
def test_kind_unit_and_rule_follow_from_the_words(name: str, kind: str, unit: str, rule: str):
    known = metric(name)
    assert (known.kind, known.unit, known.rule) == (kind, unit, rule)
    assert known.object_type == "CELLSRVSTAT"


def samples(dice: random.Random, counts: int, every_s: int = 5) -> tuple[str, list[list[int]]]:
    """Return samples with differences and totals as cellsrvstat prints them, and the differences."""
    names = ["Number of read hits", "Number of read misses", "Hard disk block IO reads (KB)"]
    totals = [dice.randrange(10**12) for _ in names]
    moved: list[list[int]] = []
    text = ""
    for at in range(counts):
        steps = [dice.randrange(10 ** dice.randrange(7)) if at else 0 for _ in names]
        totals = [total + step for total, step in zip(totals, steps, strict=True)]
        time = datetime.fromtimestamp(1_700_000_000 + at * every_s, UTC)
        text += f"===Current Time===          {time.strftime('%a %b %e %H:%M:%S %Y')}\n"
        text += "\n== FlashCache related stats ==\n"
        for name, step, total in zip(names, steps, totals, strict=True):
            text += f"{name:<60}{step:>12}{total:>20}\n"
        moved.append(steps)
    return text, moved


def test_differences_of_what_is_kept_are_the_differences_that_were_printed(tmp_path: Path):
    dice = fresh_dice()
    for trial in range(4):
        text, moved = samples(dice, dice.randrange(2, 8))
        file = tmp_path / f"{trial}.txt"
        file.write_text(text)
        made = import_files([file], tmp_path / f"run{trial}", cell="cel01")
        assert (made.rounds, made.unread) == (len(moved), [])
        rounds = all_rounds(made.run)
        for before, after, steps in zip(rounds, rounds[1:], moved[1:], strict=False):
            found = changes(before.readings, after.readings)
            assert {c.name: c.delta for c in found} == {
                "Number of read hits": steps[0],
                "Number of read misses": steps[1],
                "Hard disk block IO reads (KB)": steps[2],
            }
            assert [c.per_s for c in found] == [(c.delta or 0) / 5 for c in found]


def test_exawatchers_archive_is_unpacked_and_its_name_names_the_cell(tmp_path: Path):
    dice = random.Random(7)
    files = []
    for cell in ("exa1cel01", "exa1cel02"):
        name = f"2015_01_17_09_02_55_CellSrvStatExaWatcher_{cell}.example.com.dat.bz2"
        files.append(tmp_path / name)
        head = "#\n# Starting Time: 01/17/2015 09:02:55\n# Sample Interval(s): 5\n#\n"
        files[-1].write_bytes(bz2.compress((head + samples(dice, 3)[0]).encode()))
    made = import_files(files, tmp_path / "run")
    assert (made.rounds, made.unread) == (3, [])
    for one in all_rounds(made.run):
        assert {c.host.name for c in one.columns} == {"exa1cel01", "exa1cel02"}


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("===Current Time===  Sat Foo 17 09:02:55 2015\n", 1, "a time that cannot be read"),
        ("===Current Time===  Sat Feb 30 09:02:55 2015\n", 1, "an invalid time"),
        ("===Current Time===  Sat Feb 28 09:", 1, "a time that cannot be read"),
        (f"{SAMPLE}Number of trims 5\n", 26, "a statistic with one number instead of two"),
        (f"{SAMPLE}:  5 7\n", 26, "numbers of a statistic without a name"),
        (f"{SAMPLE}CachePut 1 2 3 4\n", 26, "a row of more than two numbers"),
        (f"{SAMPLE}Number of trims 5 1O\n", 26, "a heading with nothing below it"),
        (f"{SAMPLE}---------\n", 26, "not a statistic of cellsrvstat"),
    ],
)
def test_what_is_not_understood_is_told_with_its_line(text: str, line: int, why: str):
    (entry,) = read_any(text).unread
    assert (entry.line, entry.why[: len(why)]) == (line, why)
    assert entry.text.startswith(text.split("\n")[line - 1][:20])


def test_a_line_of_blanks_costs_no_time():
    """A pattern that tries every division of a long line takes hours for it."""
    import time

    began = time.process_time()
    read_any(SAMPLE + "a" + " " * 300_000 + "b\n" + "1 " * 100_000 + "\n")
    assert time.process_time() - began < 2
