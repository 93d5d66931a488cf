from support.valkey import own_valkey, valkey_server, valkey_url

__all__ = ["own_valkey", "valkey_server", "valkey_url"]
