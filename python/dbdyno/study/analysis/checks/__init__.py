"""Checks that withhold a verdict or warn the reader."""
