"""What thinks inside a hollow agent; one module a mind."""
