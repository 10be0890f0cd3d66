"""Rules on storage cells, based on the counters in a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count, duration, share
from dbdyno.advise.recordings import CellCache, CellLog, CellState, CellWork, SlowDisk, SmartScans
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Level, Rule

ROUNDS_LEAST = 4
LEAST_SHARE = 0.1
SLOW_SHARE = 0.01
BYPASS_SHARE = 0.01
PASSED_SHARE, RETURNED_SHARE, SCANNED_MB = 0.1, 0.9, 1024.0
_HARD, _FLASH, _SMALL = "hard disks", "flash disks", "R_SM"
_MANUAL = "Oracle Exadata System Software User's Guide, Monitoring and Metrics (2025)"


def _misses(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding about small reads of hard disks that a larger or better used flash cache would serve."""
    works = {(one.part, one.kind): one for one in facts.rows_of(CellWork)}
    hard, flash = works.get((_SMALL, _HARD)), works.get((_SMALL, _FLASH))
    if hard is None or not facts.rows_of(CellCache):
        return
    cache, total = facts.row_of(CellCache), sum(one.busy_ns for one in facts.rows_of(CellWork))
    if hard.rounds < ROUNDS_LEAST:
        yield InsufficientEvidence(f"{hard.rounds} intervals are too few", "dbdyno cells record --for 15min")
        return
    flash_ns = flash.each_ns if flash is not None else 0.0
    misses = min(cache.misses_per_s, hard.per_s)
    gain = misses * (hard.each_ns - flash_ns) / total
    if gain < LEAST_SHARE:
        return
    hits = cache.hits_per_s / (cache.hits_per_s + cache.misses_per_s)
    yield Advice(
        f"{count(cache.misses_per_s)} reads a second miss the flash cache ({share(hits)} hit), and small reads from"
        f" hard disks are {share(hard.busy_ns / total)} of the disks' time",
        (
            Evidence("reads that hit", hits, "ratio", "FC_IO_RQ_R, FC_IO_RQ_R_MISS"),
            Evidence("misses a second", cache.misses_per_s, "per_s", "FC_IO_RQ_R_MISS"),
            Evidence("small reads from hard disks", hard.per_s, "per_s", f"CD_IO_RQ_R_SM of {hard.disks} disks"),
            Evidence("time of each", hard.each_ns, "ns", "CD_IO_TM_R_SM / CD_IO_RQ_R_SM, hard disks"),
            Evidence("time of one read from flash", flash_ns or None, "ns", "the same metrics, flash disks"),
        ),
        f"{share(gain)} of the disks' time, if flash answered all of them, and shorter queues at the disks; the hit "
        f"ratio alone says nothing: only the reads that miss wait",
        (
            "-- which segments are read but not "
            "cached? In the database: alter table ... storage (cell_flash_cache keep)",
            "cellcli -e list flashcache detail  # its size; and IORM: flashCacheMin",
        ),
        stake=gain,
        subject="flash cache",
    )


def _slow(facts: Facts) -> Iterator[Advice]:
    total = sum(one.busy_ns for one in facts.rows_of(CellWork))
    by_disk: dict[tuple[str, str], list[SlowDisk]] = {}
    for one in facts.rows_of(SlowDisk):
        by_disk.setdefault((one.cell, one.disk), []).append(one)
    for (cell, disk), parts in by_disk.items():
        gain = sum(one.excess_ns for one in parts) / total if total else 0.0
        if gain < SLOW_SHARE:
            continue
        worst = max(parts, key=lambda one: one.excess_ns)
        yield Advice(
            f"{disk} of {cell} takes {worst.ratio:.3g} times as long as its siblings: {duration(worst.each_ns / 1e9)}"
            f" against {duration(worst.usual_ns / 1e9)} a request",
            tuple(
                Evidence(
                    f"times the median, {one.part}", one.ratio, "number", f"{one.low:.3g} to {one.high:.3g} (95 %)"
                )
                for one in parts
            ),
            f"{share(gain)} of the disks' time, if it were as fast as the "
            f"others; a scan waits for the slowest disk, so a"
            " statement may gain more",
            (
                f"cellcli -e list physicaldisk detail  # on {cell}: errors, temperature, predictive failure",
                "-- if it stays slow under the same load: replace it as the manual says (drop for replacement)",
            ),
            stake=gain,
            subject=f"{cell} {disk}",
        )


