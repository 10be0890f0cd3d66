"""Seals of plans, which prove that this user ran a manifest's plan; ownership of the folder does not prove that.

A folder received by mail, for example, belongs to this user, but its plan was written by somebody else.

A manifest carries a code over its plan, computed with a key that never leaves this user's state folder (HMAC-SHA256,
RFC 2104). If a plan has no code or a wrong one, it is shown to the user, who must agree before it is executed.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from dbdyno.base.files import state_folder

KEY_BYTES = 32


def seal(plan: Any) -> str | None:
    """Return the code of a plan, or None if no key can be stored; resuming a run without a code asks the user first."""
    try:
        return _code(_key(), plan)
    except OSError:
        return None


def is_own_plan(plan: Any, sealed: Any) -> bool:
    """Return True if this user made a run with this plan; `sealed` is the plan's code from the manifest."""
    import hmac

    try:
        return hmac.compare_digest(_code(_key(), plan), str(sealed))
    except (OSError, TypeError):
        return False


def _code(key: bytes, plan: Any) -> str:
    import hashlib
    import hmac

    text = json.dumps(plan, sort_keys=True, separators=(",", ":"))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _key() -> bytes:
    """Return this user's key, which is created on first use.

    Raises:
        OSError: the key cannot be read or written, or has the wrong length.
    """
    path = state_folder() / "key"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        aside = path.with_name(f".key.{os.urandom(8).hex()}")
        made = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(made, "wb") as file:
                file.write(os.urandom(KEY_BYTES))
            with contextlib.suppress(FileExistsError):
                os.link(aside, path)  # the complete key appears at once, and never replaces an existing one
        finally:
            aside.unlink()
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise OSError(0, "the file is not a key")
    return key
