"""The interfaces for programs: public names of Python with their parameters, and the protocol of clients."""

from __future__ import annotations

import inspect

import dbdyno
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.clients import stream
from dbdyno.bench.clients.stream import Record, pack


def interface() -> JsonObject:
    """Return the names, parameters and protocol that `docs/explanation/compatibility.md` promises to keep."""
    return {
        "python": {name: _parameters(getattr(dbdyno, name)) for name in sorted(dbdyno.__all__)},
        "client_protocol": {
            "version": stream.VERSION,
            "kinds": {str(kind): word for kind, word in stream.KINDS.items()},
            "records": {word: pack(sample(kind)).hex() for kind, word in stream.KINDS.items()},
        },
    }


def sample(kind: int) -> Record:
    """Return a record of a kind with a value in each field."""
    operation = kind in (stream.TRANSACTION, stream.STATEMENT)
    return Record(kind, 2, 3, stream.VERSION, 5, 6, 7, code="23505", text="" if operation else "a text", vendor=1062)


def _parameters(value: object) -> JsonObject | None:
    """Return the parameters of a function or class, and whether each needs a value; None for anything else."""
    if not callable(value):
        return None
    found = inspect.signature(value).parameters.values()
    return {
        one.name: one.default is one.empty for one in found if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    }
