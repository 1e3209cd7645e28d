"""Tables and figures, a file for each experiment."""
