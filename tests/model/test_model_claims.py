"""Claims: how it is decided whether one holds, and that its numbers come from runs."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from small_bench import SmallBench

from dbdyno.base.errors import ModelError
from dbdyno.cli.main import cli
from dbdyno.model.claims import NAMES, claims, measure_claims
from dbdyno.model.claims.base import BASES, LOAD_CHOSEN, Claim, ClaimQuantity, interval, to_json, verdict
from dbdyno.model.claims.bench import Arm, Bench, ReplicationCache

DOCS = Path(__file__).parents[2] / "docs" / "explanation" / "model.md"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["model", "claims", *arguments])


def test_the_interval_is_students():
    # scipy.stats.t.interval(0.95, 3, 2.5, sem([1, 2, 3, 4])) = 0.4457, 4.5543
    mean, low, high = interval([1.0, 2.0, 3.0, 4.0])
    assert (mean, round(low, 4), round(high, 4)) == (2.5, 0.4457, 4.5543)
    assert interval([3.0, 3.0]) == (3.0, 3.0, 3.0)
    assert all(math.isnan(value) for value in interval([math.nan]))


def test_a_quantity_holds_only_if_the_whole_interval_lies_in_the_band():
    assert verdict(1.1, 1.2, (1.0, 1.3)) == "holds"
    assert verdict(0.9, 1.2, (1.0, None)) == "cannot tell"
    assert verdict(0.8, 0.9, (1.0, None)) == "does not hold"
    assert verdict(1.4, 1.5, (None, 1.3)) == "does not hold"
    assert verdict(math.nan, math.nan, (1.0, 2.0)) == "cannot tell"


def test_a_claim_is_as_good_as_its_worst_quantity():
    def of(*parts: ClaimQuantity) -> str:
        return str(to_json(Claim("N0", "made", "made", "mechanism", lambda _: []), parts)["verdict"])

    good, bad = ClaimQuantity("a", [2.0, 2.1], low=1), ClaimQuantity("b", [2.0, 2.1], low=9)
    unknown, beside = ClaimQuantity("c", [0.0, 4.0], low=1), ClaimQuantity("for comparison", [7.0, 7.1])
    assert of(good, beside) == "holds"
    assert of(good, unknown) == "cannot tell"
    assert of(good, unknown, bad) == "does not hold"
    assert of() == "cannot tell"


def test_a_verdict_that_other_dice_might_change_is_not_steady():
    def steady(*values: float) -> object:
        claim = Claim("N0", "made", "made", "mechanism", lambda _: [])
        return to_json(claim, [ClaimQuantity("a", values, low=1.0)])["steady"]

    assert steady(2.0, 2.1, 2.05)
    assert not steady(1.05, 1.1, 1.08), "clears 1 at 95 %, not at 99.9 %"
    assert not steady(0.9, 1.1, 1.0)
    assert steady(0.1, 0.11, 0.1)


def test_a_claim_is_measured_until_its_verdict_is_steady(monkeypatch: pytest.MonkeyPatch):
    asked = []

    def measure(bench: Bench) -> list[ClaimQuantity]:
        asked.append(bench.replications)
        return [ClaimQuantity("a", [1.2 + 0.15 * (-1) ** number for number in range(bench.replications)], low=1.0)]

    claim = Claim("N0", "made", "made", "mechanism", measure)
    monkeypatch.setattr("dbdyno.model.claims.claims", lambda _: [claim])
    (found,) = measure_claims(["N0"], replications=2)["claims"]
    assert asked == [2, 4, 8, 16]
    assert (found["verdict"], found["steady"], found["replications"]) == ("holds", True, 16)


def test_each_row_says_what_agreement_is_worth():
    assert {claim.basis for claim in claims()} <= set(BASES)
    chosen = {claim.name for claim in claims() if claim.basis == LOAD_CHOSEN}
    assert chosen == {"N3", "N4", "N8", "N11"}


def test_all_fifteen_are_there_with_source_and_bands():
    found = claims()
    assert [claim.name for claim in found] == list(NAMES) == [f"N{n}" for n in range(1, 16)]
    assert all(claim.title and claim.source for claim in found)


def test_an_unknown_claim_is_told_with_the_known_ones():
    with pytest.raises(ModelError, match="no claim 'N99'"):
        claims(["N99"])
    with pytest.raises(ModelError, match="2 replications"):
        measure_claims(["N1"], replications=1)


def test_the_figures_come_from_runs_and_a_seed_gives_them_again():
    one, again, other = (measure_claims(["N14"], replications=2, seed=seed) for seed in (1, 1, 2))
    assert one["claims"][0]["parts"] == again["claims"][0]["parts"]
    assert one["claims"][0]["parts"] != other["claims"][0]["parts"]


@pytest.mark.soak
def test_shares_are_measured_with_two_databases():
    (claim,) = measure_claims(["N15"], replications=2)["claims"]
    share, wait, light, none = (part["value"] for part in claim["parts"])
    assert share == pytest.approx(10 / 14, abs=0.03)
    assert light == pytest.approx(0.5, abs=0.05)
    assert none == pytest.approx(0.5, abs=0.03)
    assert wait > 2


def test_more_replications_run_only_those_that_are_new():
    """`model claims` ran 8, then 16, 32 and 64 anew, 120 in all, and had not ended after ten minutes."""
    (claim,) = claims(["N14"])
    told: list[int] = []
    with ReplicationCache() as kept:
        for number in (2, 4):
            told.append(0)

            def one(of: list[int] = told) -> None:
                of[-1] += 1

            parts = claim.measure(SmallBench(number, 1, one, kept))
    assert told[0] > 0 and told == [told[0]] * 2
    assert parts == claim.measure(SmallBench(4, 1, lambda: None))


def test_the_most_replications_are_the_users(monkeypatch: pytest.MonkeyPatch):
    claim = Claim("N0", "made", "made", "mechanism", lambda _: [ClaimQuantity("a", [0.9, 1.1], low=1.0)])
    monkeypatch.setattr("dbdyno.model.claims.claims", lambda _: [claim])
    page = measure_claims(["N0"], replications=2, limit=4)
    assert [(found["replications"], found["steady"]) for found in page["claims"]] == [(4, False)]
    assert page["facts"].startswith("2 to 4 replications")


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim.name)
def test_every_claim_can_be_measured(claim: Claim):
    """A range that a parameter got refused one of the fifteen, and the command ended without the others."""
    parts = claim.measure(SmallBench(2, 1, lambda: None))
    assert parts and all(part.values for part in parts)


def test_a_claim_that_cannot_be_measured_does_not_cost_the_others(monkeypatch: pytest.MonkeyPatch):
    def fails(_: Bench) -> list[ClaimQuantity]:
        raise ModelError("keys = 0: must be 1 or more", where="arm a")

    good = Claim("N1", "made", "made", "mechanism", lambda _: [ClaimQuantity("a", [1.2, 1.2], low=1.0)])
    monkeypatch.setattr("dbdyno.model.claims.claims", lambda _: [Claim("N0", "x", "y", "mechanism", fails), good])
    page = measure_claims(replications=2)
    assert [entry["verdict"] for entry in page["claims"]] == ["cannot tell", "holds"]
    assert "keys = 0" in page["claims"][0]["error"]
    assert page["title"] == "1 of 2 claims hold"


def test_forms_of_output():
    shown = json.loads(run("--only", "N1,N14", "--replications", "2", "--format", "json").output)
    assert [claim["claim"] for claim in shown["claims"]] == ["N1", "N14"]
    text = run("--only", "N14", "--replications", "2")
    assert text.exit_code == 0
    assert "N14 · A mirrored log write takes as long as its slowest copy  holds" in text.output
    assert run("--only", "N1", "--format", "html").exit_code == 0
    assert run("--only", "N1", "--format", "csv").output.startswith("claim,title,quantity")


def test_a_claim_that_does_not_hold_ends_with_1(monkeypatch: pytest.MonkeyPatch):
    claim = Claim("N0", "too much", "made", "mechanism", lambda _: [ClaimQuantity("a", [0.5, 0.51], low=1.0)])
    monkeypatch.setattr("dbdyno.model.claims.claims", lambda _: [claim])
    result = run("--replications", "2")
    assert re.search("N0 · .*  does not hold\n", result.output)
    assert result.exit_code == 1


def seeded(monkeypatch: pytest.MonkeyPatch, means: dict[int, float]) -> None:
    """Replace all claims by one whose mean depends on the seed and must be 1 or more."""

    def measure(bench: Bench) -> list[ClaimQuantity]:
        return [ClaimQuantity("a", [means[bench.seed] + 0.001 * at for at in range(bench.replications)], low=1.0)]

    claim = Claim("N0", "made", "made", "mechanism", measure)
    monkeypatch.setattr("dbdyno.model.claims.claims", lambda _: [claim])


def test_a_claim_is_measured_at_several_seeds_and_holds_if_it_holds_at_each(monkeypatch: pytest.MonkeyPatch):
    seeded(monkeypatch, {7: 1.5, 8: 1.2, 9: 1.3})
    page = measure_claims(replications=2, seed=7, seeds=3)
    (claim,) = page["claims"]
    assert page["title"] == "1 of 1 claims hold at each of 3 seeds"
    assert "each at the seeds 7 to 9" in page["facts"]
    assert [(row["seed"], row["verdict"]) for row in claim["by_seed"]] == [(7, "holds"), (8, "holds"), (9, "holds")]
    assert claim["parts"][0]["value"] == pytest.approx(1.5005), "the figures are the first seed's"
    assert claim["notes"][0] == "the verdict is the same at the seeds 7, 8, 9"


def test_a_verdict_that_depends_on_the_seed_is_none(monkeypatch: pytest.MonkeyPatch):
    seeded(monkeypatch, {7: 1.5, 8: 0.5})
    page = measure_claims(replications=2, seed=7, seeds=2)
    (claim,) = page["claims"]
    assert (claim["verdict"], claim["steady"]) == ("cannot tell", False)
    assert claim["notes"][0] == "the verdict depends on the seed: holds at 7; does not hold at 8"
    assert page["title"] == "0 of 1 claims hold at each of 2 seeds"
    shown = run("--seed", "7", "--seeds", "2", "--replications", "2")
    assert "the verdict depends on the seed: holds at 7; does not hold at 8" in shown.output
    assert shown.exit_code == 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_all_fifteen_hold_whatever_the_seed(seed: int):
    found = measure_claims(seed=seed)["claims"]
    assert {claim["claim"]: claim["verdict"] for claim in found} == dict.fromkeys(NAMES, "holds")


def test_an_arm_that_cannot_be_is_an_error_and_no_result():
    bench = Bench(2, 1, lambda: None)
    arm = Arm("a", {"kind": "commit-loop"}, 1, {"cells.no_such": "1"})
    with pytest.raises(ModelError), bench.run("exadata-x2", [arm], transactions=1):
        pass


def test_the_table_in_the_documents_names_every_claim_once():
    rows = re.findall(r"^\| (N\d+) \| .* \| (holds|does not hold|cannot tell) \|$", DOCS.read_text(), re.MULTILINE)
    assert [name for name, _ in rows] == list(NAMES)
