from support.seaweed import seaweed  # noqa: F401 (fixtures)
