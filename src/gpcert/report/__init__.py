"""Results of experiments as one page to read: HTML that needs no network, or markdown."""
