"""Helpers of the tests: worlds, fakes, fixtures."""
