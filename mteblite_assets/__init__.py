"""The asset graph of mteblite: one folder for each stage, in the order of `flow.ASSETS`."""
