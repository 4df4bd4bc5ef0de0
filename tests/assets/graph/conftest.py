"""One tiny suite, materialized once; every test gets it back as it was, at the same place."""

from support.tiny_world import empty_home, folder, home, upkeep, world

__all__ = ["empty_home", "folder", "home", "upkeep", "world"]
