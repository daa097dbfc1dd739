"""Values of all kinds, most of them wrong everywhere, and what calls may do with them."""

import datetime

import numpy as np
import scipy.sparse

from gpcert.errors import GPCertError, SoundnessError

WRONG = {
    "None": None,
    "text": "a",
    "number as text": "1.5",
    "bytes": b"1",
    "empty list": [],
    "empty dict": {},
    "dict": {"a": 1.0},
    "set": {1.0, 2.0},
    "nan": float("nan"),
    "inf": float("inf"),
    "minus inf": -float("inf"),
    "-1": -1,
    "0": 0,
    "True": True,
    "False": False,
    "complex": 1.0 + 2.0j,
    "huge": 1e308,
    "tiny": 5e-324,
    "giant integer": 10**400,
    "half": 0.5,
    "three": 3,
    "numpy integer": np.int64(2),
    "float32": np.float32(0.25),
    "vector of one": [1.0],
    "vector": np.array([0.5, 0.25]),
    "long vector": np.arange(7.0),
    "matrix": np.ones((2, 2)),
    "cube": np.zeros((2, 2, 2)),
    "no columns": np.zeros((2, 0)),
    "ragged": [[1.0, 2.0], [3.0]],
    "complex array": np.array([1j, 2.0]),
    "text array": np.array(["1", "2"]),
    "object array": np.array([1.0, None], dtype=object),
    "boolean array": np.array([True, False]),
    "masked array": np.ma.array([1.0, 2.0], mask=[True, False]),
    "sparse": scipy.sparse.eye_array(2).tocsr(),
    "dates": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
    "date": datetime.date(2020, 1, 1),
    "object": object(),
    "function": len,
    "class": dict,
    "generator": range(0),
}


def outcome(call, check=None):
    """None if the call ends in an answer (that passes the check) or in an error of ours."""
    try:
        found = call()
    except SoundnessError as error:  # ours, but says that bounds went wrong
        return f"{type(error).__name__}: {error}"
    except GPCertError as error:
        return None if str(error).strip() else "an error without words"
    except BaseException as error:  # anything raw is what is looked for
        return f"{type(error).__name__}: {error}"
    if check is not None and not check(found):
        return f"accepted: {found!r}"
    return None


def misused(make, good, check=None, only=None):
    """Every argument of `make(**good)` replaced by every wrong value: what went wrong."""
    found = []
    for name in good if only is None else only:
        for label, value in WRONG.items():
            said = outcome(lambda name=name, value=value: make(**{**good, name: value}), check)
            if said is not None:
                found.append(f"{name} = {label}: {said[:300]}")
    return found
