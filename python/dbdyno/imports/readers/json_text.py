"""Reading of JSON that other programs wrote."""

from __future__ import annotations

import json
import re
from typing import Any

from dbdyno.base.errors import EvidenceError
from dbdyno.base.json_types import JsonObject


def has_keys(head: str, *names: str) -> bool:
    """Return True if text that begins like JSON contains all these keys."""
    return head.lstrip()[:1] in ("{", "[") and all(re.search(rf'"{re.escape(name)}"\s*:', head) for name in names)


def parse_json(text: str, where: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        EvidenceError: The text is not JSON.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise EvidenceError(
            "is nested too deeply", where=where, next_step="pass a file written by a benchmark program"
        ) from error
    except ValueError as error:
        raise EvidenceError(
            f"is not complete JSON: {error}", where=where, next_step="pass the complete file"
        ) from error


def json_object(value: Any, name: str, where: str) -> JsonObject:
    """Return a value that must be a JSON object.

    Raises:
        EvidenceError: The value is not a JSON object.
    """
    if not isinstance(value, dict):
        raise EvidenceError(
            f"{name} is not an object", where=where, next_step="pass the complete file of the benchmark program"
        )
    return value
