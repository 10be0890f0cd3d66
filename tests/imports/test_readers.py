"""Each reader takes from an output only the numbers in it, in ns and per second."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from outputs_here import output, outputs

from dbdyno.base.errors import EvidenceError
from dbdyno.imports.contents import Contents
from dbdyno.imports.readers import READERS, read_file, read_text

MS = 1_000_000


def values(contents: Contents) -> dict[str, float]:
    """The sums of the only interval of the only arm."""
    ((interval,),) = [arm.intervals for arm in contents.sums]
    return dict(interval.values)


def test_every_program_has_an_output_here_and_each_is_recognised() -> None:
    programs = {read_file(path).program.lower() for path in outputs()}
    assert programs == {name.removesuffix("_log") for name in READERS}


def test_benchbase_gives_goodput_quantiles_and_the_time_of_the_run() -> None:
    found = read_file(output("benchbase.summary.json"))
    assert (found.program, found.benchmark, found.version) == ("BenchBase", "tpcc", "POSTGRES PostgreSQL 16.4")
    assert found.settings == {"scale": "1", "terminals": "4", "isolation": "TRANSACTION_SERIALIZABLE"}
    assert found.sums[0].intervals[0].ended_ns == 1763000060000 * MS
    assert values(found) == {
        "throughput": 806.5,
        "transactions": 48600,
        "mean": 4.933 * MS,
        "p50": 4.2 * MS,
        "p90": 9.8 * MS,
        "p95": 12.5 * MS,
        "p99": 21 * MS,
        "min": 0.31 * MS,
        "max": 98 * MS,
    }


@pytest.mark.parametrize("name", ["hammerdb_result.json", "hammerdb.log"])
def test_hammerdb_gives_new_orders_a_second(name: str) -> None:
    found = read_file(output(name))
    assert (found.benchmark, found.version, found.settings) == ("TPROC-C", "PostgreSQL", {"virtual_users": 4})
    assert values(found) == {"throughput": 14812 / 60, "NOPM": 14812, "TPM": 34065}


def test_hammerdb_timing_gives_the_times_of_new_orders() -> None:
    found = values(read_file(output("hammerdb_timing.json")))
    assert (found["throughput"], found["transactions"]) == (300, 36000)
    assert [found[name] / MS for name in ("min", "mean", "p50", "p95", "p99", "max")] == pytest.approx(
        [0.412, 2.105, 1.73, 4.602, 9.81, 48.22]
    )


def test_two_results_in_one_log_of_hammerdb_are_an_error() -> None:
    text = output("hammerdb.log").read_text() * 2
    with pytest.raises(EvidenceError, match="contains 2 results"):
        read_text(text, "h.log")


def test_k6_gives_requests_where_it_sent_some_and_those_that_failed_apart() -> None:
    found = read_file(output("k6_summary.json"))
    assert (found.benchmark, found.settings) == ("http_reqs", {"vus_max": 12})
    got = values(found)
    assert (got["throughput"], got["transactions"], got["failed"]) == (100, 2970, 30)
    assert got["p99"] == 31.5 * MS
    assert found.sums[0].intervals[0].ended_ns == 30 * 10**9


def test_k6_gives_iterations_where_there_were_no_requests() -> None:
    found = read_file(output("k6_handle_summary.json"))
    assert found.benchmark == "iterations"
    assert values(found)["p90"] == 115.2 * MS


def test_jmeter_gives_every_sample_with_its_label_thread_and_error() -> None:
    found = read_file(output("jmeter_errors.jtl"))
    (arm,) = found.timed
    assert len(arm.elapsed_ns) == 120 and arm.sessions == 4 and set(arm.session) == {0, 1, 2, 3}
    assert set(arm.statement) == {"orders, by day", "one order"}
    assert [error for error in arm.error if error] == ["42P01", "H0500"]
    assert (arm.started_ns[0], arm.elapsed_ns[0]) == (1763000000040 * MS, 8 * MS)
    assert not found.unread


def test_a_line_of_jmeter_that_is_torn_is_counted_and_the_others_stay() -> None:
    lines = output("jmeter_errors.jtl").read_text().splitlines()
    at = next(at for at, line in enumerate(lines) if at and '"' not in line)
    lines[at] = lines[at][:20]
    found = read_text("\n".join(lines), "x.jtl")
    assert (len(found.timed[0].elapsed_ns), found.unread) == (119, [at + 1])


def test_a_line_that_is_torn_within_quotes_takes_none_of_the_next_for_its_own() -> None:
    lines = output("jmeter_errors.jtl").read_text().splitlines()
    lines[1] = lines[1].split(",")[0] + ',9,"orders'
    found = read_text("\n".join(lines), "x.jtl")
    assert set(found.timed[0].statement) == {"orders, by day", "one order"} and found.unread


def test_what_jmeter_really_wrote_is_sixty_samples_of_three_threads() -> None:
    found = read_file(output("jmeter.jtl"))
    (arm,) = found.timed
    assert (len(arm.elapsed_ns), arm.sessions, set(arm.statement), set(arm.error)) == (60, 3, {"one, order"}, {None})
    assert min(arm.elapsed_ns) == 10 * MS and not found.unread


def test_a_column_with_another_name_is_an_error_that_names_the_one_that_is_missing() -> None:
    text = output("jmeter_errors.jtl").read_text().replace("elapsed,", "elapsedTime,", 1)
    with pytest.raises(EvidenceError, match="has no column elapsed"):
        read_text(text, "x.jtl")


def test_a_jtl_file_in_xml_names_the_property_that_makes_csv() -> None:
    with pytest.raises(EvidenceError, match="JTL file in XML") as caught:
        read_text('<?xml version="1.0"?><testResults version="1.2"></testResults>', "x.jtl")
    assert "output_format=csv" in str(caught.value)


def test_hyperfine_gives_an_arm_per_command_and_every_execution(tmp_path: Path) -> None:
    given = {
        "results": [
            {"command": "a", "times": [0.1, 0.2], "exit_codes": [0, 3]},
            {"command": "b", "times": [0.3], "exit_codes": [None]},
        ]
    }
    found = read_text(json.dumps(given), "h.json")
    assert [(arm.arm, list(arm.elapsed_ns), arm.error) for arm in found.timed] == [
        ("a", [100 * MS, 200 * MS], [None, "X0003"]),
        ("b", [300 * MS], ["SIGNL"]),
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"results": [{"command": "a", "mean": 1.0}]}, "no times of the individual executions"),
        ({"results": [{"command": "a", "times": [-1]}]}, "a time is '-1', expected a number of 0 or more"),
        ({"results": [{"command": "a", "times": [1]}] * 2}, "two results of 'a'"),
        ({"results": {"command": 1}}, "no list of results"),
    ],
)
def test_what_hyperfine_cannot_have_written_is_an_error(given: object, said: str) -> None:
    with pytest.raises(EvidenceError, match=said):
        read_text(json.dumps(given), "h.json")


def test_what_no_program_wrote_is_an_error_that_lists_the_programs() -> None:
    with pytest.raises(EvidenceError, match="not the output of a benchmark program") as caught:
        read_text("hello\n", "x.txt")
    assert "hyperfine: JSON of --export-json" in str(caught.value)


def test_a_file_that_is_cut_is_named_with_its_place(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_text(output("k6_summary.json").read_text()[:700])
    with pytest.raises(EvidenceError, match=r"cut\.json: is not complete JSON"):
        read_file(cut)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("Hammerdb Log @ Wed Mar 15 11:06:24 UTC 2023", datetime(2023, 3, 15, 11, 6, 24, tzinfo=UTC)),
        (f"Hammerdb Log @ Wed Mar 15 11:06:24 {time.tzname[0]} 2023", datetime(2023, 3, 15, 11, 6, 24).astimezone()),
        ("Hammerdb Log @ Wed Mar 15 11:06:24 XYZ 2023", None),
        ("Hammerdb Log @ Wed Mar 99 11:06:24 UTC 2023", None),
        ("", None),
    ],
)
def test_a_log_of_hammerdb_is_of_the_time_at_its_head_if_its_zone_is_known(
    head: str, expected: datetime | None
) -> None:
    found = read_text(f"{head}\n+-+-+-\n{output('hammerdb.log').read_text()}", "h.log")
    assert found.ended_ns == (expected and expected.timestamp() * 10**9)


def test_a_job_of_hammerdb_is_of_its_own_time_and_only_what_has_none_of_its_files() -> None:
    job = read_file(output("hammerdb_result.json"))
    assert (job.ended_ns, job.dated_by) == (datetime(2023, 3, 15, 11, 6, 24).astimezone().timestamp() * 10**9, "")
    dated = {path.name: read_file(path).dated_by for path in outputs()}
    own = {"benchbase.summary.json", "jmeter.jtl", "jmeter_errors.jtl", "pgbench.log", "pgbench_aggregate.log"}
    assert {name for name, by in dated.items() if not by} == {*own, "hammerdb_result.json"}
