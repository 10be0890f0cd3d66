"""Modelled storage devices: mounted folders whose I/O takes the device's time, with their faults.

    device_of("gp3")          a device that comes with dbdyno, or a TOML file: `catalogue`
    mounted(spec)             a folder mounted by this process, unmounted at the end: `mounts`
    start_server(spec)        a folder mounted by a separate process: `server`

The simulation, the filesystem and the journal of data that is not yet synced are in `crates/dyno-device`.
"""
