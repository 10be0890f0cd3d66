"""Rules on a described storage stack: the layer that starves the next one, and limits that do not fit together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Rule
from dbdyno.advise.stack.layers import demand, latency_s
from dbdyno.advise.stack.parts import Layer, Stack

_SOURCE = "Glenn Fawcett, 2006, a stack that collapsed under sd_max_throttle; Little's law; kernel queue-sysfs (2025)"
_QUEUES = ("host", "lun", "hba", "channel", "array")
_ADVISED = {
    ("host", "linux"): "echo {0} > /sys/block/DEVICE/queue/nr_requests",
    ("lun", "linux"): "echo {0} > /sys/block/DEVICE/device/queue_depth  # each LUN",
    ("lun", "solaris"): "set sd:sd_max_throttle={0}  # /etc/system; ssd:ssd_max_throttle on some platforms; reboot",
}


def _starves(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield the narrowest layer if commands queue in front of it although the layers below could do more."""
    stack, found = facts.row_of(Stack), facts.rows_of(Layer)
    narrow = min(found, key=lambda one: one.limit)
    offered = found[0].offered
    if narrow.limit >= offered or narrow.name not in _QUEUES:
        return
    below = [one for one in found[found.index(narrow) + 1 :] if one.limit > narrow.limit]
    if not below:
        yield InsufficientEvidence(
            f"{narrow.what} let {count(narrow.limit)} of {count(offered)} commands through, and no layer that could do "
            f"more is described below them",
            "describe [channel] and [disk]",
        )
        return
    yield _held_back(stack, found, narrow, below, offered)


def _held_back(stack: Stack, layers: Sequence[Layer], narrow: Layer, below: list[Layer], offered: float) -> Advice:
    others = [one for one in layers if one is not narrow]
    after = min(others, key=lambda one: one.limit)
    target = min(offered, after.limit)
    gain = target / narrow.limit
    next_limit = f"; the next limit is {after.what}: {count(after.limit)}" if after.limit < offered else ""
    rounds = math.ceil(offered / narrow.limit)
    return Advice(
        f"{narrow.what} let {count(narrow.limit)} of {count(offered)} commands through at once"
        f" ({narrow.count:,} × {narrow.each:,.0f}) and starve {below[-1].what}, which could have"
        f" {count(below[-1].limit)} under way",
        (*_demand_evidence(stack), *_layer_evidence(stack, narrow, below)),
        f"{count(offered)} commands go out in {rounds} rounds of {count(narrow.limit)}; at most {gain:.3g} times as"
        f" much a second with {count(target)} at once{next_limit}",
        tuple(_fix(stack, narrow, target)),
        subject=narrow.key,
    )


def _demand_evidence(stack: Stack) -> tuple[Evidence, ...]:
    asked = demand(stack)
    place = f"{stack.file}, [demand]"
    return (
        Evidence("requests at once", asked.requests, "count", f"{place}: jobs × ios"),
        Evidence("pieces of a request", asked.pieces, "count", f"{place} io_kb / {asked.piece_kb:g} KB"),
        Evidence("commands at once", asked.commands, "count", "requests × pieces"),
        Evidence("LUNs in use", asked.luns, "count", f"{stack.file}, [stripe] luns × file_systems"),
    )


def _layer_evidence(stack: Stack, narrow: Layer, below: list[Layer]) -> Iterator[Evidence]:
    section, _, key = narrow.key.partition(".")
    yield Evidence(f"limit of {narrow.what}", narrow.limit, "count", f"{stack.file}, [{section}] {key}")
    yield Evidence("waiting in front of it", narrow.waits, "count", "commands at once - limit")
    if narrow.per_s is not None:
        yield Evidence("commands a second at most", narrow.per_s, "per_s", "Little's law: limit / latency below")
    for one in below:
        yield Evidence(f"{one.what} take", one.limit, "count", f"{stack.file}, [{one.key.partition('.')[0]}]")


def _fix(stack: Stack, narrow: Layer, target: float) -> Iterator[str]:
    """Yield the new limit, the stripe size if requests are split, and a study to run if LUN queues are the limit."""
    asked = demand(stack)
    wanted = math.ceil(target / narrow.count)
    section, _, key = narrow.key.partition(".")
    words = _ADVISED.get((narrow.name, stack.words["host.os"]), f"[{section}] {key} = {{0}}").format(wanted)
    yield words
    if asked.pieces > 1 and stack.has("stripe.stripe_kb"):
        whole = stack.number("demand.io_kb")
        yield f"or stripe_kb = {whole:g}: a request is one command, {count(asked.requests)} in all (files recreated)"
    if narrow.name == "lun" and stack.has("stripe.stripe_kb") and stack.number("stripe.stripe_kb").is_integer():
        jobs = min(int(asked.requests), 1000)
        yield (
            "dbdyno run queue-depth --target model:san --set jobs="
            f"{jobs} --set stripe_kb={stack.number('stripe.stripe_kb'):g}"
            f" --set sd_max_throttle={narrow.each:g},{wanted}"
        )


