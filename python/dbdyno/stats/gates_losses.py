"""Gates for lost work: transactions that failed, and arrivals that were dropped.

Lost work counts in no latency and no throughput, so an arm that loses its expensive operations looks fast. There are
two limits:

- a share above 5 % in an arm: what was compared is no longer the workload;
- a difference between the arms above half the threshold: a lost share f can change a rate by f and a mean by more, so
  above half of what matters the loss may explain the whole difference. A few losses differ by chance, so the difference
  counts only if Fisher's exact test confirms it at 95 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.stats.gates import Gate
from dbdyno.stats.wording import percent

#: Largest share of an arm's operations that may be lost.
SHARE_MOST = 0.05
_ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses of an arm: the number lost and the number tried; `kinds` names the kinds of loss if they are known."""

    arm: str
    lost: int
    tried: int
    kinds: str = ""

    @property
    def share(self) -> float:
        """Return the share of lost operations; 0 if none was tried."""
        return self.lost / self.tried if self.tried else 0.0


@dataclass(frozen=True, slots=True)
class LossWording:
    """Words for a kind of loss: code and name of its gate, what is counted, what happened to it, and the next step."""

    code: str
    name: str
    noun: str
    verb: str
    next: str


ERRORS = LossWording(
    "errors",
    "transactions went well",
    "transactions",
    "failed",
    "the report lists the errors by SQLSTATE; correct the script or the setting, and run again",
)
ARRIVALS = LossWording(
    "arrivals",
    "arrivals carried out",
    "arrivals",
    "were dropped",
    "the engine cannot serve this rate: lower it, and read the quantiles as lower bounds",
)


def few_losses(arm: Losses, words: LossWording, losses: Sequence[Losses] = ()) -> Gate:
    """Check whether an arm lost at most 5 %; if not, the gate's text also gives the share of each arm in `losses`."""
    name = f"{words.name}: {arm.arm}"
    if not arm.tried:
        return Gate(name, None, f"no {words.noun} of {arm.arm}", code=words.code, arm=arm.arm)
    text = f"{_share(arm, words)} {words.verb}"
    if arm.share <= SHARE_MOST:
        return Gate(name, True, text, code=words.code, arm=arm.arm)
    because = f"all {arm.tried:,} {words.noun} of {arm.arm} {words.verb}" if arm.lost == arm.tried else text
    beside = "".join(f", {_percent(own)} % of {own.arm}'s" for own in losses if own.tried and own is not arm)
    because = f"{because}{_kinds(arm)}{beside}"
    return Gate(name, False, f"{text}{_kinds(arm)}{beside}", words.next, code=words.code, arm=arm.arm, because=because)


def equal_losses(arm: Losses, base: Losses, words: LossWording, threshold: float) -> Gate:
    """Check whether an arm and its base lost about the same share: within half the threshold.

    A larger difference that Fisher's exact test does not confirm is reported as unknown.
    """
    name = f"{words.name} alike: {arm.arm} and {base.arm}"
    text = f"{_share(arm, words)} {words.verb}, {_percent(base)} % of {base.arm}'s"
    if not (arm.tried and base.tried):
        return Gate(name, None, text, code=words.code, arm=arm.arm)
    if abs(arm.share - base.share) <= threshold / 2:
        return Gate(name, True, text, code=words.code, arm=arm.arm)
    if not _certain(arm, base):
        return Gate(name, None, f"{text}: too few to distinguish the arms", code=words.code, arm=arm.arm)
    kinds = _kinds(max(arm, base, key=lambda own: own.share))
    return Gate(name, False, text, words.next, code=words.code, arm=arm.arm, because=f"{text}{kinds}")


def _share(arm: Losses, words: LossWording) -> str:
    return f"{_percent(arm)} % of {arm.arm}'s {words.noun}"


def _percent(arm: Losses) -> str:
    return percent(arm.share) if arm.lost else "0"


def _kinds(arm: Losses) -> str:
    return f" ({arm.kinds})" if arm.kinds else ""


def _certain(arm: Losses, base: Losses) -> bool:
    from scipy import stats

    table = [[own.lost, own.tried - own.lost] for own in (arm, base)]
    return float(stats.fisher_exact(table).pvalue) <= _ALPHA


#: Largest share of the answers to a replayed capture that may differ from the captured ones.
ANSWERS_MOST = 0.01


def answers_as_captured(arm: str, differing: int, answers: int, first: str | None) -> Gate:
    """Check whether an arm that replays a capture got the captured answers, except for at most 1 % of them.

    Other rows, errors, or round trips that were not executed mean that the arm did other work.

    Args:
        arm: Name of the arm.
        differing: Number of statements with another answer.
        answers: Number of all statements answered.
        first: One of the differing statements, in words.
    """
    name = "answers as captured"
    text = f"{differing:,} of {answers:,} statements of {arm} ended differently than in the capture"
    if not answers:
        return Gate(name, None, f"{arm} was answered nothing", code="answers", arm=arm)
    if differing <= ANSWERS_MOST * answers:
        return Gate(name, True, text, code="answers", arm=arm)
    return Gate(
        name,
        False,
        f"{text}, such as {first}" if first else text,
        "begin with the data as they were when the capture began (template); where several sessions write, keep their"
        ' order: order = "commit"',
        code="answers",
        arm=arm,
        because=f"{percent(differing / answers)} % of the statements of {arm} gave other answers than in the capture",
    )
