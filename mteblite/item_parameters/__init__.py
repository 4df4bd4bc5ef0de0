"""Response models: parameters of the items, and abilities of the models."""
