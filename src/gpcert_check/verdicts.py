"""How a check can end: each exception has the exit code of the command."""


class Verdict(Exception):
    """A reason why a certificate is not accepted."""

    code = 3


class Refuted(Verdict):
    """A claim of the certificate is false."""

    code = 1


class NotCovered(Verdict):
    """The checker does not know the question, or could not prove the claim with its bounds."""

    code = 2


class BadFile(Verdict):
    """The file is not a certificate of this format."""

    code = 3
