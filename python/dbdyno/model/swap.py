"""Replacement of a machine's storage by another device: a built-in one, or one in a file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

from dbdyno.base.errors import ModelError


def with_device(machine: str, name: str, settings: Mapping[str, object] | None = None) -> str:
    """Return a machine (TOML) with its devices and storage replaced by those of a device, with changed parameters.

    Raises:
        ModelError: there is no such device, or a setting names no parameter of it.
    """
    kept = _without(_without_factor(machine), ("devices", "storage"))
    return kept.rstrip("\n") + "\n\n" + _sections(_text(name, settings))


def with_data_device(machine: str, name: str, settings: Mapping[str, object] | None = None) -> str:
    """Return a machine (TOML) whose data files and temporary files are on a separate device; the log is not moved.

    Raises:
        ModelError: there is no such device, or a setting names no parameter of it.
    """
    top, device = renamed_device(name, "swapped", settings)
    redo = tomllib.loads(machine).get("storage", {}).get("redo", "log")
    where = f'[storage]\nredo = {_names(redo)}\ndata = "{top}"\n'
    kept = _without(_without_factor(machine), ("storage",))
    return kept.rstrip("\n") + f"\n\n{device}\n{where}"


def with_log_device(machine: str, name: str, settings: Mapping[str, object] | None = None) -> str:
    """Return a machine (TOML) whose log is on a separate device; data files and temporary files are not moved.

    Raises:
        ModelError: there is no such device, or a setting names no parameter of it.
    """
    top, device = renamed_device(name, "swapped_log", settings, files="redo")
    places = {**tomllib.loads(machine).get("storage", {}), "redo": top}
    where = "[storage]\n" + "".join(f"{part} = {_names(place)}\n" for part, place in places.items())
    return _without(machine, ("storage",)).rstrip("\n") + f"\n\n{device}\n{where}"


def renamed_device(
    name: str, prefix: str, settings: Mapping[str, object] | None = None, *, files: str = "data"
) -> tuple[str, str]:
    """Return the name of the part that holds some files, and a built-in device's sections; each name gets the prefix.

    Args:
        name: Name of the device.
        prefix: Prefix of the names of its parts.
        settings: Values of its parameters that replace those of the catalogue.
        files: `data`, or `redo` for the log.

    Raises:
        ModelError: there is no such device, or a setting names no parameter of it.
    """
    text = _text(name, settings)
    data = _value(tomllib.loads(text)["storage"][files])
    if not isinstance(data, str):
        raise ModelError(
            f"the {files} of {name} is on several parts", next_step=f"choose a device whose {files} is on one part"
        )
    parts = re.findall(r"(?m)^\[devices\.([\w-]+)\]", text)
    text = _without(_sections(text), ("storage",)).strip("\n") + "\n"
    text = re.sub(r"(?m)^(\[+)devices\.", rf"\1devices.{prefix}_", text)
    links = re.compile(rf'"({"|".join(map(re.escape, parts))})(?=["./])')
    lines = [
        links.sub(rf'"{prefix}_\1', line) if re.match(r"(over|channel)\b", line) else line for line in text.splitlines()
    ]
    return f"{prefix}_{data}", "\n".join(lines) + "\n"


def _without_factor(machine: str) -> str:
    """Return a machine's text without the factor fitted to measured reads, which does not apply to a modelled device.

    If the device already is a modelled one, the factor applies only to the time outside the device, and is not removed.
    """
    return machine if "\ndata_late = " in machine else re.sub(r"(?m)^data_factor = .*\n", "", machine)


def _set(text: str, key: str, value: str) -> str:
    """Return a device's text with this value of a parameter; if the parameter is missing, it is added.

    A parameter can be added only if the device has a single section.
    """
    line = re.compile(rf"(?m)^{re.escape(key)}\s*=.*$")
    if len(line.findall(text)) == 1:
        return line.sub(f"{key} = {value}", text)
    if text.count("\nkind = ") + text.startswith("kind = ") != 1:
        raise ModelError(
            f"{key!r} is not one of the device's parameters",
            next_step="list the device's parameters with `dbdyno device show NAME`",
        )
    return re.sub(r"(?m)^(kind = .*)$", rf"\1\n{key} = {value}", text)


def _value(given: object) -> object:
    """Return the value of a parameter, without the source that may be stated with it."""
    return given["value"] if isinstance(given, dict) else given


def _names(given: object) -> str:
    names = _value(given)
    return str(names).replace("'", '"') if isinstance(names, list) else f'"{names}"'


def _text(name: str, settings: Mapping[str, object] | None = None) -> str:
    """Return the text of a built-in device with changed parameters."""
    from dbdyno import _core

    texts = dict(_core.device_texts())
    if name not in texts:
        raise ModelError(f"there is no device named {name!r}", next_step=f"use one of {', '.join(texts)}")
    text = texts[name]
    for key, value in (settings or {}).items():
        text = _set(text, str(key).rpartition(".")[2], str(value))
    return text


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
    """Return the sections of a device's text, without the text before the first section."""
    at = text.find("\n[")
    return text[at + 1 :] if at >= 0 else text
