"""The engine of the reproductions: experiments, distributions, and verdicts on printed numbers and statements."""
