"""The read-only tools of an agent; one module a kind of question."""
