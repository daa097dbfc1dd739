"""The paper's own method, whole.

`lines`: a kernel between functions that are affine in carriers, found by the kernel's class.
`lifted`, `relaxation`: one linear relaxation a cell, in a few lifted coordinates of x, and a proved
bound from any multipliers. `programs` look for good multipliers, and need not be trusted.
`variance`, `intervals`, `class_grid`: intervals of mean, variance and class probabilities.
`method`: what `method="paper"` is.

Taylor bounds use `lines` alone, as an optional bound of means; nothing else of the engine imports
this package.
"""
