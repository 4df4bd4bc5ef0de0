"""Estimators on the selected items, and calibrations from the estimate to the full score."""
