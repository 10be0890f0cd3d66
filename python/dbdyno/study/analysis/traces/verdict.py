"""Text of a comparison of two sets of traces: the headline, its reasons, the method, the warnings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from dbdyno.base.decisions import PROVISIONAL
from dbdyno.base.json_types import JsonObject
from dbdyno.stats import least_blocks
from dbdyno.stats.wording import FACTOR_FROM, duration, factor, interval, percent
from dbdyno.study.analysis.contract.rows import Caution, VerdictRow
from dbdyno.study.analysis.traces.account import ROUND_TRIP
from dbdyno.trace.page import merge_warnings, warnings
from dbdyno.trace.source import Traces

if TYPE_CHECKING:
    from dbdyno.stats.comparison import BlockComparison
    from dbdyno.stats.decide import Verdict
    from dbdyno.study.analysis.traces.blocks import Blocks, Unit
    from dbdyno.study.analysis.traces.causes import Explanation
    from dbdyno.study.analysis.traces.options import ComparisonOptions
    from dbdyno.study.analysis.traces.pairs import Pairs

UNITS = {"pair": "pairs of files", "session": "sessions", "file": "files", "batch": "batches of calls"}
WHOSE = {"execution": "An execution of the client in ", "transaction": "A transaction in "}
"""Words for the unit to which the compared times refer, by basis, unless the times are totals of the sets."""
MANY_TIMES = 3.0
"""Ratio of executions above which the numbers of executions are reported before the reasons."""
MIX_LEAST = 0.5
"""Share of a set's executions, in statements that it runs more often, above which its mix of statements differs."""
REASONS = 5
REASON_LEAST = 0.04
"""Share of the difference above which the verdict names a reason, if that is also 1 % of the longer time."""
INSIDE_LEAST = 0.25
"""Share of the difference of the database times above which the reason for that difference is named."""
ALONE = 5
SINGLE = 0.5
"""Share of the difference from calls made only once, above which it is unknown whether it would repeat."""


@dataclass(frozen=True)
class UsedBlocks:
    """Unit of the blocks, the number of blocks in each set behind the verdict, and the number of all blocks in each."""

    unit: Unit
    counts: tuple[int, int]
    of: tuple[int, int]

    def count_of(self, at: int) -> str:
        """Return the number of blocks as text: `7`, or `6 of 7` if one block has nothing to compare."""
        return f"{self.counts[at]}" + (f" of {self.of[at]}" if self.counts[at] != self.of[at] else "")


def verdict(
    verdict: Verdict,
    used: UsedBlocks,
    options: ComparisonOptions,
    explained: Explanation,
    why: list[JsonObject],
    once: float,
) -> VerdictRow:
    """Return the decision, the two times, the reasons in words, and what the interval means."""
    lead = verdict.arms[0].headline
    decision = lead.decision
    if once > SINGLE and decision in ("faster", "slower", PROVISIONAL):
        decision = "unclear"
    sentences = [] if not options.event else [_event_sentence(lead, options)]
    said = _main(why, explained)
    sentences += _more_calls(explained, options)
    sentences += [reason["text"] + "." for reason in said]
    sentences.append(_meaning(lead, decision, used, options, once > SINGLE))
    inside = next((c for c in verdict.arms[0].comparisons if c.metric == "database" and c is not lead), None)
    if inside is not None and inside.decision not in (lead.decision, "unclear"):
        because = "" if inside.decision == "same" else _inside(why, said, explained)
        sentences.append(f"{inside.label[0].upper()}{inside.label[1:]}: {inside.words}{because}.")
    return {"decision": decision, "headline": headline(explained, options), "sentences": sentences}


def headline(explained: Explanation, options: ComparisonOptions) -> str:
    """Return the sentence with response time and database time of the second set compared with the first."""
    base, other = options.names
    response, database = explained.response_ns, explained.database_ns
    whose = WHOSE.get(explained.basis, "")
    if not all(account.has_waits for account in explained.accounts):
        if min(database) <= 0:
            return f"{base} and {other} contain no time in the database."
        took = "takes" if whose else "took"
        return (
            f"{whose}{other} {took} {comparison_words(database)} {base} in the database: {_times_text(database)}."
            " Response time is not known: traced without waits."
        )
    if min(response) <= 0:
        return f"{base} and {other} contain no time to compare."
    took = "takes" if whose else "took"
    against = f"one in {base}" if whose else base
    if min(database) <= 0:
        inside = ""
    elif abs(math.log(database[1] / database[0])) < math.log1p(options.threshold):
        inside = f" Database time: {_times_text(database)}, the same."
    else:
        words = comparison_words(database).removesuffix(" as").removesuffix(" than")
        inside = f" Database time: {_times_text(database)}, {words}."
    took = f"{took} {comparison_words(response)}"
    return f"{whose}{other} {took} {against}: {_times_text(response)} of response time.{inside}"


