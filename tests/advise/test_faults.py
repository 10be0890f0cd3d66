"""The table of known faults: which rows match a server, given its version and its conditions."""

from __future__ import annotations

import re

import pytest

from dbdyno.advise.facts import Facts, MissingEvidence
from dbdyno.advise.faults import Fault, affects, faults, fixed_in, matching_figures, releases, version_numbers
from dbdyno.advise.judge import choose_rules, judge
from dbdyno.advise.kinds import Index, Server, Setting, Slot


def named(name: str) -> Fault:
    return next(one for one in faults() if one.name == name)


def server(version: str, engine: str = "postgres", **more: object) -> Server:
    return Server(engine, version, version_numbers(version)[0] * 10000, **more)  # type: ignore[arg-type]


def test_the_table_has_sixty_rows_or_more_and_each_is_whole() -> None:
    assert len(faults()) >= 60
    assert len({one.name for one in faults()}) == len(faults())
    for one in faults():
        assert one.engine in ("postgres", "mariadb") and one.fault and one.cost and one.fix, one.name
        assert re.search(r"20[12]\d", one.source), one.name


@pytest.mark.parametrize("fault", faults(), ids=lambda one: one.name)
def test_every_condition_can_be_read(fault: Fault) -> None:
    facts = Facts("t", "server", {Server: [server("15.0")]})
    assert isinstance(matching_figures(fault, facts), MissingEvidence | tuple | None)


@pytest.mark.parametrize(
    ("name", "version", "met"),
    [
        ("lwlock-dequeue", "15.5", True),
        ("lwlock-dequeue", "15.6", False),
        ("lwlock-dequeue", "14.10", True),
        ("lwlock-dequeue", "14.11 (Debian 14.11-1)", False),
        ("lwlock-dequeue", "16.0", False),
        ("slru-banks", "17.2", True),
        ("slru-banks", "17.3", False),
        ("decoding-memory", "17.0", True),
        ("decoding-memory", "17.1", False),
        ("old-snapshot-threshold", "16.14", True),
        ("old-snapshot-threshold", "17.0", False),
    ],
)
def test_a_fix_counts_in_every_major_from_the_release_of_the_same_day(name: str, version: str, met: bool) -> None:
    assert affects(named(name), server(version)) is met


@pytest.mark.parametrize(
    ("name", "version", "met"),
    [
        ("purge-batch", "10.11.9-MariaDB-log", True),
        ("purge-batch", "10.11.10-MariaDB", False),
        ("purge-batch", "11.4.3-MariaDB", True),
        ("purge-batch", "10.6.15-MariaDB", False),
    ],
)
def test_faults_of_mariadb_have_ranges_of_versions(name: str, version: str, met: bool) -> None:
    assert affects(named(name), server(version, "mariadb")) is met
    assert not affects(named(name), server("10.11.9")), "PostgreSQL is another engine"


def test_a_fault_with_a_condition_needs_both() -> None:
    rows = {Server: [server("15.2")], Setting: [Setting("vacuum_cost_delay", "0.5", "ms")]}
    found = judge(Facts("t", "server", rows), choose_rules(["known_faults"]))["findings"]
    assert "cost-delay-below-1ms" in {one["subject"] for one in found}
    rows[Setting] = [Setting("vacuum_cost_delay", "2", "ms")]
    found = judge(Facts("t", "server", rows), choose_rules(["known_faults"]))["findings"]
    assert "cost-delay-below-1ms" not in {one["subject"] for one in found}


def test_a_condition_that_cannot_be_known_is_told() -> None:
    facts = Facts(
        "t", "server", {Server: [server("15.19")], Setting: []}, {Index: MissingEvidence("not read", "ask again")}
    )
    told = judge(facts, choose_rules(["known_faults"]))["not_judged"]
    assert any("gin-dead-entries" in one["why"] and one["next"] == "ask again" for one in told)


def test_a_lost_slot_on_an_old_minor() -> None:
    lost = Slot("s", "logical", False, "lost", 0, None, 5)
    facts = Facts("t", "server", {Server: [server("15.1")], Slot: [lost]})
    assert isinstance(matching_figures(named("lost-slot-catalog-xmin"), facts), tuple)


def test_faults_of_the_version_alone_are_one_finding_with_the_release_that_ends_them() -> None:
    found = judge(Facts("t", "server", {Server: [server("15.1")]}), choose_rules(["version_faults"]))["findings"]
    assert len(found) == 1 and len(found[0]["evidence"]) >= 10 and found[0]["subject"] == "15.20"
    assert not judge(Facts("t", "server", {Server: [server("15.20")]}), choose_rules(["version_faults"]))["findings"]


def test_missed_minor_releases_are_counted_and_a_newer_server_is_not_judged() -> None:
    found = judge(Facts("t", "server", {Server: [server("16.10")]}), choose_rules(["missing_minor"]))["findings"]
    assert found[0]["sentence"].startswith("6 minor releases") and "2026-11" in found[0]["sentence"]
    told = judge(Facts("t", "server", {Server: [server("19.1")]}), choose_rules(["missing_minor"]))
    assert not told["findings"] and told["not_judged"]


def test_a_major_out_of_support_by_the_servers_clock() -> None:
    year_2026 = 1_795_000_000_000_000
    assert judge(Facts("t", "server", {Server: [server("13.23", at_us=year_2026)]}), choose_rules(["end_of_life"]))[
        "findings"
    ]
    assert not judge(Facts("t", "server", {Server: [server("17.12", at_us=year_2026)]}), choose_rules(["end_of_life"]))[
        "findings"
    ]


def test_fixes_and_releases_agree() -> None:
    latest = {one.major: version_numbers(one.latest) for one in releases()}
    for one in faults():
        if one.engine == "postgres" and one.fixed:
            for major, last in latest.items():
                fixed = fixed_in(one, server(f"{major}.0"))
                assert not fixed or version_numbers(fixed) <= last, one.name
