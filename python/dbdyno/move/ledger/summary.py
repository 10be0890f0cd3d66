"""Summary of what a job did, from its folder: the model that `dbdyno report JOB` shows; no server is queried.

Times are from this machine's clock (with Spark, from the machine that read the chunk). A phase that was killed left no
note: its attempt ends with its last finished chunk.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.events import Engine, wait_class
from dbdyno.evidence.seal import is_own_plan
from dbdyno.move.engines.postgres.source import application_name
from dbdyno.move.ledger.folder import DONE, Ledger
from dbdyno.move.nouns import with_noun
from dbdyno.move.proof.statement import recorded_proof
from dbdyno.move.reading.run import ENDING_SQL

SCHEMA = 1
KIND = "move"
REJECTS_SHOWN = 20
KILLED = "ended without a record: it was killed, or its machine went down"
Row = JsonObject


def job_summary(folder: Path) -> Row:
    """Return the model of a job's report.

    Raises:
        MoveError: There is no job in the folder that can be read.
    """
    ledger = Ledger.open(folder)
    plan, records = ledger.plan, ledger.records()
    chunks = [_chunk(one, records[one["number"]]) for one in plan["chunks"] if one["number"] in records]
    state = _state(ledger)
    attempts = _attempts(ledger, chunks, state)
    found = recorded_proof(ledger)
    proved = _proof_sentences(ledger, found.sentences() if records else [])
    instants = 0 if plan.get("files") else max(len(found.instants), 1)
    rejects = _rejects(ledger)
    sessions = [{**one, "waits": dict(one["waits"])} for one in ledger.manifest.get("cost", [])]
    totals = _totals(plan, chunks, attempts)
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "job": {
            "id": plan["id"],
            "folder": str(folder.absolute()),
            "source": plan["source"],
            "target": _target(plan, folder),
            "mode": (plan.get("into") or {}).get("mode"),
            "state": state,
            "engine": _engine(plan),
            "stop": _stop(plan),
        },
        "verdict": _verdict(state, totals, instants, proved, rejects["count"] if rejects else 0),
        "totals": totals,
        "proved": proved,
        "instants": [{"at": at, "chunks": count} for at, count in found.instants],
        "tables": table_rows(plan, records),
        "attempts": attempts,
        "chunks": chunks,
        "sessions": sessions,
        "waits": _waits(sessions, _engine(plan)),
        "rejects": rejects,
    }


def _engine(plan: Mapping[str, Any]) -> Engine:
    """Return the engine of the source, or of the target if files are loaded."""
    into = plan.get("into")
    source = str(into["target"] if into and plan.get("files") else plan["source"])
    if source.startswith("oracle"):
        return "oracle"
    return "mariadb" if source.startswith(("mariadb", "mysql")) else "postgresql"


def _state(ledger: Ledger) -> str:
    status = str(ledger.manifest["status"])
    if status != "running":
        return status
    return "running" if ledger.is_locked() else "unfinished"


def _target(plan: Mapping[str, Any], folder: Path) -> str:
    into = plan.get("into")
    if into:
        return str(into["target"]) if into["table"] == "*" else f"{into['table']} of {into['target']}"
    return str(plan.get("place") or folder)


def _stop(plan: Mapping[str, Any]) -> str:
    engine = _engine(plan)
    name = application_name(plan["id"])
    if engine == "mariadb":
        # MariaDB's sessions have no application name; their statements show which job they belong to.
        return "show processlist; kill ... (this ends the job)"
    if engine == "oracle":
        return ""
    return ENDING_SQL.format(name)


def _chunk(planned: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    ended, elapsed = record.get("ended_ns"), record.get("elapsed_ns") or 0
    return {
        "number": planned["number"],
        "table": planned["table"],
        "worker": record.get("worker"),
        "process": record.get("process"),
        "snapshot": record["snapshot"],
        "began_ns": None if not ended else ended - elapsed,
        "ended_ns": ended or None,
        "elapsed_ns": elapsed,
        "rows": record["rows"],
        "bytes": record.get("copy_bytes") or 0,
        "file_bytes": record.get("file_bytes") or 0,
    }


def _attempts(ledger: Ledger, chunks: Sequence[Row], state: str) -> list[Row]:
    """Return the attempts with their phases, their end if it is known, and the finished chunks that they read."""
    given = ledger.manifest.get("attempts", [])
    found = []
    for place, one in enumerate(given):
        until = given[place + 1]["began_ns"] if place + 1 < len(given) else None
        own = [
            chunk
            for chunk in chunks
            if chunk["ended_ns"]
            and one["began_ns"] <= chunk["ended_ns"]
            and (until is None or chunk["ended_ns"] < until)
        ]
        ends = [chunk["ended_ns"] for chunk in own] + [phase["ended_ns"] for phase in one["phases"]]
        last = one["phases"][-1]["ending"] if one["phases"] else KILLED
        working = state == "running" and until is None
        unsaid = last == DONE and until is None and state == "unfinished"
        found.append(
            {
                **one,
                "ended_ns": max(ends, default=one["began_ns"]),
                "heard": bool(ends),
                "chunks": len(own),
                "rows": sum(chunk["rows"] for chunk in own),
                "ending": "at work" if working else KILLED if unsaid else last,
            }
        )
    return found


def _totals(plan: Mapping[str, Any], chunks: Sequence[Row], attempts: Sequence[Row]) -> Row:
    spent = sum(one["ended_ns"] - one["began_ns"] for one in attempts)
    reading = sum(map(_reading_ns, attempts))
    size = sum(one["bytes"] for one in chunks)
    return {
        "rows": sum(one["rows"] for one in chunks),
        "bytes": size,
        "file_bytes": sum(one["file_bytes"] for one in chunks),
        "chunks": len(chunks),
        "chunks_in_all": len(plan["chunks"]),
        "elapsed_ns": spent or None,
        "reading_ns": reading or None,
        "bytes_per_s": size * 1e9 / reading if reading else None,
    }


def _reading_ns(attempt: Mapping[str, Any]) -> int:
    """Return how long an attempt spent reading, in nanoseconds; 0 if it has no finished chunks."""
    if not attempt["chunks"]:
        return 0
    noted = [one["ended_ns"] - one["began_ns"] for one in attempt["phases"] if one["name"] == "reading"]
    return sum(noted) or attempt["ended_ns"] - attempt["began_ns"]


def table_rows(plan: Mapping[str, Any], records: Mapping[int, Mapping[str, Any]]) -> list[Row]:
    """Return a row per table of a plan: its chunks, and the rows and bytes of those that are finished."""
    rows = []
    for place, table in enumerate(plan["tables"]):
        numbers = [one["number"] for one in plan["chunks"] if one["table"] == place]
        done = [records[number] for number in numbers if number in records]
        rows.append(
            {
                "table": f"{table['schema']}.{table['name']}".removeprefix("."),
                "kind": table.get("kind"),
                "chunks": len(done),
                "chunks_in_all": len(numbers),
                **{name: sum(one.get(key) or 0 for one in done) for name, key in _SUMMED},
            }
        )
    return rows


_SUMMED = (("rows", "rows"), ("bytes", "copy_bytes"), ("file_bytes", "file_bytes"))


def _waits(sessions: Iterable[Mapping[str, Any]], engine: Engine) -> list[Row]:
    """Return wait events of all sessions together, with the number and share of samples that showed each."""
    looks: Counter[str] = Counter()
    for one in sessions:
        looks.update(one["waits"])
    whole = looks.total()
    rows = []
    for event, count in looks.most_common():
        kind, _, name = event.rpartition(":")
        of = "cpu" if event == "CPU" else wait_class(engine, kind, name)
        rows.append({"event": event, "class": of, "looks": count, "share": count / whole})
    return rows


def _proof_sentences(ledger: Ledger, known: Sequence[str]) -> list[str]:
    """Return what the job reported as verified at its end, or what its records say if it has not ended."""
    kept = ledger.manifest.get("proved")
    return [str(line) for line in kept] if isinstance(kept, list) else list(known)


def _verdict(state: str, totals: Row, instants: int, proved: Sequence[str], rejected: int) -> Row:
    """Return the verdict: a word, its tone, and a sentence."""
    missing = totals["chunks_in_all"] - totals["chunks"]
    done = f"{with_noun(totals['rows'], 'row')} in {totals['chunks']} of {with_noun(totals['chunks_in_all'], 'chunk')}"
    differs = [line.removeprefix("DIFFERS: ") for line in proved if line.startswith("DIFFERS: ")]
    if differs:
        return {"word": "Differs", "tone": "bad", "headline": differs[0]}
    if state == "complete" and missing:
        return {"word": "Incomplete", "tone": "bad", "headline": f"{done}: the files of {missing} are missing"}
    if state == "complete":
        words = "all as of one instant" if instants == 1 else f"of {instants} instants: rows may be missing or doubled"
        words = words if instants else "all of the files, in one transaction"
        bent = [line for line in proved if line.startswith("NOT the same: ")]
        words += f"; {with_noun(rejected, 'row')} rejected" if rejected else ""
        words += "; some values are not stored exactly" if bent else ""
        tone = "doubt" if instants > 1 or rejected or bent else "good"
        return {"word": "Complete", "tone": tone, "headline": f"{done}, {words}"}
    if state == "aborted":
        return {"word": "Aborted", "tone": "even", "headline": "aborted; its files are removed"}
    if state == "running":
        return {"word": "At work", "tone": "even", "headline": f"{done} so far"}
    return {"word": "Not finished", "tone": "bad", "headline": f"{done}; continue with `dbdyno move resume`"}


def _rejects(ledger: Ledger) -> Row | None:
    """Return the rows that the target refused, or None; their file is read only if this user made the plan."""
    path = (ledger.plan.get("into") or {}).get("rejects")
    if not path or not is_own_plan(ledger.plan, ledger.manifest.get("seal")):
        return None
    found: list[Row] = []
    count = 0
    with contextlib.suppress(OSError, ValueError), Path(path).open(encoding="utf-8") as file:
        for line in file:
            count += 1
            if len(found) < REJECTS_SHOWN:
                one = json.loads(line)
                found.append({name: one.get(name) for name in ("file", "row", "reason", "code")})
    return {"path": str(path), "there": Path(path).exists(), "count": count, "rows": found}
