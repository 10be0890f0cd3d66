"""Power cuts under real engines: acknowledged data must still be there when the power is back.

    plan_of("sqlite-wal")              an engine with settings, and how its device fails: `plan`
    run_campaign(plan, cuts=20, ...)   cut after cut, each with its finding: `campaign`
    campaign_model(...)                what the page shows: `model`

A load runs on a mounted folder with a ledger of acknowledged commits outside. The power goes with a drawn change of a
file; of what was not synced the device keeps what the journal draws (`crates/dyno-device/src/journal.rs`). The engine
recovers and is asked for every row.
"""
