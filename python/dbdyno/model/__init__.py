"""Machines simulated in virtual time: their parts, their parameters and their results."""
