"""Conversion of manifests of earlier versions; the only place that infers the kind of bench from a manifest.

Before benches had names, other keys of a manifest showed the kind of run: `iorm` on storage cells, `logs` for log
writers on this host, `machine` on a model. The settings that a run on cells switched were stored only under `iorm`.
"""

from __future__ import annotations

from dbdyno.base.json_types import JsonObject

_READS: dict[str, JsonObject] = {
    "cells": {"evidence": "cells", "virtual": False, "parts": []},
    "host": {"evidence": "operations", "virtual": False, "parts": ["logs", "race"]},
    "model": {"evidence": "operations", "virtual": True, "parts": ["devices", "databases", "race", "limits"]},
    "postgres": {"evidence": "operations", "virtual": False, "parts": []},
}
_SIGNS = {"iorm": "cells", "logs": "host", "machine": "model"}


def upgrade_manifest(manifest: JsonObject) -> JsonObject:
    """Return the manifest with its kind of bench and how its evidence is read; other JSON is unchanged."""
    if "bench" in manifest or "plan" not in manifest:
        return manifest
    bench = next((kind for sign, kind in _SIGNS.items() if sign in manifest), "postgres")
    manifest["bench"], manifest["reads"] = bench, type(manifest)(_READS[bench])
    plan, iorm = manifest.get("plan"), manifest.get("iorm")
    if isinstance(plan, dict) and isinstance(iorm, dict):
        _copy_switch(manifest, plan, iorm)
    return manifest


def _copy_switch(manifest: JsonObject, plan: JsonObject, iorm: JsonObject) -> None:
    """Copy to the plan, as parameters of its workload, the settings that a run on cells switches.

    A value of an unexpected type is left unchanged; the reader of the plan refuses it.
    """
    workload, arms, schedule = plan.get("workload"), plan.get("arms"), plan.get("schedule")
    if not (isinstance(workload, dict) and isinstance(arms, list) and isinstance(schedule, dict)):
        return
    on = iorm.get("on")
    states = on if isinstance(on, list) and len(on) == len(arms) else [None] * len(arms)
    named = {key: iorm.get(key) for key in ("databases", "patience_s", "held")}
    same = type(manifest)
    manifest["plan"] = same(
        plan,
        workload=same(workload, kind="flash-log-switch", parameters=named),
        schedule=same(schedule, turn_ns=manifest.get("turn_ns")),
        arms=[
            same(arm, parameters=same(flash_log=own)) if isinstance(arm, dict) else arm
            for arm, own in zip(arms, states, strict=True)
        ],
    )
