"""Response models: how each item responds to ability, and each model's ability."""
