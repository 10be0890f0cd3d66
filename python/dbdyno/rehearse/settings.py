"""Settings that differ between the two sides, without those that name places, ports and identities."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.rehearse.catalog import Catalog

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


def differing(old: Catalog, new: Catalog) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield name and both values of each setting that differs; None where a side does not have it."""
    for name in sorted({*old.settings, *new.settings} - _PLACES):
        values = old.settings.get(name), new.settings.get(name)
        if values[0] != values[1]:
            yield name, *values
