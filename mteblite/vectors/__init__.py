"""Where vectors lie: their addresses, the shards that hold them, the store."""
