"""Many hosts: the workers of a Dask scheduler, which run the tasks of a command at the same time."""
