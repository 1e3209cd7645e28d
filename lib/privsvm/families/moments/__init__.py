"""Training on sums over rows: second moments and descent on them."""