def _times_text(times: tuple[float, float]) -> str:
    return f"{duration(times[1])} instead of {duration(times[0])}"


def comparison_words(times: tuple[float, float]) -> str:
    """Return the comparison in words, such as `14.4 times as long as` or `6.2 % longer than`."""
    ratio = times[1] / times[0]
    if abs(ratio - 1) < 0.0005:
        return "as long as"
    if factor(ratio) < FACTOR_FROM:
        return f"{percent(ratio - 1)} % {'longer' if ratio > 1 else 'shorter'} than"
    if ratio > 1:
        return f"{ratio:.3g} times as long as" if ratio < 1000 else f"{ratio:,.0f} times as long as"
    return f"1/{1 / ratio:.3g} as long as"


def _more_calls(explained: Explanation, options: ComparisonOptions) -> list[str]:
    """Return a sentence if one set has many times the executions of the other.

    Each execution can then be cheaper although the total time is longer, for example if a client fetches row by row.
    Only the reader knows whether both sets did the same work.
    """
    one, two = explained.accounts
    if explained.basis != "execution" or min(one.executions, two.executions) <= 0:
        return []
    ratio = two.executions / one.executions
    if factor(ratio) < MANY_TIMES or not _is_other_mix(explained, at=1 if ratio > 1 else 0):
        return []
    often = f"{ratio:.3g} times" if ratio > 1 else f"1/{1 / ratio:.3g}"
    whole = _times_text((float(one.response_ns), float(two.response_ns)))
    return [
        f"{options.names[1]} holds {often} as many executions of the client as {options.names[0]}: {two.executions:,}"
        f" against {one.executions:,}, each a message and its answer. If both did the same work: {whole} in total."
    ]


def _is_other_mix(explained: Explanation, at: int) -> bool:
    """Return True if a set ran another mix of statements, False if it only ran longer."""
    other = [c for c in explained.changes.values() if {"new", "gone", "executions"} & set(c.what)]
    counts = [c.executions() for c in other if (side := c.sides[at]) and side.depth == 0]
    more = sum(count[at] for count in counts if count[at] > count[1 - at])
    return more > MIX_LEAST


def _event_sentence(lead: BlockComparison, options: ComparisonOptions) -> str:
    if math.isnan(lead.ratio):
        return f"{options.event}: too few waits to compare."
    return f"{lead.label}: {_times_text((lead.base_value, lead.value))}, {lead.words}."


def _main(why: list[JsonObject], explained: Explanation) -> list[JsonObject]:
    """Return the largest reasons: each is a notable share of the difference and 1 % or more of the longer time."""
    response = explained.response_ns
    difference = abs(response[1] - response[0])
    least = max(REASON_LEAST * difference, 0.01 * max(response))
    return [reason for reason in why if abs(reason["effect_ns"]) >= least][:REASONS]


def _inside(why: list[JsonObject], said: list[JsonObject], explained: Explanation) -> str:
    """Return the largest reason for the difference of the database times, if it was not already named.

    The text is empty if that reason is small. Variation of the network can be larger and hide such a reason.
    """
    one, two = explained.database_ns
    known = [reason for reason in why if reason["code"] != "round trips" and reason["about"] != ROUND_TRIP]
    most = max(known, key=lambda reason: reason["effect_ns"] * (two - one), default=None)
    if most is None or most in said or most["effect_ns"] * (two - one) <= 0:
        return ""
    return f"; {most['text']}" if abs(most["effect_ns"]) >= INSIDE_LEAST * abs(two - one) else ""


def _meaning(lead: BlockComparison, decision: str, used: UsedBlocks, options: ComparisonOptions, is_once: bool) -> str:
    """Return a sentence on the basis of the decision, and on what the decision does not say."""
    unit = used.unit
    if is_once:
        return (
            "Cannot tell whether this would repeat: most of the difference is in calls that were made once."
            " Trace each variant several times."
        )
    if math.isnan(lead.low):
        return "Cannot tell whether this would repeat: too few calls were made more than once."
    if unit != "batch":
        number = (
            f"{used.count_of(0)} pairs"
            if unit == "pair"
            else f"{used.count_of(0)} and {used.count_of(1)} {UNITS[unit]}"
        )
        rests = f"{lead.label}, over {number}: {lead.words}."
        return rests[0].upper() + rests[1:]
    words = {"same": f"no difference larger than {options.threshold * 100:g} %"}.get(decision, interval(lead))
    if decision == "unclear":
        words = f"cannot tell ({interval(lead)})"
    elif decision == PROVISIONAL:
        words = f"provisional ({interval(lead)}), because too few calls were made more than once"
    if options.event:
        return f"From batches of consecutive waits of these traces: {words}. Other runs may differ by more."
    return (
        f"For the same calls repeated under the same conditions: {words}. Another run may differ by more; trace "
        "several runs of each to see by how much."
    )


