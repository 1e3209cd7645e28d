"""The benchmark of PrivSVM: datasets, jobs, workflow, report, tracking."""
