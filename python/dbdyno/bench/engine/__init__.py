"""Code shared by the benches of all engines: servers that dbdyno starts, observation of the load, turns of arms."""