def _overflow(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if the LUNs of all hosts can exceed the limit of the ports, which then answer with QUEUE FULL."""
    stack = facts.row_of(Stack)
    if not stack.has("channel.queue_limit"):
        yield InsufficientEvidence("the ports' queue_limit is not described", "[channel] queue_limit")
        return
    hosts, luns, ports = (stack.number(key) for key in ("host.count", "lun.count", "channel.count"))
    each, port = stack.number("lun.queue_limit"), stack.number("channel.queue_limit")
    on_port = math.ceil(luns / ports)
    most = hosts * on_port * each
    if most <= port:
        return
    fits = math.floor(port / (hosts * on_port))
    yield Advice(
        f"{count(hosts)} hosts × {on_port:,} LUNs × {each:g} may send {count(most)} commands to a port that takes"
        f" {count(port)}",
        (
            Evidence("commands for a port", most, "count", f"{stack.file}, [host] count, [lun] count and queue_limit"),
            Evidence("a port takes", port, "count", f"{stack.file}, [channel] queue_limit"),
        ),
        "no QUEUE FULL when every host is busy: the host then throttles the LUN, and latency jumps",
        (f"[lun] queue_limit = {fits} fits all hosts",) if fits else ("fewer LUNs or hosts on a port, or more ports",),
        subject="channel.queue_limit",
    )


def _find_measured_limits(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if measured rate x latency exceeds the lowest limit: commands wait, or no such limit applies."""
    stack, found = facts.row_of(Stack), facts.rows_of(Layer)
    if not stack.has("measured.iops"):
        yield InsufficientEvidence(
            "no rate and latency were measured", "give [measured] iops and latency_ms, as iostat shows them"
        )
        return
    rate, seconds = stack.number("measured.iops"), stack.number("measured.latency_ms") / 1e3
    under_way = rate * seconds
    evidence = [
        Evidence("commands a second", rate, "per_s", f"{stack.file}, [measured] iops"),
        Evidence("time of a command", seconds * 1e9, "ns", f"{stack.file}, [measured] latency_ms"),
        Evidence("under way", under_way, "number4", "Little's law: rate × time"),
    ]
    queues = [one for one in found if one.name in _QUEUES]
    narrow = min(queues, key=lambda one: one.limit)
    evidence.append(Evidence(f"limit of {narrow.what}", narrow.limit, "count", f"{stack.file}, {narrow.key}"))
    if under_way > narrow.limit * 1.1:
        idle = latency_s(stack)
        if idle is not None:
            evidence.append(Evidence("time without a queue", idle * 1e9, "ns", f"{stack.file}, [array] and [disk]"))
        yield Advice(
            f"{count(under_way)} commands were under way or waiting, and {narrow.what} let {count(narrow.limit)}"
            f" through: {1 - narrow.limit / under_way:.0%} of their time they waited in the host",
            tuple(evidence),
            f"of its {seconds * 1e3:.3g} ms a command spends at most {seconds * 1e3 * narrow.limit / under_way:.3g} ms "
            "below this limit, if the time was measured above it; if it was measured below, the limit "
            f"is not in effect",
            (f"compare with the time below the limit, then raise {narrow.key}",),
            subject=narrow.key,
        )


def _rule(name: str, title: str, condition: str, expects: str, refuted: str) -> Rule:
    judge = {"starved_layer": _starves, "port_overflow": _overflow, "measured_queue": _find_measured_limits}[name]
    risk = "a deeper queue makes single commands slower if the layers below are busy; other hosts share the ports"
    return Rule(name, "stack", title, (Stack, Layer), condition, expects, risk, _SOURCE, refuted, judge)


RULES = (
    _rule(
        "starved_layer",
        "A layer whose queue limit keeps the layer below it from being fully used",
        "of all layers, a queue has the lowest limit, commands wait in front of it, and a layer "
        "below could process more at once",
        "at most the rate × next limit / this limit; nothing if the described latency is wrong",
        "with the higher limit, the same load completes no more commands a second",
    ),
    _rule(
        "port_overflow",
        "More commands than a port accepts",
        "hosts × LUNs of a port × limit of a LUN exceed the port's limit",
        "no QUEUE FULL at the peak; nothing while few LUNs are busy",
        "the ports' counters of QUEUE FULL stay at zero at the peak",
    ),
    _rule(
        "measured_queue",
        "More concurrent commands measured than a limit allows",
        "measured rate × measured latency exceed the narrowest queue limit by more than 10 %",
        "the share of latency above the limit",
        "latency is the same below the limit as above it",
    ),
)
