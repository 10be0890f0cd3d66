"""Managed services: rules that do not apply there, and how settings are changed there.

A service is recognised by its characteristic roles and settings, which `queries.py` reads.
"""

from __future__ import annotations

_NO_PAGES = "its storage builds pages from the WAL: checkpoints and full-page images cost nothing here"
_OWN_CACHE = "a cache of the service, behind shared_buffers, serves the reads"
NOT_APPLICABLE: dict[str, dict[str, str]] = {
    "Amazon Aurora": {"max_wal_size": _NO_PAGES, "full_page_writes": _NO_PAGES, "wal_buffers": _NO_PAGES},
    "Neon": {"max_wal_size": _NO_PAGES, "full_page_writes": _NO_PAGES, "shared_buffers": _OWN_CACHE},
}
"""The rules that do not apply on each managed service, with the reasons."""
_WAYS = {
    "Amazon RDS": "DB parameter group",
    "Amazon Aurora": "DB cluster parameter group",
    "Google Cloud SQL": "database flags",
    "Google AlloyDB": "database flags",
    "Azure flexible server": "server parameters",
}
_ALTERS = ("alter system set ", "set global ")


def why_not_applicable(service: str, rule: str) -> str:
    """Return why a rule does not apply on a service, or "" if it does."""
    return NOT_APPLICABLE.get(service, {}).get(rule, "")


def fix_on_service(fix: tuple[str, ...], service: str) -> list[str]:
    """Return the fix as it is carried out on a service where settings are changed outside SQL.

    >>> fix_on_service(("alter system set jit = off", "select pg_reload_conf()"), "Amazon RDS")
    ['-- DB parameter group of Amazon RDS: jit = off']
    """
    if not service:
        return list(fix)
    way = f"-- {_WAYS.get(service, 'settings')} of {service}: "
    found = ((line, next((one for one in _ALTERS if line.startswith(one)), "")) for line in fix)
    return [way + line.removeprefix(alter) if alter else line for line, alter in found if "reload" not in line]
