"""Agents that attack: the fault catalogue played against the real command line, behind the wall and without one."""
