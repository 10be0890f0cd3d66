"""Workflows for CI services that compare a change with its base on one machine; one file per service."""
