"""Certificates that claim what is false, made from those that are true."""

import copy
import json
import zlib

import numpy as np

from gpcert.certificates.proof import model_sha256
from gpcert_check import container

LARGE = 1e3


def opened(path):
    """Header and arrays of a file, to be changed."""
    header, arrays = container.read(str(path))
    return header, {
        name: np.array(part.values).reshape(part.shape) for name, part in arrays.items()
    }


def written(path, header, arrays, rehash=True):
    """The file of a header and arrays, with the right hash of whatever the model now is."""
    header = copy.deepcopy(header)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    if rehash:
        header["sha256"] = model_sha256(header["model"], arrays)
    kinds = {name: "i4" if array.dtype.kind == "i" else "f8" for name, array in arrays.items()}
    header["arrays"] = [[name, kinds[name], list(array.shape)] for name, array in arrays.items()]
    text = json.dumps(header).encode()
    data = zlib.compress(b"".join(array.tobytes() for array in arrays.values()))
    path.write_bytes(container.MAGIC + len(text).to_bytes(8, "little") + text + data)


def forgeries(header, arrays, certificate, rng):
    """What was changed, header and arrays: each claims something false, or proves nothing."""
    question, answer = header["question"], header["answer"]
    if question["kind"] == "table":
        k = int(rng.integers(len(question["rows"])))
        rows = of_one(question["rows"][k], answer["rows"][k], rng)
        for what, asked, answered in rows:
            forged = copy.deepcopy(header)
            forged["question"]["rows"][k], forged["answer"]["rows"][k] = asked, answered
            yield what, forged, arrays
        yield from of_the_tree(header, arrays, f"{k}.", rng)
        forged = copy.deepcopy(header)
        del forged["answer"]["rows"][k]
        yield "row missing", forged, arrays
        return
    for what, asked, answered in of_one(question, answer, rng):
        yield what, {**header, "question": asked, "answer": answered}, arrays
    yield from of_the_tree(header, arrays, "", rng)
    yield from of_the_model(header, arrays, certificate)


def of_one(question, answer, rng):
    """Another question or another answer."""

    def changed(what, change):
        asked, answered = copy.deepcopy(question), copy.deepcopy(answer)
        change(asked, answered)
        return what, asked, answered

    kind = question["kind"]
    if kind == "range":
        for k, end in enumerate(answer["ends"]):
            yield from of_ends(changed, k, end)
    if kind == "regret":
        yield changed("regret", lambda q, a: a.update(bound=0.99 * a["bound"] - 1e-9))
        yield changed("observed", lambda q, a: a.update(observed=a["domain"], bound=0.0))
        yield changed("domain", lambda q, a: a.update(domain=a["observed"] - 1.0))

        def side(q, a):
            """Of UCB at the point at most `-observed`, that LCB there is more."""
            q["goals"].reverse()
            a["observed"] = 1.0 - a["observed"]
            a["bound"] = max(0.0, a["domain"] - a["observed"] + 1e-9)

        yield changed("side", side)
    if kind == "sets":
        for k, told in enumerate(answer["shares"]):
            low, high = told["share"]
            for ends in ([low + 1e-9, high], [low, high - 1e-9], [high, high], [1.0, 0.0]):
                if high - low > 1e-6:
                    forged = {**told, "share": ends}
                    yield changed(
                        "share", lambda q, a, k=k, f=forged: a["shares"].__setitem__(k, f)
                    )
    if kind in ("decision", "radius"):
        yield from of_a_decision(changed, question)
    if kind == "radius" and answer["upper"] is not None:
        yield changed("nearer", lambda q, a: a.update(upper=0.99 * a["upper"]))
        yield changed("farther", lambda q, a: a.update(lower=1.01 * a["upper"]))
        yield changed("at x", lambda q, a: a.update(counterexample=q["x"]))

        def larger(q, a):
            a["lower"] = 1.01 * a["upper"]
            size = np.asarray(q["unit"] or 1.0) * a["lower"] * 1.001
            q["region"]["radius"] = size.tolist()

        yield changed("larger ball", larger)
    if answer.get("status") == "NOT_ROBUST":
        yield changed("counter-example at x", lambda q, a: a.update(counterexample=q["x"]))
        yield changed("both moved", lambda q, a: q.update(x=a["counterexample"]))
        far = [v + LARGE for v in question["x"]]
        yield changed("counter-example outside", lambda q, a: a.update(counterexample=far))


