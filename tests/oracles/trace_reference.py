"""A second, slow reader of traces, to which the fast one is compared.

Written from the rules alone: regular expressions on text, every call compared with every later one.
It shares nothing with the reader in Rust. Quadratic: for small files only.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from dataclasses import dataclass, field
from pathlib import Path

CALL = re.compile(
    r"^(PARSE|EXEC|FETCH|UNMAP|SORT UNMAP|CLOSE) #(\d+):c=(\d+),e=(\d+)"
    r"(?:,p=(\d+),cr=(\d+),cu=(\d+),mis=\d+,r=(\d+))?,dep=(\d+)[^ ]*?,tim=(\d+)$"
)
LOB = re.compile(
    r"^(LOB[A-Z]+): type=[A-Z ]+(?:,bytes=\d+)?"
    r",c=(\d+),e=(\d+),p=(\d+),cr=(\d+),cu=(\d+),tim=(\d+)$"
)
WAIT = re.compile(r"^WAIT #(\d+): nam='(.*)' ela= ?(\d+) .*tim=(\d+)$")
TIMED = re.compile(r"^(?:PARSING IN CURSOR|PARSE ERROR|XCTEND).* ?tim=(\d+)")
PROCESS = re.compile(r"^\*\*\* \[ Unix process pid: (\d+) \]")
SESSION = re.compile(r"^\*\*\* SESSION ID:\((.*)\) \d{4}-")


@dataclass
class Call:
    """A call, with what the reference derived for it; times in microseconds."""

    line: int
    kind: str
    depth: int
    elapsed: int
    cpu: int
    blocks: tuple[int, int, int]
    end: int
    children: list[Call] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    parent: Call | None = None

    @property
    def start(self) -> int:
        return self.end - self.elapsed

    def own(self) -> tuple[int, int, int, tuple[int, ...]]:
        """Return exclusive elapsed time, exclusive CPU time, waits directly inside the call, and exclusive blocks."""
        elapsed = self.elapsed - sum(child.elapsed for child in self.children)
        cpu = self.cpu - sum(child.cpu for child in self.children)
        blocks = tuple(own - sum(child.blocks[at] for child in self.children) for at, own in enumerate(self.blocks))
        return elapsed, cpu, sum(wait.elapsed for wait in self.waits), blocks


@dataclass
class Wait:
    """A wait, and the innermost call that contains it."""

    line: int
    event: str
    elapsed: int
    end: int
    owner: Call | None = None

    @property
    def start(self) -> int:
        return self.end - self.elapsed


@dataclass
class Segment:
    """A stretch of one session in which `tim` does not go back by more than a second."""

    records: list[Call | Wait] = field(default_factory=list)
    last: int = 0

    def close(self) -> None:
        for at, record in enumerate(self.records):
            later = [r for r in self.records[at + 1 :] if isinstance(r, Call)]
            holds = [r for r in later if r.start <= record.start and record.end <= r.end]
            if isinstance(record, Wait):
                record.owner = holds[0] if holds else None
                if record.owner:
                    record.owner.waits.append(record)
            elif record.depth > 0:
                above = [r for r in holds if r.depth == record.depth - 1]
                record.parent = above[0] if above else None
                if record.parent:
                    record.parent.children.append(record)

    def elapsed(self) -> int:
        if not self.records:
            return 0
        return max(r.end for r in self.records) - min(r.start for r in self.records)


@dataclass
class Session:
    """A session with its process and name, and its segments in file order."""

    process: str = ""
    name: str = ""
    segments: list[Segment] = field(default_factory=lambda: [Segment()])

    @property
    def records(self) -> list[Call | Wait]:
        return [record for segment in self.segments for record in segment.records]

    def moment(self, tim: int) -> None:
        """Begins a new segment if `tim` went back by more than a second."""
        if self.segments[-1].records and tim < self.segments[-1].last - 1_000_000:
            self.segments.append(Segment())

    def add(self, record: Call | Wait) -> None:
        self.moment(record.end)
        segment = self.segments[-1]
        segment.records.append(record)
        segment.last = max(segment.last, record.end)


def lines(path: Path) -> list[str]:
    """Return the lines of a trace, which can be compressed."""
    packed = path.read_bytes()
    unpack = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}
    unpack[".lzma"] = lzma.decompress
    text = unpack[path.suffix](packed) if path.suffix in unpack else packed
    return [line.rstrip("\r") for line in text.decode("latin-1").split("\n")]


def outside_of_statements(path: Path) -> list[tuple[int, str]]:
    """Return the numbered lines that are not part of a statement's text."""
    kept, inside = [], False
    for number, line in enumerate(lines(path), 1):
        if not inside:
            kept.append((number, line))
        inside = line.startswith("PARSING IN CURSOR") or (inside and line != "END OF STMT")
    return kept


def read(path: Path) -> list[Session]:
    """Return the sessions of a trace, with calls and waits linked."""
    sessions = [Session()]
    current = sessions[0]
    for number, line in outside_of_statements(path):
        if found := PROCESS.match(line):
            current = _by_process(sessions, current, found[1])
        elif found := SESSION.match(line):
            current = _by_name(sessions, current, found[1])
        elif found := CALL.match(line):
            kind, _, c, e, *blocks, _, dep, tim = found.groups()
            counts = tuple(int(block or 0) for block in blocks)
            kind = kind.lower()
            current.add(Call(number, kind, int(dep), int(e), int(c), counts, int(tim)))  # type: ignore[arg-type]
        elif found := LOB.match(line):
            name, c, e, *blocks, tim = found.groups()
            counts = tuple(int(block) for block in blocks)
            current.add(Call(number, name.lower(), 0, int(e), int(c), counts, int(tim)))  # type: ignore[arg-type]
        elif found := WAIT.match(line):
            current.add(Wait(number, found[2], int(found[3]), int(found[4])))
        elif found := TIMED.match(line):
            current.moment(int(found[1]))
    for session in sessions:
        for segment in session.segments:
            segment.close()
    return [session for session in sessions if session.records]


def _by_process(sessions: list[Session], current: Session, process: str) -> Session:
    if current.process == process:
        return current
    if not current.process and not current.records:
        current.process = process
        return current
    for session in reversed(sessions):
        if session.process == process:
            return session
    sessions.append(Session(process=process))
    return sessions[-1]


def _by_name(sessions: list[Session], current: Session, name: str) -> Session:
    if current.name == name:
        return current
    for session in sessions:
        if (session.process, session.name) == (current.process, name):
            return session
    if not current.name:
        current.name = name
        return current
    sessions.append(Session(process=current.process, name=name))
    return sessions[-1]
