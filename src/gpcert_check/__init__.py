"""`gpcert-check`: an independent checker of gpcert's certificates.

It reads a certificate, recomputes every bound from the definitions in ball arithmetic
(python-flint) and says what it checked. It shares no code with gpcert and imports nothing of it.
The mathematics, with proofs, and the file format stand in docs/certificates.md.
"""

FORMAT = "gpcert-proof-1"
