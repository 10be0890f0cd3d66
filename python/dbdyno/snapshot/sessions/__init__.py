"""Active session history: what was sampled, who blocked whom, and the report sections about both."""
