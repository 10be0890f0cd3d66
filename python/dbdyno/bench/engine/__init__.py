"""Code shared by the benches of all database engines: own servers, observation beside the load, turns of arms."""
