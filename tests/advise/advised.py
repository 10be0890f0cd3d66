"""What a server is advised, with ways to ask for parts of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from dbdyno.advise.facts import Facts
from dbdyno.base.json_types import JsonObject, TableRow


class Found(NamedTuple):
    """What the server said and what the rules made of it."""

    facts: Facts
    model: JsonObject

    def of(self, rule: str) -> list[TableRow]:
        """The findings of a rule."""
        return [one for one in self.model["findings"] if one["rule"] == rule]

    def only(self, rule: str) -> JsonObject:
        """The finding of a rule that has one."""
        found = self.of(rule)
        assert len(found) == 1, [one["sentence"] for one in found]
        return found[0]

    def figure(self, rule: str, what: str, subject: str = "") -> Any:
        """A figure of a rule's evidence."""
        one = next(one for one in self.of(rule) if not subject or one["subject"] == subject)
        return next(each["value"] for each in one["evidence"] if each["what"] == what)
