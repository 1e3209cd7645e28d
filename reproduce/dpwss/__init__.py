"""The experiments of dpwss-2021 (Sun et al., PeerJ Computer Science 2021): Table 3 and Figures 1 to 21."""
