"""Methods on noisy histograms of columns: numbers by noisy quantiles, categories by their codes."""
