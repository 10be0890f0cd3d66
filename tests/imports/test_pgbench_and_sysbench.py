"""Real outputs of pgbench 15 and sysbench 1.0: read to the last digit, and consistent with their own totals."""

from __future__ import annotations

import itertools
import re

import pytest
from outputs_here import output

from dbdyno.base.errors import EvidenceError
from dbdyno.imports.readers import read_file, read_text

MS, S = 10**6, 10**9


def test_the_summary_of_pgbench_is_one_block_of_sums() -> None:
    text = output("pgbench.txt").read_text()
    found = read_file(output("pgbench.txt"))
    assert (found.program, found.benchmark) == ("pgbench", "TPC-B (sort of)")
    assert found.settings == {"scale": 1, "mode": "simple", "clients": 2, "threads": 1}
    (interval,) = found.sums[0].intervals
    assert interval.ended_ns - interval.started_ns == 2 * S
    tps, mean = re.search(r"tps = ([\d.]+) \(without", text), re.search(r"latency average = ([\d.]+) ms", text)
    assert tps and mean
    assert interval.values["throughput"] == float(tps[1])
    assert interval.values["mean"] == float(mean[1]) * MS


def test_each_line_of_progress_is_an_interval_and_the_whole_stays_as_totals() -> None:
    found = read_file(output("pgbench_progress.txt"))
    intervals = found.sums[0].intervals
    assert len(intervals) == 6
    assert all(a.ended_ns == b.started_ns for a, b in itertools.pairwise(intervals))
    counted = sum(one.values["transactions"] for one in intervals)
    assert counted == pytest.approx(found.totals["transactions"], rel=0.02)


def test_the_log_of_pgbench_gives_every_transaction() -> None:
    found = read_file(output("pgbench.log"))
    (arm,) = found.timed
    lines = output("pgbench.log").read_text().splitlines()
    assert len(arm.elapsed_ns) == len(lines) and arm.sessions == 2 and not found.unread
    client, _, took, _, seconds, micros = map(int, lines[0].split()[:6])
    assert (arm.session[0], arm.elapsed_ns[0]) == (client, took * 1000)
    assert arm.started_ns[0] + arm.elapsed_ns[0] == seconds * S + micros * 1000


def test_failed_and_skipped_transactions_of_a_log_are_errors_and_a_torn_line_is_counted() -> None:
    text = "0 1 900 0 1763000000 10\n0 2 deadlock 0 1763000000 20\n1 1 skipped 0 1763000000 30\n1 2 xx\n"
    found = read_text(text, "p.log")
    assert (found.timed[0].error, found.unread) == ([None, "40P01", "SKIPD"], [4])


def test_aggregated_intervals_give_means_and_counts() -> None:
    found = read_file(output("pgbench_aggregate.log"))
    first = output("pgbench_aggregate.log").read_text().splitlines()[0].split()
    interval = found.sums[0].intervals[0]
    assert interval.started_ns == int(first[0]) * S
    assert interval.values["transactions"] == int(first[1])
    assert interval.values["mean"] == pytest.approx(int(first[2]) / int(first[1]) * 1000)


def test_intervals_of_several_threads_are_refused_for_they_overlap() -> None:
    line = "1763000000 10 9000 9000000 500 1500\n"
    with pytest.raises(EvidenceError, match="two or more intervals in order of time"):
        read_text(line * 3, "p.log")


def test_sysbench_gives_its_intervals_or_its_sums() -> None:
    found = read_file(output("sysbench_cpu.txt"))
    assert (found.program, found.benchmark, found.settings) == ("sysbench", "cpu", {"threads": 1})
    assert len(found.sums[0].intervals) >= 2
    assert found.totals["transactions"] == pytest.approx(
        sum(one.values["transactions"] for one in found.sums[0].intervals), rel=0.5
    )
    alone = "\n".join(line for line in output("sysbench_cpu.txt").read_text().splitlines() if not line.startswith("["))
    (whole,) = read_text(alone, "s.txt").sums[0].intervals
    assert dict(whole.values) == found.totals


def test_two_runs_in_one_file_are_an_error() -> None:
    for name in ("pgbench.txt", "sysbench_cpu.txt"):
        with pytest.raises(EvidenceError, match="contains several runs"):
            read_text(output(name).read_text() * 2, name)
