"""The asset graph of mteblite: one folder per stage, in the order of `flow.ASSETS`."""
