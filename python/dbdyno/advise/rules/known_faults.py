"""Rules on versions: known faults according to the table, missed releases, and majors out of support."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

from dbdyno.advise.facts import Facts, MissingEvidence
from dbdyno.advise.faults import (
    AS_OF,
    Fault,
    Release,
    affects,
    faults,
    fixed_in,
    matching_figures,
    releases,
    version_numbers,
)
from dbdyno.advise.kinds import Server
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Rule

_ENGINES = ("postgres", "mariadb")


def _by_setting(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding per fault whose version and conditions match."""
    server = facts.row_of(Server)
    unknown: dict[MissingEvidence, list[str]] = {}
    for fault in faults():
        if not fault.condition or not affects(fault, server):
            continue
        answer = matching_figures(fault, facts)
        if isinstance(answer, MissingEvidence):
            unknown.setdefault(answer, []).append(fault.name)
        elif answer is not None:
            yield _advice(fault, server, answer)
    for lack, names in unknown.items():
        yield InsufficientEvidence(f"{lack.why} (known faults {', '.join(names)})", lack.next)


def _advice(fault: Fault, server: Server, evidence: tuple[Evidence, ...]) -> Advice:
    fixed = fixed_in(fault, server)
    update = f"-- update to {fixed} or later" if fixed else "-- no release of this major version has a fix"
    return Advice(
        f"known fault {fault.name}: {fault.fault}",
        (Evidence("version", server.version, "text", "the server"), *evidence),
        f"what it costs: {fault.cost}; nothing if the load does not trigger the fault",
        (f"-- {fault.fix}", update),
        level="warning" if fixed else "hint",
        subject=fault.name,
        source=fault.source,
    )


def _by_version(facts: Facts) -> Iterator[Advice]:
    """Yield one finding with all faults that the version alone determines."""
    server = facts.row_of(Server)
    met = [one for one in faults() if not one.condition and affects(one, server) and fixed_in(one, server)]
    if not met:
        return
    last = max((fixed_in(one, server) for one in met), key=version_numbers)
    yield Advice(
        f"{server.engine} {'.'.join(map(str, version_numbers(server.version)))} has {len(met)} known fault"
        f"{'' if len(met) == 1 else 's'} of performance that {last} has not: {', '.join(one.name for one in met)}",
        tuple(Evidence(one.name, one.fault, "text", f"fixed in {fixed_in(one, server)}; {one.source}") for one in met),
        "for each: " + "; ".join(f"{one.name}: {one.cost}" for one in met),
        (f"-- update to {last} or later",),
        subject=last,
    )


def _release(server: Server) -> Release | None:
    major = version_numbers(server.version)[:1]
    return next((one for one in releases() if one.engine == server.engine and (one.major,) == major), None)


def _minor(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    server = facts.row_of(Server)
    known, version = _release(server), version_numbers(server.version)
    if known is None or version > version_numbers(known.latest):
        yield InsufficientEvidence(
            f"the table of releases is of {AS_OF} and does not know {server.version}", "update dbdyno"
        )
        return
    if version >= version_numbers(known.latest):
        return
    behind = version_numbers(known.latest)[-1] - version[-1]
    yield Advice(
        f"{behind} minor release{'' if behind == 1 else 's'} of PostgreSQL {known.major} missed: {known.latest} is out"
        f" (as of {AS_OF})",
        (
            Evidence("version", server.version, "text", "server_version"),
            Evidence("latest", known.latest, "text", f"table of releases, as of {AS_OF}"),
        ),
        "their fixes of faults and security holes; the rule version_faults lists the fixes for performance",
        (
            "-- install it and restart; no dump or data upgrade is needed; check all release notes "
            "for indexes to rebuild",
        ),
        level="hint",
        subject=known.latest,
    )


def _end(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    server = facts.row_of(Server)
    known = _release(server)
    if known is None or server.at_us is None:
        yield InsufficientEvidence(
            f"the table of releases is of {AS_OF} and does not know {server.version}", "update dbdyno"
        )
        return
    today = datetime.fromtimestamp(server.at_us / 1e6, UTC).date().isoformat()
    if today <= known.end_of_life:
        return
    yield Advice(
        f"PostgreSQL {known.major} has had no fixes since {known.end_of_life}",
        (
            Evidence("version", server.version, "text", "server_version"),
            Evidence("end of support", known.end_of_life, "text", f"table of releases, as of {AS_OF}"),
            Evidence("today", today, "text", "the server's clock"),
        ),
        "faults found after that date are not fixed",
        ("-- upgrade to a supported major version; then: vacuumdb --all --analyze-in-stages",),
        subject=f"PostgreSQL {known.major}",
    )


_rule = partial(Rule, family="faults", reads=(Server,))
RULES = (
    _rule(
        name="known_faults",
        title="Known faults of this version and these settings",
        condition="a known fault affects the version, and its condition holds (a setting, an index method, a standby, "
        "a counter)",
        expects="the cost of the fault, if the load is affected",
        risk="an update needs a restart",
        source="release notes, named with each row (2021 to 2026)",
        refuted="the release with the fix is not faster under the same load",
        judge=_by_setting,
        engines=_ENGINES,
    ),
    _rule(
        name="version_faults",
        title="Known faults of the version",
        condition="the version has known faults for which no further condition is checked, and a release has the fix",
        expects="the cost of each fault, if the load is affected",
        risk="an update needs a restart",
        source="release notes, named with each row (2021 to 2026)",
        refuted="the release with the fixes is not faster under the same load",
        judge=_by_version,
        engines=_ENGINES,
    ),
    _rule(
        name="missing_minor",
        title="Missing minor releases",
        condition=f"the table of releases (as of {AS_OF}) has a later minor release",
        expects="the fixes of these releases",
        risk="the update needs a restart",
        source=f"PostgreSQL versioning policy and release notes (as of {AS_OF})",
        refuted="the vendor's package contains the fixes under the old version number",
        judge=_minor,
    ),
    _rule(
        name="end_of_life",
        title="A major version that is out of support",
        condition=f"the major version's end of support (table as of {AS_OF}) is before the server's date",
        expects="new fixes",
        risk="a major upgrade changes plans: measure before and after",
        source=f"PostgreSQL versioning policy; dates from memory, as of {AS_OF}: see postgresql.org, Versioning",
        refuted="a vendor supports it longer",
        judge=_end,
    ),
)
