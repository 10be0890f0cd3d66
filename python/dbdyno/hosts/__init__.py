"""Many hosts: the workers of a Dask scheduler, which run the tasks of a command beside each other."""
