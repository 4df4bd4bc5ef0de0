"""One folder per task type of mteb: how its pool is drawn and how its outcomes are scored."""
