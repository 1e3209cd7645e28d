"""The experiments of pmsvm-2025 (Park, Choi and Lee, NeurIPS 2025): Tables 2 to 4 and 9 to 11, Figures 2 to 6."""
