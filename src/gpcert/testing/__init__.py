"""Contract suites and references for testing kernels and likelihoods."""
