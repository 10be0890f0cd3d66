"""Fixtures that several test files for cells share."""

from flash_rig import rig

__all__ = ["rig"]
