"""What the benches of all database engines share: a server of our own, what is seen beside the load, turns of arms."""
