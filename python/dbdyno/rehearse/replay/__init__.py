"""Replay of the capture with its concurrent sessions, on both sides alternately, at its own speed and faster ones."""
