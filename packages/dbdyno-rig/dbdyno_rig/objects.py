"""Objects that can be listed: the attributes of each kind, and those shown if none is named.

Each value has three forms: as printed in text output, as printed with `-xml` (exact), and as it is compared.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NamedTuple

from dbdyno.cells.numbers import cellcli_text, number_and_unit, size_bytes
from dbdyno_rig.language import Condition, Query, RefusedError, raise_syntax_error


class ShownValue(NamedTuple):
    """A value in three forms: as text, as in XML, and as it is compared (a number or a text)."""

    text: str
    xml: str
    key: float | str


ListedObject = dict[str, ShownValue]
"""An object: its values by attribute name; an attribute that is missing here is shown as empty."""

NOTHING = ShownValue("", "", "")

_METRIC = (
    "name",
    "alertState",
    "collectionTime",
    "metricObjectName",
    "metricType",
    "metricValue",
    "objectType",
)
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "cell": (
        "name",
        "cellVersion",
        "cpuCount",
        "flashCacheMode",
        "id",
        "makeModel",
        "offloadGroup",
        "releaseVersion",
        "status",
        "upTime",
        "cellsrvStatus",
        "msStatus",
        "rsStatus",
    ),
    "celldisk": ("name", "comment", "diskType", "freeSpace", "size", "status"),
    "griddisk": (
        "name",
        "asmModeStatus",
        "cachedBy",
        "cachingPolicy",
        "cellDisk",
        "diskType",
        "offset",
        "size",
        "status",
    ),
    "flashcache": (
        "name",
        "cellDisk",
        "creationTime",
        "degradedCelldisks",
        "effectiveCacheSize",
        "flushstatus",
        "size",
        "status",
    ),
    "flashlog": (
        "name",
        "cellDisk",
        "creationTime",
        "degradedCelldisks",
        "effectiveSize",
        "efficiency",
        "size",
        "status",
    ),
    "flashcachecontent": (
        "cachedKeepSize",
        "cachedSize",
        "dbUniqueName",
        "hitCount",
        "hoursToExpiration",
        "missCount",
        "objectNumber",
        "tableSpaceNumber",
    ),
    "metriccurrent": _METRIC,
    "metricdefinition": ("name", "description", "metricType", "objectType", "unit"),
    "metrichistory": _METRIC,
    "iormplan": ("name", "catPlan", "dbPlan", "objective", "status"),
    "alerthistory": (
        "name",
        "alertMessage",
        "alertSequenceID",
        "alertShortName",
        "alertType",
        "beginTime",
        "endTime",
        "examinedBy",
        "metricObjectName",
        "metricValue",
        "sequenceBeginTime",
        "severity",
    ),
    "threshold": ("name", "comparison", "critical", "observation", "occurrences", "warning"),
}
HIDDEN: dict[str, tuple[str, ...]] = {
    "metrichistory": ("ageInMinutes",),
    "alerthistory": ("ageInMinutes",),
}
"""Attributes that conditions may use, but that lists show only on request."""
MODIFIABLE: dict[str, tuple[str, ...]] = {
    "cell": ("flashCacheMode",),
    "griddisk": ("cachingPolicy",),
    "iormplan": ("catPlan", "dbPlan", "objective"),
    "alerthistory": ("examinedBy",),
    "threshold": ("comparison", "critical", "observation", "occurrences", "warning"),
}
"""Attributes that ALTER can change here; a real cell has more."""
DEFAULTS: dict[str, tuple[str, ...]] = {
    "cell": ("name", "status"),
    "celldisk": ("name", "status"),
    "griddisk": ("name", "status"),
    "flashcache": ("name", "status"),
    "flashlog": ("name", "status"),
    "flashcachecontent": ("objectNumber", "cachedSize", "hitCount", "missCount"),
    "metriccurrent": ("name", "metricObjectName", "metricValue"),
    "metricdefinition": ("name",),
    "metrichistory": ("name", "metricObjectName", "metricValue", "collectionTime"),
    "iormplan": ("name", "status"),
    "alerthistory": ("name", "beginTime", "severity", "alertMessage"),
    "threshold": ("name",),
}
TAGS = {"metriccurrent": "metric", "metrichistory": "metric"}
"""Name of an object's XML element by kind, where it differs from the name of the kind."""


def text_value(text: str) -> ShownValue:
    """Return a text as a `ShownValue`."""
    return ShownValue(text, text, text)


