"""From a table to a private model that may be handed over: training, files, cards, ledger, budgets."""
