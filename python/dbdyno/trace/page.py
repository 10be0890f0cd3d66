"""Common part of all pages about traces: what was read, and warnings.

A page is a plain dict: `schema`, `kind` ("trace"), `page` (which one), `facts`, `warnings`, and the page's own content
under its own keys. `dbdyno.pages` builds the displayed page from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.manifest import Manifest

if TYPE_CHECKING:
    from dbdyno.trace.source import Traces

SCHEMA = 1
NAMED = 3
"""Maximum number of files named in one warning."""
_NUMBERS = re.compile(r"\d[\d.,]*")
NO_WAITS = (
    "The files contain no waits: they were traced without waits (level 1 or 4). In such traces 20 to 50 % of the time "
    "remains unexplained."
)


def page(name: str, traces: Traces, body: Mapping[str, Any], title: str = "") -> JsonObject:
    """Return a page about opened traces: its facts, its warnings, and `body`."""
    return {
        "schema": SCHEMA,
        "kind": "trace",
        "page": name,
        "facts": {**facts(traces), "title": title or title_of(traces.manifest)},
        "warnings": merge_warnings(warnings(traces)),
        **body,
    }


def title_of(manifest: Manifest) -> str:
    """Return the title of an import, or the names of its files if it has none."""
    return str(manifest.title or files_title([f.get("path") for f in _files(manifest)]))


def files_title(paths: Sequence[Any]) -> str:
    """Return a title from file names: the only one, or the first one and the number of others."""
    names = ["standard input" if path == "-" else Path(str(path)).name for path in paths]
    if not names:
        return "traces"
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def facts(traces: Traces) -> JsonObject:
    """Return sizes, sessions, time and version of what was read."""
    files = _files(traces.manifest)
    found = traces.rows(
        "select count(*) as sessions, coalesce(sum(elapsed_ns), 0)::bigint as elapsed_ns,"
        " min(started_ns) as from_ns, max(started_ns + elapsed_ns) as to_ns from sessions"
    )[0]
    return {
        "files": len(files),
        "bytes": sum(int(f.get("bytes") or 0) for f in files),
        "lines": sum(int(f.get("lines") or 0) for f in files),
        **found,
        "versions": _distinct((f.get("facts") or {}).get("version") for f in files),
        "levels": _distinct(f.get("level") for f in files),
    }


def warnings(traces: Traces) -> list[dict[str, str]]:
    """Return the warnings of the reader and of the evidence, each with `code`, `text`, `next`."""
    manifest = traces.manifest
    found = reader_warnings(manifest.warnings or [], [f.get("path") for f in _files(manifest)])
    has_waits = traces.connection.execute("select 1 from waits limit 1").fetchone()
    has_calls = traces.connection.execute("select 1 from calls limit 1").fetchone()
    if has_calls and not has_waits and not _mentions(found, "WAIT"):
        found.append({"code": "no waits", "text": NO_WAITS, "next": "trace with waits (level 8)"})
    unread = manifest.unread if manifest.has("unread") else {}
    total = sum(unread.values()) if isinstance(unread, Mapping) else len(unread)
    if total and not _mentions(found, "could not be read"):
        found.append(unread_warning(total))
    return found + [{"code": "torn part", "text": text, "next": ""} for text in traces.broken]


def reader_warnings(sentences: Sequence[Any], paths: Sequence[Any]) -> list[dict[str, str]]:
    """Return the reader's own warnings, with file names instead of paths if the names are unique."""
    names = [Path(str(path)).name for path in paths]
    short = {str(path): Path(str(path)).name for path in paths if len(set(names)) == len(names)}
    found = []
    for sentence in map(str, sentences):
        path = next((p for p in short if sentence.startswith(f"{p}:")), "")
        text = short[path] + sentence[len(path) :] if path else sentence
        found.append({"code": "trace", "text": text, "next": ""})
    return found


def merge_warnings(found: Sequence[JsonObject]) -> list[dict[str, object]]:
    """Return the warnings; those that say the same about several files are merged into one, with their `count`.

    Sentences say the same if they differ only in the file at the beginning and in numbers.
    """
    groups: dict[tuple[str, str], list[JsonObject]] = {}
    for warning in found:
        _, rest = _of_file(str(warning["text"]))
        alike = _NUMBERS.sub("#", rest).replace("# stretches ", "# stretch ")
        groups.setdefault((str(warning["code"]), alike), []).append(warning)
    return [same[0] if len(same) == 1 else _merge_warnings(same) for same in groups.values()]


def _merge_warnings(same: list[dict[str, object]]) -> dict[str, object]:
    split = [_of_file(str(warning["text"])) for warning in same]
    names = list(dict.fromkeys(name for name, _ in split if name))
    alike = len({rest for _, rest in split}) == 1
    shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    text = split[0][1] if alike else f"{split[0][1]} (the first of {len(same)} like it)"
    return {**same[0], "text": f"{shown}: {text}" if names else text, "count": len(same)}


def _of_file(text: str) -> tuple[str, str]:
    """Return the file that a warning is about ("" if none), and the rest of the warning."""
    name, colon, rest = text.partition(": ")
    return (name, rest) if colon and "." in name and not name.endswith(".") else ("", text)


def _mentions(found: list[dict[str, str]], words: str) -> bool:
    return any(words in warning["text"] for warning in found)


def unread_warning(total: int) -> dict[str, str]:
    """Return the warning that something was not read, which says where to see it."""
    pieces = "1 piece was" if total == 1 else f"{total} pieces were"
    return {
        "code": "unread",
        "text": f"{pieces} not read.",
        "next": "list the place of each with `dbdyno trace check FILES`",
    }


def _files(manifest: Manifest) -> list[JsonObject]:
    return list(manifest.files or [])


def _distinct(values: Any) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value not in (None, "")))
