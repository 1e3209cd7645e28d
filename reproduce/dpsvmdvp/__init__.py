"""The experiments of dpsvmdvp-2019 (Zhang, Hao and Wang, IEEE Access 2019): Figures 1 to 6."""
