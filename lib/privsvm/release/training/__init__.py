"""Training of one private model: recipes, the release and its payment, plans."""
