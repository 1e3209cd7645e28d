"""The experiments of ppsvm-2007 (Mangasarian, Wild and Fung 2007): Tables 1 and 2, Figures 1 to 6, and the attack."""
