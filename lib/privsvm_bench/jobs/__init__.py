"""Work of the stages: parameters, training, evaluation, audits."""
