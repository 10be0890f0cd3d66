"""Key of a move's masks: random, or derived from the user's key; the target keeps it until the job ends.

The job's plan has only a digest of a derived key, by which a resumed job detects and refuses another key or a missing
one.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.move.engines.postgres.mask_sql import SETTING
from dbdyno.move.reading.run import Plan

MASK_SQL = "create table if not exists dbdyno_move.mask (key text)"


def derived_key(key: bytes) -> str:
    """Return the key of the masks, derived from a user's key, which itself never leaves this process."""
    return hmac.new(key, b"dbdyno mask", hashlib.sha256).hexdigest()


def digest_of(mask_key: str) -> str:
    """Return the digest of a key for the plan; empty if the key is random."""
    return hashlib.sha256(mask_key.encode()).hexdigest() if mask_key else ""


def key_sql(conn: psycopg.Connection[Any], plan: Plan, mask_key: str) -> list[str]:
    """Return the statements that set the key of the masks in a session; an empty list if nothing is masked.

    Args:
        conn: A session of the target, which stores the key of a resumed job.
        plan: The job's plan.
        mask_key: The user's key; empty for a random one.

    Raises:
        MoveError: The job began with another key.
    """
    if not any(one.mask for table in plan.tables for one in table.columns):
        return []
    conn.execute(MASK_SQL)
    row = conn.execute("select key from dbdyno_move.mask").fetchone()
    key = row[0] if row else mask_key
    if digest := (plan.database or {}).get("mask_key", ""):
        refuse_other_key(digest, key)
    if row is None:
        key = key or os.urandom(32).hex()
        conn.execute("insert into dbdyno_move.mask values (%s)", [key])
    return [sql.SQL("select set_config({}, {}, false)").format(SETTING, key).as_string(conn)]


def refuse_other_key(digest: str, mask_key: str) -> None:
    """Raise an error if a key is not the one with which a job began.

    Raises:
        MoveError: The key is a different one, or is missing.
    """
    if digest_of(mask_key) != digest:
        raise MoveError(
            "the job was started with another key for its masks",
            where="--mask-key-file",
            next_step="run the first command again with the same key file, or start a new job",
        )
