"""Probes of this host: log writers on real files, and flash."""
