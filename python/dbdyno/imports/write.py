"""Creation of a run folder from outputs of a benchmark program.

Several files are repetitions of one benchmark, in the order in which they are given. Operations that were timed one by
one become `calls`, cut into blocks of equal length; with several commands, each block has one execution of each command
as a turn. Sums become `metrics`, an interval per block, with the evidence `sums`, because the single operations are
unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.base import escaping
from dbdyno.base.errors import EvidenceError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.version import VERSION
from dbdyno.evidence.run import Block, Run, SliceRecord, new_run
from dbdyno.imports.contents import FILE, OPTION, UNITS, Contents, Interval, Sums, TimedOperations
from dbdyno.study.plan.plan import Arm, Plan, Schedule, Watch, Workload

IMPORTED = "imported"
BLOCKS_MOST = 200
"""Maximum number of separate intervals; more are merged, and lose their quantiles."""
COUNTS = ("transactions", "failed")


@dataclass(frozen=True)
class Piece:
    """A block to be written: its times, and for each arm its rows of `calls` or its sums."""

    started_ns: int
    ended_ns: int
    timed: list[tuple[int, TimedOperations, range | list[int]]]
    sums: list[tuple[int, Interval]]


def write_run(files: Sequence[tuple[str, Contents]], out: Path, *, title: str = "", blocks: int = 20) -> Run:
    """Write the contents of files as a new run folder, and return the run.

    Args:
        files: Names and contents, in the order of the repetitions.
        out: The new run folder.
        title: Name of the benchmark, if the files do not contain it; the run's title.
        blocks: Number of blocks into which operations are cut.

    Raises:
        EvidenceError: The files are not of one benchmark, or the folder cannot be made.
    """
    first = files[0][1]
    for name, other in files[1:]:
        _same_benchmark(files[0][0], first, name, other)
    pieces = [piece for _, one in files for piece in _pieces(one, max(2, blocks // len(files)))]
    plan = _plan(first, title)
    run = new_run(out.parent, title, _manifest(plan, files, len(pieces)), name=out.name)
    names = [arm.name for arm in plan.arms]
    for number, piece in enumerate(pieces):
        _write_block(run, number, piece, names, first.program)
    begun_s = min((piece.started_ns for piece in pieces), default=0) / 1e9
    run.save(status="complete", ended="imported", started_at=_moment(begun_s))
    return run


def set_start(files: Sequence[tuple[str, Contents]], started_ns: int) -> None:
    """Set the start of the first benchmark; each later benchmark begins when the previous one ended.

    Raises:
        EvidenceError: An output contains its own time.
    """
    for name, one in files:
        if not one.dated_by:
            raise EvidenceError(
                "already contains the time of its benchmark", where=name, next_step="leave out --started"
            )
        one.ended_ns = started_ns = started_ns + _length_ns(one)
        one.dated_by = OPTION


def _length_ns(contents: Contents) -> int:
    if contents.sums:
        return max(arm.intervals[-1].ended_ns for arm in contents.sums)
    return sum(map(sum, (arm.elapsed_ns for arm in contents.timed)))


def _moment(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _same_benchmark(one: str, first: Contents, name: str, second: Contents) -> None:
    """Raise an error for a file that is not a repetition of the first.

    Raises:
        EvidenceError: Program, benchmark, settings or arms differ, or one has operations and the other sums.
    """
    for what, a, b in (
        ("program", first.program, second.program),
        ("benchmark", first.benchmark, second.benchmark),
        ("settings", first.settings, second.settings),
        ("arms", first.arms(), second.arms()),
        ("kind of numbers", _kind(first), _kind(second)),
    ):
        if a != b:
            raise EvidenceError(
                f"is not a repetition of {one}: {what}: expected {a}, found {b}",
                where=name,
                next_step="import the file as a run of its own, and compare the two with `dbdyno compare RUN RUN`",
            )


def _kind(contents: Contents) -> str:
    return "single operations" if contents.timed else "sums"


def _pieces(contents: Contents, blocks: int) -> Iterator[Piece]:
    """Yield the blocks of one file, with times in ns since 1970."""
    ended_ns = contents.ended_ns or 0
    if contents.sums:
        own = [_merge_intervals(arm) for arm in contents.sums]
        last_ns = max(one[-1].ended_ns for one in own)
        shift_ns = max(0, ended_ns - last_ns)
        for row in zip(*own, strict=True):
            times = (row[0].started_ns + shift_ns, row[0].ended_ns + shift_ns)
            yield Piece(*times, [], list(enumerate(row)))
    elif contents.timed[0].in_turn:
        yield from _in_turn(contents.timed, ended_ns)
    else:
        yield from _by_time(contents.timed[0], blocks)


def _merge_intervals(arm: Sums) -> list[Interval]:
    """Return the intervals, merging several into one if there are too many."""
    size = -(-len(arm.intervals) // BLOCKS_MOST)
    if size == 1:
        return arm.intervals
    return [_sum(arm.intervals[at : at + size]) for at in range(0, len(arm.intervals), size)]


def _sum(parts: Sequence[Interval]) -> Interval:
    """Merge intervals into one: counts are added, throughput and means are averaged; quantiles cannot be merged."""
    spans = [part.ended_ns - part.started_ns for part in parts]
    values: dict[str, float] = {}
    for name in COUNTS:
        if all(name in part.values for part in parts):
            values[name] = sum(part.values[name] for part in parts)
    for name, weights in (("throughput", spans), ("mean", [part.values.get("transactions", 0) for part in parts])):
        if sum(weights) and all(name in part.values for part, weight in zip(parts, weights, strict=True) if weight):
            total = sum(part.values.get(name, 0) * weight for part, weight in zip(parts, weights, strict=True))
            values[name] = total / sum(weights)
    return Interval(parts[0].started_ns, parts[-1].ended_ns, values)


def _in_turn(arms: Sequence[TimedOperations], ended_ns: int) -> Iterator[Piece]:
    """Yield a block for each execution of the commands; only their order is known, not when they ran."""
    most = max(len(arm.elapsed_ns) for arm in arms)
    lengths = [sum(arm.elapsed_ns[at] for arm in arms if at < len(arm.elapsed_ns)) for at in range(most)]
    begun_ns = max(0, ended_ns - sum(lengths))
    for at, length in enumerate(lengths):
        rows = [(place, arm, [at]) for place, arm in enumerate(arms) if at < len(arm.elapsed_ns)]
        yield Piece(begun_ns, begun_ns + length, [(place, arm, own) for place, arm, own in rows], [])
        begun_ns += length


def _by_time(arm: TimedOperations, blocks: int) -> Iterator[Piece]:
    """Yield blocks of equal length; an operation belongs to the block in which it ended."""
    ends = [a + b for a, b in zip(arm.started_ns, arm.elapsed_ns, strict=True)]
    first, last = min(arm.started_ns), max(ends)
    length = max(1, -(-(last - first + 1) // blocks))
    within: dict[int, list[int]] = {}
    for at, end in enumerate(ends):
        within.setdefault((end - first) // length, []).append(at)
    for number in sorted(within):
        begun_ns = first + number * length
        yield Piece(begun_ns, begun_ns + length, [(0, arm, within[number])], [])


def _plan(first: Contents, title: str) -> Plan:
    """Return a plan that describes the run: runs with equal plans are repetitions of one benchmark."""
    named = {"program": first.program, "benchmark": title or _printable(first.benchmark)}
    settings = {name: _printable(value) if isinstance(value, str) else value for name, value in first.settings.items()}
    sessions = max([*(arm.sessions for arm in first.timed), *(arm.sessions for arm in first.sums)])
    return Plan(
        title=title or " ".join(filter(None, (first.program, named["benchmark"]))),
        question=f"Imported from what {first.program} wrote.",
        arms=[Arm(name=_printable(name), sessions=sessions) for name in first.arms()],
        workload=Workload(kind=IMPORTED, parameters={**named, **settings}),
        sessions=sessions,
        schedule=Schedule(warmup_blocks=0),
        watch=Watch(overhead_blocks=0, counters=False),
    )


def _printable(name: str, longest: int = 60) -> str:
    """Return foreign text as one line that is safe to write and show."""
    return escaping.escape_line(name, longest)


def _manifest(plan: Plan, files: Sequence[tuple[str, Contents]], blocks: int) -> JsonObject:
    first = files[0][1]
    evidence = "operations" if first.timed else "sums"
    version = " ".join(filter(None, (first.program, _printable(first.version, 200))))
    return {
        "tool_version": VERSION,
        "title": plan.title,
        "question": plan.question,
        "kind": plan.kind,
        "study": None,
        "seed": 0,
        "bench": IMPORTED,
        "reads": {"evidence": evidence, "virtual": False, "parts": []},
        "switch": IMPORTED,
        "switch_reason": f"{first.program} ran them so",
        "notes": _notes(files),
        "dated_by": next((one.dated_by for _, one in files if one.dated_by), ""),
        "blocks_planned": blocks,
        "arms": [
            {
                "name": arm.name,
                "description": version,
                "sessions": plan.sessions_of(arm),
                "rate_per_s": None,
                "target": None,
                "changes": {},
                "against": None,
            }
            for arm in plan.arms
        ],
        "targets": {first.program: {"version": version, "settings": []}},
        "files": [{"name": Path(name).name, "totals": one.totals, "unread": len(one.unread)} for name, one in files],
        "plan": plan.to_dict(),
    }


def _notes(files: Sequence[tuple[str, Contents]]) -> list[str]:
    first = files[0][1]
    notes = []
    if first.sums:
        notes.append(f"{first.program} wrote only sums: the values within an interval are not known")
    elif first.timed[0].in_turn:
        notes.append(
            f"{first.program} ran one command after the other; the file does not contain the "
            f"start time of each execution"
        )
    if any(one.dated_by == FILE for _, one in files):
        notes.append("the output contains no date: the run is dated by the modification time of its file")
    return notes


def _write_block(run: Run, number: int, piece: Piece, names: Sequence[str], program: str) -> None:
    from dbdyno import _core

    name = f"b{number:06d}"
    if piece.timed:
        columns = _calls(number, piece, names)
        rows = _core.write_calls(run.path / "calls", name, columns)
    else:
        columns = _metrics(number, piece, names, program)
        rows = _core.write_metrics(run.path / "metrics", name, columns)
    arms = [_counts(at, arm, own) for at, arm, own in piece.timed]
    wall_ns = piece.ended_ns - piece.started_ns
    report: JsonObject = {"reconnects": 0, "cpu_ns": 0, "wall_ns": wall_ns, "arms": arms}
    slices = [SliceRecord(at, at) for at in (*(one[0] for one in piece.timed), *(one[0] for one in piece.sums))]
    run.add_block(Block(number, "measure", piece.started_ns, piece.ended_ns, rows, slices, report=report))


def _calls(number: int, piece: Piece, names: Sequence[str]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        key: []
        for key in ("arm", "block", "slice", "session", "statement", "started_ns", "elapsed_ns", "rows", "error")
    }
    for at, arm, own in piece.timed:
        count = len(own)
        failed = [arm.error[one] for one in own]
        columns["arm"] += [names[at]] * count
        columns["block"] += [number] * count
        columns["slice"] += [at] * count
        columns["session"] += [arm.session[one] for one in own]
        columns["statement"] += [arm.statement[one] for one in own]
        shift_ns = piece.started_ns - arm.started_ns[own[0]] if arm.in_turn else 0
        columns["started_ns"] += [arm.started_ns[one] + shift_ns for one in own]
        columns["elapsed_ns"] += [arm.elapsed_ns[one] for one in own]
        columns["rows"] += [0 if error else 1 for error in failed]
        columns["error"] += failed
    return columns


def _counts(at: int, arm: TimedOperations, own: range | list[int]) -> JsonObject:
    return {
        "arm": at,
        "transactions": len(own),
        "errors": sum(arm.error[one] is not None for one in own),
        "retries": 0,
        "skipped": 0,
        "busy_ns": sum(arm.elapsed_ns[one] for one in own),
        "lag_max_ns": 0,
        "first_error": next((arm.error[one] for one in own if arm.error[one]), None),
    }


def _metrics(number: int, piece: Piece, names: Sequence[str], program: str) -> dict[str, list[Any]]:
    rows = [
        (
            names[at],
            number,
            program,
            "benchmark",
            names[at],
            name,
            one.ended_ns,
            float(value),
            UNITS.get(name, ""),
            "sum",
        )
        for at, one in piece.sums
        for name, value in one.values.items()
    ]
    keys = ("arm", "block", "source", "object_type", "object", "metric", "at_ns", "value", "unit", "kind")
    return {key: [row[at] for row in rows] for at, key in enumerate(keys)}
