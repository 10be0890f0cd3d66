"""Carrying plans out: what is prepared, run block by block, and put back."""
