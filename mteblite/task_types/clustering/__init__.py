"""Pools and outcomes of Clustering tasks."""
