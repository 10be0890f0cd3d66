"""Measured values of a run by arm and block: numbers, not verdicts."""
