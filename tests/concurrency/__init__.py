"""Many at once: whole commands in a crowd, and pairs of them that race for the same thing."""
