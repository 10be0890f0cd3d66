"""Active session history: what was sampled, who blocked whom, and the sections that say so."""
