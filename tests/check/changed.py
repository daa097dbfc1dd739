"""Forgeries that change numbers of the model, the region or the question, each as little as makes
the claim false at a point that is known: by values in float64, and by more than their rounding."""

import copy
import json
import zlib

import numpy as np

from gpcert.kernels import kernel_from_config
from gpcert.likelihoods import likelihood_from_config
from gpcert.regions import region_from_dict
from gpcert_check import container

CLEAR = 1e-6
"""By how much a claim is false, of the size of its numbers."""

SIZES = 0.001, 0.01, 0.1, 1.0, 10.0
GROWN = 1.1, 1.5, 3.0, 10.0
SAMPLES = 200


class Forged:
    """The model of a header and arrays, in float64."""

    def __init__(self, header, arrays):
        self.header = header["model"]
        self.parts = {n[len("model_") :]: a for n, a in arrays.items() if n.startswith("model_")}

    def value(self, goal, X):
        """A goal at points, from its definition."""
        a, c, X = self.parts, goal["output"], np.atleast_2d(X)
        Z = X @ a["matrix"].T + a["shift"] if "matrix" in a else X
        kernel = kernel_from_config(*self.header["kernel"])
        K = kernel.value(Z, a["points"])
        mean = K @ a["weights"][c] + (Z @ a["slope"][c] if "slope" in a else 0.0)
        mean, kind = a["offset"][c] + a["scale"][c] * mean, goal["quantity"]
        if kind == "mean":
            return goal["sign"] * mean
        v = np.array([kernel.value(z[None], z[None])[0, 0] for z in Z])
        if "training_noise" in a:
            noise = a["training_noise"][c if len(a["training_noise"]) > 1 else 0]
            gram = kernel.value(a["points"], a["points"]) + np.diag(noise)
            v = v - np.sum(K * np.linalg.solve(gram, K.T).T, axis=1)
        else:
            factor = a["factor"][c if len(a["factor"]) > 1 else 0]
            v = v - np.sum((K @ factor.T) ** 2, axis=1)
        V = a["scale"][c] ** 2 * np.maximum(v, 0.0) + a["noise"][c]
        if kind == "variance":
            return goal["sign"] * V
        if kind == "std":
            return goal["sign"] * np.sqrt(V)
        if kind == "band":
            return goal["sign"] * mean - goal["beta"] * np.sqrt(V)
        return goal["sign"] * likelihood_from_config(*self.header["likelihood"]).value(mean, V)


def claims(header):
    """What a file claims of points, as `(goal, point, level, side)`: side (goal - level) >= 0."""
    question, answer = header["question"], header["answer"]
    if question["kind"] == "range":
        for goal, end in zip(question["goals"], answer["ends"], strict=True):
            yield goal, end["point"], end["lower"], 1
            yield goal, end["point"], end["upper"], -1
    elif "goal" in question:
        numerator, denominator = map(int, question["level"])
        yield question["goal"], question["x"], numerator / denominator, 1
        if answer.get("counterexample") is not None:
            yield question["goal"], answer["counterexample"], numerator / denominator, -1


def broken(model, goal, points, level, side):
    """By how much the claim is false at points, after what rounding may do."""
    values = model.value(goal, points)
    return side * (level - values) - CLEAR * (1 + abs(level) + np.abs(values))


def changed(header, arrays, rng):
    """`(what, header, arrays)` as in `forgeries`."""
    question = header["question"]
    by_goals = question["kind"] in ("range", "decision", "radius")
    if "members" in header["model"] or not by_goals or not list(claims(header)):
        return
    for what, change in (
        ("weight", one_number("model_weights")),
        ("point", one_number("model_points")),
        ("offset", one_number("model_offset")),
        ("scale", one_number("model_scale")),
        ("hyper-parameter", hyper_parameter),
    ):
        for at in SIZES:
            forged = change(copy.deepcopy(header), dict(arrays), at * rng.choice([-1, 1]), rng)
            if forged is None:
                continue
            model = Forged(*forged)
            if any(broken(model, g, p, level, s)[0] > 0 for g, p, level, s in claims(header)):
                yield (f"{what} changed", *forged)
                break
    yield from asked_otherwise(header, arrays, rng)


def one_number(name):
    """Adds to one entry of an array."""

    def change(header, arrays, by, rng):
        forged = arrays[name].copy()
        place = tuple(int(rng.integers(n)) for n in forged.shape)
        forged[place] += by * (np.abs(forged).max() or 1.0)
        if "scale" in name and not forged[place] > 0:
            return None
        return header, arrays | {name: forged}

    return change


