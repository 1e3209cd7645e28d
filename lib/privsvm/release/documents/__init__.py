"""Documents of a release: ledger, card, measurement, dossier, and their verification."""
