"""Linear support vector machines."""
