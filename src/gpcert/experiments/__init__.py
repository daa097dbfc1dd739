"""The experiments of the paper, one short file each on the public API, and their results."""