def integer_value(value: int) -> ShownValue:
    """Return a whole number as a `ShownValue` without thousands separators or unit."""
    return ShownValue(str(value), str(value), value)


def metric_value(value: float, unit: str) -> ShownValue:
    """Return a metric's value as a `ShownValue`: rounded with its unit as text, exact in XML."""
    xml = str(int(value)) if value == int(value) and abs(value) < 2**63 else repr(value)
    return ShownValue(cellcli_text(value, unit), xml, value)


def time_value(ns: int) -> ShownValue:
    """Return a time in ns as a `ShownValue`: to the second as text, in ms since 1970 in XML."""
    text = datetime.fromtimestamp(ns // 10**9, UTC).isoformat()
    return ShownValue(text, str(ns // 10**6), text)


def size_value(size_bytes: int) -> ShownValue:
    """Return a size as a `ShownValue`, in the largest unit in which the number is at least 1, with all its digits."""
    number, letter = float(size_bytes), ""
    for letter_next in "KMGTP":
        if number < 1024:
            break
        number, letter = number / 1024, letter_next
    text = f"{number:.15g}{letter}"
    return ShownValue(text, text, size_bytes)


def attribute_of(kind: str, name: str) -> str:
    """Return the attribute in its correct spelling.

    Raises:
        RefusedError: There is no such attribute.
    """
    known = (*ATTRIBUTES[kind], *HIDDEN.get(kind, ()))
    found = [own for own in known if own.lower() == name.lower()]
    return found[0] if found else raise_syntax_error()


def columns(query: Query, *, xml: bool = False) -> tuple[str, ...]:
    """Return the attributes that a query shows: those that it names, or else the default ones (all in DETAIL and XML).

    Raises:
        RefusedError: There is no such attribute.
    """
    if query.attributes is None:
        return ATTRIBUTES[query.kind] if query.detail or xml else DEFAULTS[query.kind]
    if [name.lower() for name in query.attributes] == ["all"]:
        return ATTRIBUTES[query.kind]
    return tuple(attribute_of(query.kind, name) for name in query.attributes)


def select_objects(query: Query, things: list[ListedObject]) -> list[ListedObject]:
    """Return the objects that a query asks for, in the query's order.

    Raises:
        RefusedError: An object or attribute does not exist, or a pattern is invalid.
    """
    columns(query)
    if query.names:
        known = {thing.get("name", NOTHING).text.lower() for thing in things}
        unknown = [name for name in query.names if name.lower() not in known]
        if unknown:
            raise RefusedError(2007, f"{query.kind} does not exist: {', '.join(unknown)}")
        wanted = {name.lower() for name in query.names}
        things = [thing for thing in things if thing["name"].text.lower() in wanted]
    for condition in query.where:
        things = _filter(query.kind, condition, things)
    for name, down in reversed(query.order):
        attribute = attribute_of(query.kind, name)
        things = sorted(things, key=lambda t: _sort_key(t.get(attribute, NOTHING)), reverse=down)
    return things if query.limit is None else things[: query.limit]


def _sort_key(value: ShownValue) -> tuple[int, float, str]:
    return (0, value.key, "") if isinstance(value.key, float | int) else (1, 0.0, value.key)


def _filter(kind: str, condition: Condition, things: list[ListedObject]) -> list[ListedObject]:
    attribute = attribute_of(kind, condition.attribute)
    if condition.operator.endswith("like"):
        try:
            pattern = re.compile(condition.value)
        except re.error:
            raise_syntax_error()
        positive = condition.operator == "like"
        return [thing for thing in things if bool(pattern.fullmatch(thing.get(attribute, NOTHING).text)) == positive]
    return [thing for thing in things if _holds(thing.get(attribute, NOTHING), condition.operator, condition.value)]


def _holds(value: ShownValue, operator: str, wanted: str) -> bool:
    """Return True if the comparison holds; numbers are compared as numbers, texts ignoring case."""
    left: float | str = value.key
    right: float | str = wanted
    if isinstance(left, float | int):
        number = number_and_unit(wanted)
        bytes_ = size_bytes(wanted)
        if number is None:
            return operator == "!="
        right = float(bytes_) if bytes_ is not None else number[0]
    else:
        left, right = left.lower(), wanted.lower()
    if operator in ("=", "!="):
        return (left == right) == (operator == "=")
    # Both are of one type by now.
    return left > right if operator == ">" else left < right  # type: ignore[operator]
