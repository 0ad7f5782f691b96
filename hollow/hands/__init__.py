"""What an agent can do in a cycle: its capabilities, and the one point that every call passes."""
