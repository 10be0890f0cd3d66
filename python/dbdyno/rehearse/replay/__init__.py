"""The load as it was: the capture with its sessions at once, replayed on both sides in turns, and faster."""
