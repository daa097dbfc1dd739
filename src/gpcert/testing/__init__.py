"""Contract suites and references for testing kernels, likelihoods and adapters."""

from gpcert.utils.optional_imports import optional

for _library in ("pytest", "hypothesis", "flint"):
    optional(_library, "gpcert.testing")