def of_ends(changed, k, end):
    """A least value above one that is attained, or one attained that is below all."""
    gap = max(end["upper"] - end["lower"], 1e-9)

    def above(q, a):
        a["ends"][k] |= {"lower": end["upper"] + 0.01 * gap, "upper": end["upper"] + 0.02 * gap}

    def below(q, a):
        a["ends"][k] |= {"lower": end["lower"] - gap, "upper": end["lower"] - 0.01 * gap}

    def outside(q, a):
        a["ends"][k]["point"] = [v + LARGE for v in end["point"]]

    yield changed("above what is attained", above)
    yield changed("attained below", below)
    yield changed("attained outside", outside)
    yield changed("an end missing", lambda q, a: a["ends"].pop())


def of_a_decision(changed, question):
    """Another label, side or level at x."""
    label = question["decision"]
    if label is not None:
        others = {"a": "b", "b": "c", "c": "a", "no": "yes", "yes": "no", 0: 1, 1: 0}
        yield changed("label", lambda q, a: q.update(decision=others[label]))
    if "goal" in question:
        high = [str(10**6), "1"]
        yield changed("level", lambda q, a: q.update(level=high))

        def side(q, a):
            q["goal"]["sign"] *= -1
            q["level"][0] = str(-int(q["level"][0]))

        yield changed("side", side)
    yield changed("x outside", lambda q, a: q.update(x=[v + LARGE for v in q["x"]]))


def of_the_tree(header, arrays, name, rng):
    """A tree that does not cover the region."""
    axes, root = arrays[f"{name}axes"], arrays[f"{name}root"]
    rows = header["question"].get("rows", [header["question"]])
    answers = header["answer"].get("rows", [header["answer"]])
    k = int(name[:-1]) if name else 0
    if answers[k].get("status") == "NOT_ROBUST" or rows[k]["kind"] == "nothing":
        return  # it has no use of a tree
    yield "leaf removed", header, arrays | {f"{name}axes": axes[:-1]}
    yield "leaf grown", header, arrays | {f"{name}axes": np.append(axes, np.int32(-1))}
    moved = root.copy()
    j = int(rng.integers(root.shape[1]))
    moved[0, j] += 0.25 * (root[1, j] - root[0, j])
    yield "smaller root", header, arrays | {f"{name}root": moved}
    yield "no tree", header, {n: a for n, a in arrays.items() if n != f"{name}axes"}


def of_the_model(header, arrays, certificate):
    """A model that decides or predicts something else at a point of the certificate."""
    members = [name for name in arrays if name.endswith("_weights")]
    goals = header["question"].get("goals") or [header["question"].get("goal")]
    by_mean = [goal for goal in goals if goal and goal["quantity"] in ("mean", "band")]
    if len(members) == 1 and by_mean and header["question"]["kind"] != "regret":
        name = members[0].replace("weights", "offset")
        sign = by_mean[0]["sign"]
        yield "offset", header, arrays | {name: arrays[name] - sign * LARGE}
    changed = {name: -arrays[name] for name in members}
    yield "hash", {**header, "sha256": "0" * 64}, arrays
    if header["question"]["kind"] == "decision" and by_mean:
        level = header["question"].get("level", ["1", "1"])[0]
        plain = all(not arrays[n.replace("weights", "offset")].any() for n in members)
        if level == "0" and plain and not any(name.endswith("slope") for name in arrays):
            yield "weights of the other sign", header, arrays | changed
