"""What drives an agent process; one pure module an engine."""
