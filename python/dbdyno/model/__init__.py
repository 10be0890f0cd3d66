"""Machines in virtual time: described, fitted to a real one, validated against published results."""
