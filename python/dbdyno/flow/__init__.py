"""Query plans of data flows on several engines: the plan as written compared with the plan as executed."""
