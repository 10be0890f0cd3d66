"""The load as it was: the capture with its sessions at once, replayed on both sides alternately, and faster."""
