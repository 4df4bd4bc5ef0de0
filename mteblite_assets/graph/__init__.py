"""How stages become Dagster assets: declarations, keys, plans, and the driver that runs them."""
