"""SQL that masks a column's values while it is read; equal values stay equal.

| method | for | becomes |
|---|---|---|
| hash | text, varchar, char, citext, uuid, bytea, whole numbers | a hash with the move's key, in the same type |
| keep-length | text, varchar, char, citext | other letters for letters, other digits for digits; all else stays |
| year | date, timestamp, timestamptz | the first of January of its year |
| constant:VALUE | any | this value |
| null | any that may be NULL | NULL |

The key is random for each move, or derived from the user's key, and exists only in the sessions' setting
`dbdyno_mask.key`: without it, nobody can compute the hash of a guessed value. NULL stays NULL.
"""

from __future__ import annotations

from psycopg import sql

SETTING = "dbdyno_mask.key"
TEXTS = ("text", "varchar", "bpchar", "citext")
_NUMBERS = {"int2": 32_767, "int4": 2_147_483_647, "int8": 2_147_483_647}
"""Integer types and the bounds of their hashes; bigint has the bound of integer, which its keys may reference."""
_DATES = ("date", "timestamp", "timestamptz")
METHODS: dict[str, tuple[str, ...] | None] = {
    "hash": (*TEXTS, "uuid", "bytea", *_NUMBERS),
    "keep-length": TEXTS,
    "year": _DATES,
    "constant": None,
    "null": None,
}
"""Types that each method supports; None means all types."""
_KEY = f"current_setting('{SETTING}')"
_DIGEST = f"sha256(convert_to({_KEY} || {{text}}, getdatabaseencoding()))"
_KEPT = """(select coalesce(string_agg(case
 when c collate "C" between '0' and '9' then chr(48 + get_byte(h, (i % 32)::int4) % 10)
 when c collate "C" between 'a' and 'z' then chr(97 + get_byte(h, (i % 32)::int4) % 26)
 when c collate "C" between 'A' and 'Z' then chr(65 + get_byte(h, (i % 32)::int4) % 26)
 when c collate "C" > '~' and c ~ '[[:alpha:]]' then chr(97 + get_byte(h, (i % 32)::int4) % 26)
 else c end, '' order by i), '')
 from (select {digest} as h offset 0) v, unnest(string_to_array({text}, null)) with ordinality s(c, i))"""


def masked_sql(value: sql.Composable, base: str, pg_type: str, method: str) -> sql.Composable:
    """Return the expression that masks a value.

    Args:
        value: The column.
        base: Name of its type, or of the type below its domain.
        pg_type: Its type as SQL writes it; the result has the same type.
        method: A name in `METHODS`; `constant` is followed by its value (`constant:VALUE`).
    """
    # As the server writes a type's name, it is quoted already.
    of_type = sql.SQL(f"::{pg_type}")
    method, _, constant = method.partition(":")
    if method == "null":
        return sql.SQL("null") + of_type
    text = sql.SQL("lower({}::pg_catalog.text)" if base == "citext" else "{}::pg_catalog.text").format(value)
    digest = sql.SQL(_DIGEST).format(text=text)
    if method == "constant":
        made: sql.Composable = sql.Literal(constant)
    elif method == "year":
        of_day = "::timestamp" if base == "date" else ""
        made = sql.SQL(f"date_trunc('year', {{}}{of_day})").format(value)
    elif method == "keep-length":
        made = sql.SQL(_KEPT).format(digest=digest, text=text)
    elif base == "bytea":
        made = sql.SQL(f"sha256(convert_to({_KEY}, 'UTF8') || {{}})").format(value)
    elif base in _NUMBERS:
        made = sql.SQL("(('x' || left(encode({}, 'hex'), 15))::bit(60)::int8 % {})").format(digest, _NUMBERS[base])
    else:
        made = sql.SQL("left(encode({}, 'hex'), 32)").format(digest)
    return sql.SQL("case when {} is not null then ({}){} end").format(value, made, of_type)
