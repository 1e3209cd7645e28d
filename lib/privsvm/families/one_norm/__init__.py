"""1-norm support vector machines and the protocol of PPSVM."""
