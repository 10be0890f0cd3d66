"""Engines of data flows as a bench: the same question, its steps written in one order or another."""
