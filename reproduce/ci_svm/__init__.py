"""The experiments of ci-svm-2018: accuracy (Figures 2 to 4) and time (Tables 2 and 3) of CI-SVM beside its rivals."""
