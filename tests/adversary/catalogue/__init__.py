"""The attacks, by what they are after."""