def method(used: UsedBlocks, options: ComparisonOptions, explained: Explanation) -> list[str]:
    """Return how the numbers were computed, one sentence each."""
    unit = used.unit
    base, other = options.names
    same = {
        "run": "The sets did the same work (executions, rows or transactions within 2 %), so their totals are"
        " compared.",
        "execution": "The sets did not do the same work, so all times are per execution of the client; commits and"
        " rollbacks do not count as executions.",
        "transaction": "The sets did not do the same work, so all times are per transaction: more statements have the "
        "same number of executions per transaction than per execution of the client.",
    }[explained.basis]
    sentences = [
        "Response time: the calls with everything inside them, and the waits between calls, except think time and"
        " idle waits. Database time: the same without round trips. Neither includes time that no record covers.",
        same,
        "The reasons add up to the difference of the response times. If both the number and the length of waits or"
        " calls changed, their joint effect is split equally.",
        "Statements match if their SQL_ID is in both sets, or else if their texts are the same without literals and"
        " bind variables. Their figures exclude the recursive statements below them.",
    ]
    if unit == "batch":
        sentences.append(
            "One run is one observation. It shows only how much its own executions vary: within each"
            " statement and kind of call, consecutive calls form up to 20 batches, whose spread, widened for"
            " autocorrelation, gives the error of the sum (Welch's t on the difference, Fieller's interval,"
            f" {options.level * 100:g} %). The interval holds for these calls under these conditions, not for the next"
            " run."
        )
    elif unit == "pair":
        sentences.append(
            f"Files are paired by name; the logarithms of the {used.counts[0]} ratios are tested by Student's t,"
            f" {options.level * 100:g} %."
        )
    else:
        sentences.append(
            f"Blocks are {UNITS[unit]}: {used.count_of(0)} in {base}, {used.count_of(1)} in {other}. They are compared"
            f" by Welch's t on the logarithms, {options.level * 100:g} %."
        )
    sentences.append(
        f"Differences within {options.threshold * 100:g} % count as none. The headline is tested by itself; the other"
        " metrics share a false-discovery rate (Benjamini and Hochberg), and so do all lines, and all statements."
        f" A verdict from fewer than {least_blocks.least_paired_blocks(options.level)} independent blocks"
        f" ({least_blocks.least_unpaired_blocks(options.level)} in each set where they are not paired) is provisional."
    )
    return sentences


def warnings_of(
    sets: tuple[Traces, Traces],
    blocks: tuple[Blocks, Blocks],
    options: ComparisonOptions,
    explained: Explanation,
    pairs: Pairs | None,
) -> list[Caution]:
    """Return the warnings of the trace readers, and notes on what to consider about these two sets."""
    sides = [merge_warnings(warnings(traces)) for traces in sets]
    both = [warning["text"] for warning in sides[0] if warning in sides[1]]
    whose = " and ".join(options.names)
    found: list[Caution] = [
        cast("Caution", {**warning, "text": f"{whose if warning['text'] in both else name}: {warning['text']}"})
        for name, side in zip(options.names, sides, strict=True)
        for warning in side
        if warning["text"] not in both or name == options.names[0]
    ]
    if pairs and pairs.alone:
        more = f" and {len(pairs.alone) - ALONE} more" if len(pairs.alone) > ALONE else ""
        found.append(
            {
                "code": "not paired",
                "text": f"Left out, without a counterpart: {', '.join(pairs.alone[:ALONE])}{more}.",
                "next": "widen the pattern of --pair, or trace the missing ones",
            }
        )
    if explained.basis != "run":
        is_transaction = explained.basis == "transaction"
        what = "transactions" if is_transaction else "executions of the client"
        counts = " and ".join(f"{a.commits if is_transaction else a.executions:,}" for a in explained.accounts)
        found.append(
            {
                "code": "other work",
                "text": f"The sets did not do the same work: {counts} {what}. Times are per {explained.basis}.",
                "next": "trace the same job on both sides to compare their totals",
            }
        )
    found.append(
        {
            "code": "not interleaved",
            "text": "The two sets were traced at different times or places: anything else that"
            " differed between them counts as a difference.",
            "next": "trace both variants alternately, under the same load",
        }
    )
    if blocks[0].unit == "batch":
        found.append(
            {
                "code": "few sessions",
                "text": "There are fewer than 5 sessions in a set: the intervals are based on the calls in them and "
                "do not cover other sessions.",
                "next": "trace 5 sessions or more of each variant",
            }
        )
    return found