def _bypass(facts: Facts) -> Iterator[Advice]:
    for one in facts.rows_of(CellLog):
        total = sum(number for _, _, number in one.passed_by)
        if not one.requests or total < BYPASS_SHARE * one.requests:
            continue
        yield Advice(
            f"{count(total)} of {count(one.requests)} redo writes ({share(total / one.requests)}) "
            f"bypassed the flash log",
            (
                Evidence("redo writes", one.requests, "count", "FL_RQ_W, or FL_IO_W plus the writes that bypassed it"),
                *(
                    Evidence(words, number, "count", f"FL_IO_W_SKIP_{reason}")
                    for reason, words, number in one.passed_by
                    if number
                ),
            ),
            "these writes wait for the disk alone, as without a flash log; FL_IO_TM_W does not contain their time, "
            "only that of the other writes",
            ("cellcli -e list iormplan detail  # flashLog=off for a database?", "cellcli -e list flashlog detail"),
            subject="flash log",
        )


def _outliers(facts: Facts) -> Iterator[Advice]:
    for one in facts.rows_of(CellLog):
        if one.outliers:
            yield Advice(
                f"{count(one.outliers)} redo writes were outliers on disk and flash at the same time",
                (
                    Evidence("outliers on both", one.outliers, "count", "FL_ACTUAL_OUTLIERS"),
                    Evidence("outliers prevented", one.prevented, "count", "FL_PREVENTED_OUTLIERS"),
                    Evidence("redo writes", one.writes, "count", "FL_IO_W"),
                ),
                "each is a commit that waits long despite the flash log",
                (
                    "dbdyno cells skew  # is it one cell, or one flash module?",
                    "cellcli -e list metricdefinition attributes name, description where name like 'FL_.*'",
                ),
                subject="flash log",
            )


def _find_passthrough(facts: Facts) -> Iterator[Advice]:
    for one in facts.rows_of(SmartScans):
        if one.eligible < SCANNED_MB:
            continue
        figures = _scan_figures(one)
        passed = one.passed / one.eligible
        if passed >= PASSED_SHARE:
            yield Advice(
                f"{share(passed)} of what smart scans could filter is passed through unfiltered:"
                f" {count(one.passed)} of {count(one.eligible)} MB",
                figures,
                "the database's processors filter these blocks, and the network carries all of them; this costs time "
                "in the database, which cells do not measure",
                (
                    "cellcli -e list metriccurrent attributes name, metricvalue where name = 'CL_CPUT'  # busy?",
                    "-- in the database: v$sysstat, cell num smartio automem buffer allocation failures, and passthru"
                    " reasons",
                ),
                subject="smart scans",
            )


def _find_large_returns(facts: Facts) -> Iterator[Advice]:
    for one in facts.rows_of(SmartScans):
        work = one.eligible - one.saved
        if one.eligible >= SCANNED_MB and work > 0 and one.returned >= RETURNED_SHARE * work:
            yield Advice(
                f"smart scans return {share(one.returned / one.eligible)} of what they read:"
                f" {count(one.returned)} of {count(one.eligible)} MB",
                _scan_figures(one),
                "offloading filters almost nothing: the scans have no filter, or return all columns; the network "
                "carries what the cells read",
                ("-- which statements? In v$sql: io_interconnect_bytes, io_cell_offload_eligible_bytes",),
                level="hint",
                subject="smart scans",
            )


def _scan_figures(smart_scans: SmartScans) -> tuple[Evidence, ...]:
    return (
        Evidence("eligible [MB]", smart_scans.eligible, "count", "SIO_IO_EL_OF"),
        Evidence("returned [MB]", smart_scans.returned, "count", "SIO_IO_OF_RE"),
        Evidence("passed through [MB]", smart_scans.passed, "count", "SIO_IO_PA_TH"),
        Evidence("saved by storage indexes [MB]", smart_scans.saved, "count", "SIO_IO_SI_SV"),
        Evidence("sent back to the database [MB]", smart_scans.reverse, "count", "SIO_IO_RV_OF"),
    )


def _about(cell: CellState, sentence: str, seen: Evidence, gain: str, *fix: str, level: Level = "warning") -> Advice:
    return Advice(sentence, (seen,), gain, fix, level, subject=cell.name)


def _dead(facts: Facts) -> Iterator[Advice]:
    for one in facts.rows_of(CellState):
        if one.silent_from is None:
            continue
        when = "in any round" if one.silent_from == 0 else f"from round {one.silent_from + 1} of {one.rounds} on"
        yield _about(
            one,
            f"{one.name} did not answer {when}{f' ({one.problem})' if one.problem else ''}",
            Evidence("rounds with an answer", one.answered, "count", f"{one.name}, of {one.rounds} rounds"),
            "no time: until it is back, one more failure may lose data, and no figure here includes this cell",
            f"dbdyno cells show --hosts {one.name}",
            "-- asmcmd lsdsk: which grid disks are offline",
            level="critical",
        )


