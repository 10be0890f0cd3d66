"""Whether a plan in a manifest is one that this user ran: a folder that came by mail is this user's by its owner only.

A manifest carries a code over its plan, made with a key that never leaves this user's state folder (HMAC-SHA256,
RFC 2104). A plan without it, or with one that does not fit, is shown and asked about before it is carried out.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from dbdyno.base.files import state_folder

KEY_BYTES = 32


def seal(plan: Any) -> str | None:
    """The code of a plan; None where no key can be kept: then whoever goes on with the run is asked."""
    try:
        return _code(_key(), plan)
    except OSError:
        return None


def is_own(plan: Any, sealed: Any) -> bool:
    """Whether this user made a run with this plan: `sealed` is what its manifest has as the plan's code."""
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
    """This user's key, made when it is asked for the first time; raises OSError."""
    path = state_folder() / "key"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        aside = path.with_name(f".key.{os.urandom(8).hex()}")
        made = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(made, "wb") as file:
                file.write(os.urandom(KEY_BYTES))
            with contextlib.suppress(FileExistsError):
                os.link(aside, path)  # whole, and only where there is none
        finally:
            aside.unlink()
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise OSError(0, "is no key")
    return key
