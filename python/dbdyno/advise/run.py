"""Evidence of a run: what its manifest contains about the plan and about the server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dbdyno.advise.facts import Facts, MissingEvidence
from dbdyno.advise.kinds import Benchmark, Measurements, Server, Setting
from dbdyno.advise.run_measurements import read as measured
from dbdyno.base.errors import AdviceError
from dbdyno.evidence.manifest import Manifest
from dbdyno.evidence.run import Run, type_errors_as_evidence_errors

SCALE_BYTES = 16 * 1024**2
"""Size of pgbench's tables per unit of scale, according to its manual (about 15 MB)."""
_QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?)(B|kB|MB|GB|TB|us|ms|s|min|h|d)")


def read(run: Run) -> Facts:
    """Return the evidence of a run on PostgreSQL.

    Raises:
        AdviceError: the run is on another kind of target.
    """
    with type_errors_as_evidence_errors("run on a server", run.id):
        found = facts_of(run.manifest, run.id)
        seen = measured(run)
    if seen is None:
        lack = MissingEvidence("the run has no analysis yet, or no complete block", f"run `dbdyno report {run.id}`")
        return replace(found, lacking={Measurements: lack})
    return replace(found, rows={**found.rows, Measurements: [seen]})


def facts_of(manifest: Manifest, title: str) -> Facts:
    """Return the evidence in a manifest, about the first server if there are several.

    Raises:
        AdviceError: the run is not on a PostgreSQL server.
    """
    servers = list(manifest.targets.values()) if manifest.has("targets") else []
    if not servers or "version_num" not in servers[0]:
        raise AdviceError(
            "advice on a run exists only for runs on PostgreSQL",
            where=title,
            next_step="see the result of this run with `dbdyno report`",
        )
    given, plan = servers[0], manifest.plan
    server = Server(
        "postgres",
        str(given.get("server_version") or ""),
        int(given["version_num"]),
        bool(given.get("in_recovery")),
        str(given.get("version") or ""),
        identity=str(given.get("system_identifier") or ""),
    )
    settings = [_setting(one) for one in given.get("settings") or ()]
    return Facts(title, "run", {Server: [server], Setting: settings, Benchmark: [_benchmark(manifest, plan, given)]})


def _benchmark(manifest: Manifest, plan: Mapping[str, Any], given: Mapping[str, Any]) -> Benchmark:
    workload, load = plan.get("workload") or {}, plan.get("load") or {}
    builtin = workload.get("builtin")
    before = int(given.get("database_bytes") or 0)
    made = int((workload.get("scale") or 1) * SCALE_BYTES) if builtin else 0
    rate = load.get("rate_per_s") or plan.get("rate_per_s")
    rates = [one.get("rate_per_s") or rate for one in plan.get("arms") or ()]
    return Benchmark(
        builtin=str(builtin or ""),
        data_bytes=before + made if before + made else None,
        memory_bytes=given.get("host_memory_bytes") if given.get("server_is_here") else None,
        is_closed=not all(rates) if rates else True,
        metric=str((plan.get("judge") or {}).get("headline") or "throughput"),
        wall_s=float(manifest.wall_s) if manifest.has("wall_s") else 0.0,
    )


def _setting(given: dict[str, object]) -> Setting:
    """Return a setting from its form in the manifest, such as `256MB`."""
    name, text, source = (str(given.get(key) or "") for key in ("name", "value", "source"))
    parts = _QUANTITY.fullmatch(text)
    return Setting(name, parts[1], parts[2], source) if parts else Setting(name, text, "", source)
