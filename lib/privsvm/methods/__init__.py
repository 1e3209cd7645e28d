"""One file per method, named as its paper names it: a solver, a mechanism and the scikit-learn contract."""
