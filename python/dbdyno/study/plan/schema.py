"""JSON Schema of plan.toml, made from the table of keys, so that editors complete and check plans."""

from __future__ import annotations

from dbdyno.base.json_types import JsonObject
from dbdyno.study.plan import keys, network
from dbdyno.study.plan.key import Key

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SCALAR = {"type": ["string", "number", "boolean"]}
_TEXTS = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_TYPES: dict[str, JsonObject] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "duration": {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*(ns|us|ms|s|min|h)\s*$"},
    "texts": _TEXTS,
    "settings": {"type": "object", "additionalProperties": _SCALAR},
    "words": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
    "values": {"type": "object", "additionalProperties": _SCALAR},
    "client": _TEXTS,
    "device": {"anyOf": [{"type": "string"}, {"type": "object"}]},
}


def plan_schema() -> JsonObject:
    """Return the schema of a plan: its tables, their keys, types, limits and meanings."""
    arm = _object(keys.ARM)
    top = _object(keys.TOP)
    tables = {name: _object(own, keys.TABLE_MEANING[name]) for name, own in keys.TABLES.items()}
    tables["target"] = {"anyOf": [{"type": "string"}, tables["target"]]}
    factor = {"type": "object", "description": "what differs, with its levels; the arms are made from them"}
    top["properties"] |= {
        **tables,
        "arm": {"type": "array", "items": arm, "maxItems": keys.ARMS_MOST},
        "factor": {"type": "array", "items": factor},
    }
    return {"$schema": DRAFT, "title": "dbdyno plan", **top}


def _object(keys: tuple[Key, ...], meaning: str = "") -> JsonObject:
    made: JsonObject = {"type": "object", "additionalProperties": False}
    if meaning:
        made["description"] = meaning
    made["properties"] = {key.name: _key(key) for key in keys}
    if required := [key.name for key in keys if key.required]:
        made["required"] = required
    return made


def _key(key: Key) -> JsonObject:
    made: JsonObject = {"description": " ".join(key.meaning.split())} if key.meaning else {}
    if key.choices:
        return made | {"enum": list(key.choices)}
    if key.type == "scripts":
        return made | {"type": "array", "items": {"anyOf": [{"type": "string"}, _object(keys.SCRIPT)]}}
    if key.type == "server":
        return made | _object(keys.SERVER)
    if key.type == "network":
        return made | _object(network.KEYS)
    made |= _TYPES[key.type]
    if key.type in ("int", "float"):
        made |= {"minimum": key.low} if key.low is not None else {}
        made |= {"maximum": key.high} if key.high is not None else {}
    return made