def _began_anew(facts: Facts) -> Iterator[Advice]:
    for one in facts.rows_of(CellState):
        if one.restarts:
            yield _about(
                one,
                f"the service of {one.name} was restarted {one.restarts} times during the recording",
                Evidence("restarts", one.restarts, "count", f"{one.name}: its start time, or counters that decreased"),
                "no time: a cell that restarts under load has a separate fault",
                f"cellcli -e list alerthistory  # on {one.name}",
            )


def _clock(facts: Facts) -> Iterator[Advice]:
    for one in facts.rows_of(CellState):
        if one.clock:
            yield _about(
                one,
                f"the clock of {one.name} {one.clock}",
                Evidence("clock", one.clock, "text", f"{one.name}: its collection times compared with our query times"),
                "evidence: alerts and metrics of several cells can be matched again",
                f"chronyc tracking  # on {one.name}, and here",
                level="warning" if one.clock_is_certain else "hint",
            )


Judge = Callable[[Facts], Iterator[Advice | InsufficientEvidence]]


def _rule(
    name: str, title: str, reads: tuple[type, ...], condition: str, expects: str, risk: str, refuted: str, judge: Judge
) -> Rule:
    return Rule(name, "cells", title, reads, condition, expects, risk, _MANUAL, refuted, judge, engines=("cells",))


RULES = (
    _rule(
        "flash_misses",
        "Reads that miss the flash cache",
        (CellCache, CellWork),
        "small reads that missed the flash cache cost 10 % or more of the disks' time, compared with reads from "
        "flash, over four intervals or more",
        "the time of these reads, minus the time of the same reads from flash",
        "other data leave the flash cache",
        "with more flash and the same load, CD_IO_TM_R_SM of hard disks is as large",
        _misses,
    ),
    _rule(
        "slow_disk",
        "Disks that are slower than their siblings",
        (SlowDisk, CellWork),
        "the test of `cells skew` finds the disk (at a false discovery rate of 5 %), and its excess is 1 % of the "
        "disks' time",
        "the excess time",
        "a dropped disk must be rebuilt elsewhere, which causes load",
        "the disk is as fast as the others at the same load; a rebuild, scrubbing or a hot grid disk was the cause",
        _slow,
    ),
    _rule(
        "flash_log_bypass",
        "Redo writes that bypass the flash log",
        (CellLog,),
        "1 % or more of the redo writes bypass it",
        "shorter outliers of log file parallel write",
        "the flash log takes some of the flash",
        "log file parallel write has no outliers without the flash log",
        _bypass,
    ),
    _rule(
        "flash_log_outliers",
        "Redo writes that were slow on disk and flash",
        (CellLog,),
        "a redo write was slow on both the disk and the flash",
        "fewer commits with long waits",
        "none: the finding is only a question",
        "no session waited as long at that time",
        _outliers,
    ),
    _rule(
        "smart_scan_passed",
        "Smart scans that are passed through",
        (SmartScans,),
        "1 GB or more was eligible, and 10 % of it was passed through",
        "processor time of the database, and network traffic",
        "busy cells become busier",
        "the statements take just as long when everything is offloaded",
        _find_passthrough,
    ),
    _rule(
        "offload_efficiency",
        "Smart scans that filter nothing",
        (SmartScans,),
        "1 GB or more was eligible, and the cells return 90 % of what they read",
        "traffic on the network",
        "none: the finding is only a question",
        "the statements need all rows and columns",
        _find_large_returns,
    ),
    _rule(
        "dead_cell",
        "Cells that do not answer",
        (CellState,),
        "the cell stopped answering before the end of the recording",
        "availability",
        "none",
        "the cell answers from another host, so only the network to it was broken",
        _dead,
    ),
    _rule(
        "cell_restart",
        "Cells that restart",
        (CellState,),
        "counters were reset during the recording",
        "availability",
        "none",
        "the restart was planned",
        _began_anew,
    ),
    _rule(
        "cell_clock",
        "Clocks that are wrong",
        (CellState,),
        "a cell's collection times do not agree with the times of our queries",
        "evidence for other rules",
        "a clock that is set back makes recorded times ambiguous: slew it instead",
        "our clock is wrong",
        _clock,
    ),
)
