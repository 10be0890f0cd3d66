"""Exchange of a machine's storage for another device: a built-in one, or one in a file."""

from __future__ import annotations

from dbdyno.base.errors import ModelError


def with_device(machine: str, name: str) -> str:
    """Return a machine (TOML) with its devices and storage replaced by those of a device.

    Raises:
        ModelError: there is no such device.
    """
    from dbdyno import _core

    texts = dict(_core.device_texts())
    if name not in texts:
        raise ModelError(f"there is no device named {name!r}", next_step=f"use one of {', '.join(texts)}")
    return _without(machine, ("devices", "storage")).rstrip("\n") + "\n\n" + _sections(texts[name])


def _without(text: str, sections: tuple[str, ...]) -> str:
    """Return a machine's text without some of its sections."""
    kept, leaves_out = [], False
    for line in text.splitlines():
        if line.startswith("["):
            leaves_out = line.lstrip("[").split(".")[0].split("]")[0] in sections
        if not leaves_out:
            kept.append(line)
    return "\n".join(kept)


def _sections(text: str) -> str:
    """Return the sections of a device's text, without anything before the first."""
    at = text.find("\n[")
    return text[at + 1 :] if at >= 0 else text
