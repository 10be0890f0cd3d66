"""Engines of data flows as a bench: the same question, with its steps written in different orders."""
