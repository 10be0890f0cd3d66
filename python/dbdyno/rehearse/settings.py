"""Settings that differ between the sides, except those for paths, ports and identities."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.bench.postgres.shown_settings import shown_value
from dbdyno.rehearse.catalog import Catalog
from dbdyno.rehearse.changed_settings import default_since, name_in

_PLACES = {
    "application_name",
    "cluster_name",
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "in_hot_standby",
    "lc_messages",
    "listen_addresses",
    "log_directory",
    "log_filename",
    "port",
    "server_version",
    "server_version_num",
    "shared_memory_size",
    "shared_memory_size_in_huge_pages",
    "transaction_read_only",
    "unix_socket_directories",
}


def differing_settings(old: Catalog, new: Catalog) -> Iterator[tuple[str, str, str]]:
    """Yield the name and both values of each setting that differs between the sides, with secrets hidden."""
    for name in sorted({*old.settings} & {*new.settings} - _PLACES):
        values = old.settings[name], new.settings[name]
        if values[0] != values[1]:
            before, after = (shown_value(name, setting_text(value)) for value in values)
            yield name, before, after


def why_differing(name: str, old: Catalog, new: Catalog) -> str:
    """Return in words the version whose new default makes a setting differ; empty if defaults do not explain it."""
    values = settable_value(old.settings[name]), settable_value(new.settings[name])
    since = default_since(name, values, (int(old.major), int(new.major)))
    return f"default of {since} and later" if since is not None else ""


def one_sided(old: Catalog, new: Catalog) -> tuple[list[str], list[str]]:
    """Return the names of settings that exist only on the old side, and of those that exist only on the new side.

    Settings of the planner come first. A setting that was renamed has its other name in parentheses.
    """

    def named(name: str, major: str) -> str:
        other = name_in(name, int(major))
        return name if other == name else f"{name} ({other} there)"

    gone, come = {*old.settings} - {*new.settings}, {*new.settings} - {*old.settings}
    return (
        [named(name, new.major) for name in sorted(gone, key=_rank)],
        [named(name, old.major) for name in sorted(come, key=_rank)],
    )


def _rank(name: str) -> tuple[bool, str]:
    return not name.startswith(("enable_", "jit", "geqo", "parallel", "min_parallel")), name


def settable_value(text: str) -> str:
    """Return a value of pg_settings with its unit, in the form that SET accepts.

    >>> settable_value("4096 kB"), settable_value("16384 8kB"), settable_value("on")
    ('4096kB', '131072kB', 'on')
    """
    number, _, unit = text.partition(" ")
    if found := re.fullmatch(r"(\d+)(kB|MB)", unit):
        return f"{int(number) * int(found[1])}{found[2]}" if int(number) >= 0 else number
    return f"{number}{unit}" if unit else text


def setting_text(text: str) -> str:
    """Return a value of pg_settings in its usual form: `64MB` for `65536 kB`."""
    value = settable_value(text)
    size = re.fullmatch(r"(\d+)kB", value)
    if size and int(size[1]) % 1024 == 0 and int(size[1]):
        megabytes = int(size[1]) // 1024
        return f"{megabytes // 1024}GB" if megabytes % 1024 == 0 else f"{megabytes}MB"
    return value
