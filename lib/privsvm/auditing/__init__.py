"""Audits that look at releases: lower bounds on epsilon, of our methods and of other private estimators."""
