"""The `mteblite` command: thin wrappers over the definitions of the UI."""
