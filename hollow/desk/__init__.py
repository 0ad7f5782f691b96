"""The operator's side: verbs that read or answer what the agents' environment remembers."""
