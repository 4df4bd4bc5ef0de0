"""Validation: held-out families predicted from the others, and how good that is."""
