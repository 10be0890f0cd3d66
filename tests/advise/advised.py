"""Advice for a server, and helpers that return parts of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from dbdyno.advise.facts import Facts
from dbdyno.base.json_types import JsonObject, TableRow


class Found(NamedTuple):
    """Facts that the server reported, and the advice that the rules derived from them."""

    facts: Facts
    model: JsonObject

    def of(self, rule: str) -> list[TableRow]:
        """The findings of a rule."""
        return [one for one in self.model["findings"] if one["rule"] == rule]

    def only(self, rule: str) -> JsonObject:
        """Return the finding of a rule that has exactly one."""
        found = self.of(rule)
        assert len(found) == 1, [one["sentence"] for one in found]
        return found[0]

    def figure(self, rule: str, what: str, subject: str = "") -> Any:
        """Return one figure from the evidence of a rule's finding."""
        one = next(one for one in self.of(rule) if not subject or one["subject"] == subject)
        return next(each["value"] for each in one["evidence"] if each["what"] == what)
