"""Released models at work: predictions, and exports to other programs."""
