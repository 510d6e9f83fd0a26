"""`selftest`: a synthetic, marked request and a synthetic alert, followed through every link of the running stack."""
