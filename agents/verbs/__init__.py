"""The verbs of the command line, by what they deal with; each parses, calls, shows and exits."""
