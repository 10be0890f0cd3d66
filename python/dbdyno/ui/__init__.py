"""The laboratory in a browser: runs, servers and their history as pages, served to one machine, read-only.

    app = application(Places(Path("runs"), Path("snaps")), access)

Each file of `routes` is a view: it reads the address, calls the package responsible for the subject, and returns a
`View`, whose page is rendered by the renderer of reports. Nothing here judges, queries an engine or writes evidence;
the only files written are the sums that every command on a store caches. `guard.py` decides which requests are
answered, `places.py` what may be read.
"""
