"""What the stages call: parameters, training, evaluation, audits."""
