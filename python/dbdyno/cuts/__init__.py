"""Power cuts under real engines: acknowledged data must still be there when the power is back.

    plan_of("sqlite-wal")              an engine with settings, and how its device fails: `plan`
    run_campaign(plan, cuts=20, ...)   cut after cut, each with its finding: `campaign`
    campaign_model(...)                what the page shows: `model`

A load runs on a mounted folder; a ledger outside of it lists the acknowledged commits. The power fails at a random
change of a file; the device then keeps a random part of the data that were not synced
(`crates/dyno-device/src/journal.rs`). The engine recovers, and every row is read.
"""
