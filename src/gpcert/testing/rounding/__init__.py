"""Counts of roundings (`up(x, 12)`, `gamma(8)`), checked by a run on arrays that carry theirs.

`arrays` has such arrays, `rules` how their errors grow, `sources` finds the counts in the sources,
`ledger` holds what was seen of them, and `shadow_run` runs the library. docs/soundness.md says what
is checked and what is not.
"""
