"""Analysis of a race: the winner, when and by how much the others lost, and the cost compared with a full design."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.evidence.run import Run
from dbdyno.stats.wording import change_of
from dbdyno.study.analysis.contract.rows import JudgeRow, Model, VerdictRow
from dbdyno.study.analysis.measured.measures import Measures

_ENDS = {
    "one": "",
    "equal": "the remaining arms are within {threshold} of each other",
    "time": "the time was up before the remaining arms could be distinguished",
    "blocks": "{blocks} blocks could not distinguish the remaining arms",
}


def add(model: Model, measures: Measures, run: Run, headline: str) -> None:
    """Add `tune` and the verdict to the model."""
    race = run.manifest.race if run.manifest.has("race") else None
    model["figures"] |= {"distribution": [], "quantile_ratio": [], "tail": []}
    if race is None:
        model["verdict"] = {"decision": "unclear", "headline": "The race was stopped before its end.", "sentences": []}
        return
    names = [arm.label for arm in measures.arms]
    gone = {one["arm"]: one for one in race["dropped"]}
    rows = []
    for at, name in enumerate(names):
        apart = race["against"][at]
        left = gone.get(at)
        failed = race["failed"].get(name)
        rows.append(
            {
                "arm": at,
                "name": name,
                "after": left["after"] if left else None,
                "by": left["by"] if left else None,
                "blocks": apart["blocks"] if apart else race["blocks"],
                "ratio": apart["ratio"] if apart else None,
                "low": apart["low"] if apart else None,
                "high": apart["high"] if apart else None,
                "failed": failed,
                "state": "failed" if failed else "left" if left else "best" if at == race["leader"] else "in",
            }
        )
    judge = run.manifest.plan["judge"]
    planned = run.manifest.plan["schedule"]["blocks"]
    full = planned * len(names)
    model["tune"] = {
        "metric": headline,
        "level": judge["level"],
        "blocks": race["blocks"],
        "ran": race["ran"],
        "full": full,
        "end": race["end"],
        "leader": race["leader"],
        "rows": rows,
    }
    model["verdict"] = _verdict(model["tune"], race, names, judge, planned)


def _verdict(
    tune: Mapping[str, Any], race: Mapping[str, Any], names: list[str], judge: JudgeRow, planned: int
) -> VerdictRow:
    leader, still = names[tune["leader"]], [at for at in race["alive"] if at != tune["leader"]]
    certain = race["end"] == "one"
    words = f"{leader} is best of {len(names)}" if certain else f"{leader} is ahead of {len(names)}"
    base = race["against"][0]
    if tune["leader"] == 0:
        words += ", and is the setting from before the race"
    elif base is not None and base["ratio"]:
        ends = [1 / base[name] if base[name] else None for name in ("high", "low")]
        words += f": {change_of(1 / base['ratio'], *ends, higher_is_better=True)} against {names[0]}"
    sentences = []
    if still:
        threshold = f"{100 * judge['threshold']:g} %"
        why = _ENDS[race["end"]].format(threshold=threshold, blocks=race["blocks"])
        others = ", ".join(names[at] for at in still[:6]) + (f" and {len(still) - 6} more" if len(still) > 6 else "")
        sentences.append(f"{why[:1].upper()}{why[1:]}: {others}.")
    sentences.append(
        f"{tune['ran']} turns were run, instead of {tune['full']} for every arm in all {planned} blocks. "
        f"Each dropped arm is surely worse than another, at {100 * judge['level']:g} % over the whole race."
    )
    decision = "found" if certain or race["end"] == "equal" else "unclear"
    return {"decision": decision, "headline": f"{words}.", "sentences": sentences}
