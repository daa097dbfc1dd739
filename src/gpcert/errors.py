"""The errors of gpcert: each says what was expected, what was got, and what to do next."""


class GPCertError(Exception):
    """Base of every error that gpcert raises on purpose."""


class InputError(GPCertError, ValueError):
    """An argument is wrong: NaN, a wrong shape, an empty region, a negative radius, ..."""


class UnknownArgumentError(InputError, TypeError):
    """A verb has no such argument; the message names the right one."""


class UnsupportedModelError(InputError, TypeError):
    """The model, or a part of it, has no exact canonical form here; the message names the part."""


class MissingExtraError(GPCertError, ImportError):
    """An optional library is needed; the message names the extra to install."""


class ModelWarning(UserWarning):
    """The certified function is not quite what the user's model computes; the message says why."""


class RegionWarning(UserWarning):
    """A region is smaller than its words may seem to say; the message says where."""


class BudgetWarning(UserWarning):
    """A search ended before its tolerance was met; the message says how far off it may be."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the message says why, and the search goes on."""


class SoundnessError(GPCertError, ArithmeticError):
    """A bound came out NaN or crossed: a defect or an overflow, never turned into a verdict."""
