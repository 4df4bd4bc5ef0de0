"""How stages become Dagster assets: declarations, keys, plans, and the one driver that runs them."""
