"""Fixtures that several files of tests of cells use."""

from flash_rig import rig

__all__ = ["rig"]
