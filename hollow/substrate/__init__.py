"""The environment of the agents, as values and rules: no input or output, no clock, no chance."""
