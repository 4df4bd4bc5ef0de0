"""The `mteblite` command: thin wrappers over the definitions that the UI shows."""