def hyper_parameter(header, arrays, by, rng):
    """Multiplies a number of the kernel, which stays above 0."""
    places = list(numbers(header["model"]["kernel"]))
    if not places:
        return None
    inside, key = places[int(rng.integers(len(places)))]
    inside[key] *= float(np.exp(by))
    return header, arrays


def numbers(node):
    """The places of a description's floats above 0, but for orders."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(value, dict | list):
            yield from numbers(value)
        elif isinstance(value, float) and value > 0 and key not in ("nu", "degree"):
            yield node, key


def asked_otherwise(header, arrays, rng):
    """Another region, another level, another witness."""
    question, answer, model = header["question"], header["answer"], Forged(header, arrays)
    region = region_from_dict(question["region"])
    inside = region.sample(SAMPLES, rng)
    inside = inside[region.contains(inside)]
    if question["kind"] == "range":
        goal, end = question["goals"][0], answer["ends"][0]
        everywhere, level = goal, end["lower"]
        misses = broken(model, goal, inside, end["upper"], -1)
        if np.any(misses > 0):
            forged = copy.deepcopy(header)
            nearest = int(np.argmin(np.where(misses > 0, misses, np.inf)))
            forged["answer"]["ends"][0]["point"] = inside[nearest].tolist()
            yield "witness moved", forged, arrays
    elif answer.get("status", "ROBUST") == "ROBUST" and question["kind"] == "decision":
        everywhere, level = question["goal"], next(claims(header))[2]
        values = model.value(everywhere, inside)
        above = min(values, default=np.inf) + 0.01 * (np.min(values, initial=np.inf) - level)
        if np.isfinite(above) and np.any(broken(model, everywhere, inside, above, 1) > 0):
            forged = copy.deepcopy(header)
            forged["question"]["level"] = [str(n) for n in float(above).as_integer_ratio()]
            yield "level above one attained", forged, arrays
    elif "status" in answer:
        goal, _, level, _ = next(claims(header))
        misses = broken(model, goal, inside, level, -1)
        if np.any(misses > 0):
            forged = copy.deepcopy(header)
            nearest = int(np.argmin(np.where(misses > 0, misses, np.inf)))
            forged["answer"]["counterexample"] = inside[nearest].tolist()
            yield "counter-example moved", forged, arrays
        return
    else:
        return
    if question["region"]["kind"] not in ("ball", "box"):
        return
    for factor in GROWN:
        wider = grown(question["region"], factor)
        region = region_from_dict(wider)
        if np.any(broken(model, everywhere, region.sample(SAMPLES, rng), level, 1) > 0):
            forged = copy.deepcopy(header)
            forged["question"]["region"] = wider
            root = np.stack([region.lower[region.free], region.upper[region.free]])
            tree = {"root": root, "axes": np.array([-1], "<i4"), "cuts": np.array([], "<f8")}
            yield "another region", forged, arrays | tree
            return


def grown(region, factor):
    """The same shape, larger."""
    if region["kind"] == "ball":
        return {**region, "radius": (np.asarray(region["radius"]) * factor).tolist()}
    low, high = np.asarray(region["lower"]), np.asarray(region["upper"])
    middle, half = (low + high) / 2, factor * (high - low) / 2
    return {**region, "lower": (middle - half).tolist(), "upper": (middle + half).tolist()}


def broken_files(content, rng):
    """`(what, bytes)`: files that are cut off, or lie about their size, or are no honest JSON."""
    start = len(container.MAGIC) + 8
    end = start + int.from_bytes(content[len(container.MAGIC) : start], "little")
    text, data = content[start:end], content[end:]

    def packed(header, rest):
        return container.MAGIC + len(header).to_bytes(8, "little") + header + rest

    yield "truncated", content[: int(rng.integers(len(content)))]
    yield "truncated arrays", content[: int(rng.integers(end, len(content)))]
    yield "bytes appended", content + b"\0"
    yield "length of the header", content[: start - 8] + b"\xff" * 8 + content[start:]
    yield "no such format", b"PK\x03\x04" + content
    header = json.loads(text)
    name, kind, shape = header["arrays"][0]
    header["arrays"][0] = [name, kind, [2**40, *shape[1:]]]
    yield "dishonest size", packed(json.dumps(header).encode(), data)
    header["arrays"][0] = [name, kind, [*shape[:-1], -1]]
    yield "negative size", packed(json.dumps(header).encode(), data)
    yield "zlib bomb", packed(text, zlib.compress(b"\0" * 10**6))
    yield "nested", packed(text.replace(b'"answer": ', b'"x": ' + b"[" * 10**5, 1), data)
    yield "not finite", packed(text.replace(b'"answer": ', b'"x": NaN, "answer": ', 1), data)
    yield "name twice", packed(text.replace(b'"answer": ', b'"answer": {}, "answer": ', 1), data)
