"""What the agents' environment remembers: the only code that writes below ``.agents/hollow``."""
