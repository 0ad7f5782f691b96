"""What supervisor and agent both are made of: value classes, expressions and packages at the least cost of a start."""
