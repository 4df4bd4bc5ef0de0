"""Selectors: which K items of a pool are kept, with their weights."""
