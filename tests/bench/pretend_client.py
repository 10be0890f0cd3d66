"""A client that speaks the protocol and asks no server: `python pretend_client.py HOW [FILE]`. `HOW` says how it lies
or fails, from its second slice on; `FILE` gets its process, and makes it behave where it already exists."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from dbdyno.bench.clients import stream
from dbdyno.bench.clients.stream import Record, pack

HOW = sys.argv[1]
FIRST = 2
EACH_NS = 200_000


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def failing(message: dict, count: int) -> None:
    """Fail instead of answering, if `HOW` says so."""
    if HOW == "dies":
        print("out of wits", file=sys.stderr, flush=True)
        os._exit(3)
    if HOW == "hangs":
        time.sleep(60)
    if HOW == "prints":
        write(b"INFO connection pool is warm, everything is fine so far\n")
    if HOW == "fails":
        write(pack(Record(stream.FAILED, code="57P01", text="the password is geheim\nand more")))
        os._exit(1)


def lied(rows: list[Record], end: Record) -> tuple[list[Record], Record]:
    """Return the operations and the end record, changed so that they cannot be true."""
    one = rows[-1].__dict__
    changed = {
        "other slice": {"slice": 77},
        "other session": {"session": 9},
        "other script": {"statement": 5},
        "no time": {"elapsed_ns": -1},
        "before": {"started_ns": one["started_ns"] - 10**12},
        "after": {"elapsed_ns": 10**12},
        "rows": {"rows": -7},
        "code": {"code": "oh no"},
        "number alone": {"vendor": 1062},
        "backwards": {"started_ns": rows[0].started_ns},
    }.get(HOW)
    if changed:
        rows[-1] = Record(**{**one, **changed})
    if HOW == "stray statement":
        rows.append(Record(**{**one, "kind": stream.STATEMENT}))
    if HOW == "long statement":
        rows.insert(0, Record(**{**rows[0].__dict__, "kind": stream.STATEMENT, "elapsed_ns": rows[0].elapsed_ns + 1}))
    if HOW == "outside":
        end = Record(**{**end.__dict__, "started_ns": one["started_ns"] + 1})
        end = Record(**{**end.__dict__, "elapsed_ns": time.monotonic_ns() - end.started_ns})
    if HOW == "too many":
        end = Record(**{**end.__dict__, "rows": end.rows + 5})
    if HOW == "too few":
        rows, end = rows[1:], Record(**{**end.__dict__, "rows": end.rows - 1})
    if HOW == "other end":
        end = Record(**{**end.__dict__, "slice": 78})
    return rows, end


def shortened(rows: list[Record]) -> list[Record]:
    """Report half of each time: `half` leaves gaps; `squeezed` finishes long before it says so."""
    first, parts = rows[0].started_ns, {"half": 1, "squeezed": 2}
    if HOW not in parts:
        return rows
    return [
        Record(
            **{
                **row.__dict__,
                "started_ns": first + (row.started_ns - first) // parts[HOW],
                "elapsed_ns": row.elapsed_ns // 2,
            }
        )
        for row in rows
    ]


def slice_of(message: dict, count: int, behaves: bool) -> None:
    began = time.monotonic_ns()
    number = message["transactions"] or 3
    each = EACH_NS if message["transactions"] else message["length_ns"] // number + 1
    rows = [Record(stream.TRANSACTION, 0, message["slice"], 0, began + at * each, each, 1, "") for at in range(number)]
    time.sleep(number * each / 1e9)
    end = Record(stream.END, 0, message["slice"], 0, began, time.monotonic_ns() - began, number)
    if count >= FIRST:
        rows, end = lied(rows if behaves else shortened(rows), end)
    data = b"".join(map(pack, rows))
    if HOW == "short records" and count >= FIRST:
        data = b"".join(pack(row)[:-1] for row in rows)
    write(data + pack(end) + (data[:10] if HOW == "goes on" and count >= FIRST else b""))
    if HOW == "prints later":
        time.sleep(0.05)
        write(b"DEBUG slice is done\n")


def main() -> None:
    behaves = False
    if len(sys.argv) > 2:
        behaves = Path(sys.argv[2]).exists() and HOW in ("dies", "half")
        Path(sys.argv[2]).write_text(str(os.getpid()))
    if HOW == "greets with text":
        write(b"Picked up JAVA_TOOL_OPTIONS: -Xmx1g, and some more of that kind of text\n")
    version = 9 if HOW == "other version" else stream.VERSION
    clock = time.time_ns() if HOW == "other clock" else time.monotonic_ns()
    write(pack(Record(stream.HELLO, statement=version, started_ns=clock, text="pretended 1.0")))
    count = 0
    for line in sys.stdin:
        message = json.loads(line)
        now = time.monotonic_ns()
        if message["do"] == "job":
            write(pack(Record(stream.READY, started_ns=now)))
        elif message["do"] == "close":
            write(pack(Record(stream.CLOSED, started_ns=now)))
        elif message["do"] == "slice":
            count += 1
            if count >= FIRST and not behaves:
                failing(message, count)
            slice_of(message, count, behaves)


if __name__ == "__main__":
    main()
