"""Broken and hostile `.npz` files end in an `InputError`, and take no memory but their own."""

import io
import json
import struct
import tracemalloc
import zipfile
from datetime import date

import numpy as np
import pytest

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import Matern, Product, SquaredExponential, Sum
from gpcert.likelihoods import Discretised, Probit, Softmax
from gpcert.model.committee import Committee, load_model
from gpcert.utils.archive import write_arrays

MEGABYTE = 2**20


def posterior(N=4, **options):
    rng = np.random.default_rng(0)
    kernel = SquaredExponential([1.0, 0.5]) * Matern(1.0, 1.5) + 0.3
    return gpcert.Posterior(
        kernel, rng.normal(size=(N, 2)), rng.normal(size=N), 0.1 * np.eye(N), **options
    )


def committee():
    members = tuple(posterior(likelihood=Probit()) for _ in range(3))
    return Committee(members, ("a", "b", "c"), "one_vs_rest")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    posterior(feature_names=["x", "y"]).save(folder / "posterior.npz")
    committee().save(folder / "committee.npz")
    return {path.stem: path.read_bytes() for path in folder.iterdir()}


def loads_or_is_refused(path):
    """Load a file; whether it was accepted."""
    message = ""
    try:
        model = load_model(path)
    except InputError as error:
        message = str(error)
    else:
        assert np.all(np.isfinite(model.places))
        return True
    assert path.name in message
    return False


def mutated(content, rng):
    """Bytes flipped, cut out, put in, or the file cut short."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        place, kind = int(rng.integers(len(data))), int(rng.integers(5))
        if kind <= 1:
            data[place] = int(rng.integers(256))
        elif kind == 2:
            data[place] ^= 1 << int(rng.integers(8))
        elif kind == 3:
            del data[place : place + int(rng.integers(1, 40))]
        else:
            data[place:place] = rng.bytes(int(rng.integers(1, 20)))
    return bytes(data)


@pytest.mark.parametrize("name", ["posterior", "committee"])
def test_mutated_files_are_refused_or_load(good, tmp_path, name):
    rng = np.random.default_rng(5)
    path = tmp_path / "mutated.npz"
    accepted = 0
    for _ in range(300):
        path.write_bytes(mutated(good[name], rng))
        accepted += loads_or_is_refused(path)
    assert accepted < 150


def test_every_byte_of_the_directory_may_be_anything(good, tmp_path):
    path = tmp_path / "mutated.npz"
    content = good["posterior"]
    for place in range(content.index(b"PK\x01\x02"), len(content), 3):
        for value in (9, 255):
            path.write_bytes(content[:place] + bytes([value]) + content[place + 1 :])
            loads_or_is_refused(path)


def rezipped(content, change, compression=zipfile.ZIP_DEFLATED):
    """The archive with its members (name: bytes) changed by a function."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    change(members)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return stream.getvalue()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npy_header(text):
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def with_header(**changes):
    def change(members):
        with io.BytesIO(members["header.npy"]) as stream:
            header = json.loads(str(np.load(stream)))
        members["header.npy"] = npy(np.array(json.dumps({**header, **changes})))

    return change


def with_member(name, data):
    return lambda members: members.__setitem__(name, data)


def giant(shape):
    return npy_header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n")


NESTED = ["white", {"variance": 1.0}]
for _ in range(80):
    NESTED = ["sum", {"kernels": [NESTED]}]

HOSTILE = {
    "another array": with_member("extra.npy", npy(np.zeros(3))),
    "no array": with_member("extra.txt", b"hello"),
    "an array less": lambda members: members.pop("weights.npy"),
    "no header": lambda members: members.pop("header.npy"),
    "giant shape": with_member("points.npy", giant((10**15, 2))),
    "giant number": with_member("points.npy", giant((10**17, 10**17))),
    "negative shape": with_member("points.npy", giant((-4, 2))),
    "other shape": with_member("points.npy", npy(np.zeros((5, 2)))),
    "too many rows": with_member("factor.npy", npy(np.zeros((1, 401, 4)))),
    "float32": with_member("points.npy", npy(np.zeros((4, 2), np.float32))),
    "complex": with_member("points.npy", npy(np.zeros((4, 2), complex))),
    "text": with_member("points.npy", npy(np.full((4, 2), "a"))),
    "objects": with_member(
        "points.npy",
        npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (4, 2), }\n") + bytes(64),
    ),
    "code as header": with_member("points.npy", npy_header("__import__('os').getcwd()\n")),
    "deep header": with_member("points.npy", npy_header("(" * 3000)),
    "long header": with_member("points.npy", npy_header(" " * 60000)),
    "NaN": with_member("points.npy", npy(np.full((4, 2), np.nan))),
    "no format": with_header(format=None),
    "format is a list": with_header(format=["gpcert-posterior-1"]),
    "kernel is text": with_header(kernel="white"),
    "kernel has three parts": with_header(kernel=["white", {}, 1]),
    "kernel is a number": with_header(kernel=[1, {}]),
    "unknown kernel": with_header(kernel=["mystery", {}]),
    "kernel of text": with_header(kernel=["squared_exponential", {"length_scale": "a"}]),
    "kernel of a list": with_header(kernel=["squared_exponential", [1.0]]),
    "kernel without parts": with_header(kernel=["sum", {"kernels": 7}]),
    "kernel with other parts": with_header(kernel=["scale", {"kernel": None, "factor": 1}]),
    "kernel beyond float64": with_header(kernel=["constant", {"variance": 10**400}]),
    "kernel too deep": with_header(kernel=NESTED),
    "likelihood of text": with_header(likelihood=["multinomial_probit", {"noise": "a"}]),
    "likelihood of a list": with_header(likelihood=["probit", []]),
    "likelihood unknown": with_header(likelihood=["discretised", {}]),
    "coupled is text": with_header(coupled="no"),
    "classes are a number": with_header(classes=2),
    "classes are lists": with_header(classes=[[1], [2]]),
    "classes are the same": with_header(classes=["a", "a"]),
    "names are text": with_header(feature_names="ab"),
    "names are numbers": with_header(feature_names=[1, 2]),
    "names are too few": with_header(feature_names=["a"]),
    "infinite number": with_member("header.npy", npy(np.array('{"format": 1e999}'))),
    "NaN in JSON": with_member("header.npy", npy(np.array('{"format": NaN}'))),
    "name twice": with_member("header.npy", npy(np.array('{"format": 1, "format": 2}'))),
    "deep JSON": with_member("header.npy", npy(np.array("[" * 100_000))),
    "digits": with_member("header.npy", npy(np.array("1" * 10_000))),
    "no text": with_member("header.npy", npy(np.zeros(3))),
    "several texts": with_member("header.npy", npy(np.array(["{}", "{}"]))),
    "half a character": with_member("header.npy", npy(np.array("{}"))[:-4] + b"\xff\xff\xff\xff"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(good, tmp_path, name):
    path = tmp_path / "hostile.npz"
    path.write_bytes(rezipped(good["posterior"], HOSTILE[name]))
    assert not loads_or_is_refused(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_packings_are_refused(good, tmp_path, compression):
    path = tmp_path / "hostile.npz"
    path.write_bytes(rezipped(good["posterior"], lambda members: None, compression))
    assert not loads_or_is_refused(path)


def test_a_member_that_stands_twice_is_refused(good, tmp_path):
    path = tmp_path / "twice.npz"
    path.write_bytes(good["posterior"])
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as file:
        file.writestr("points.npy", npy(np.zeros((4, 2))))
    assert not loads_or_is_refused(path)


def peak(path):
    """Most memory that an attempt to load takes, in bytes."""
    tracemalloc.start()
    try:
        assert not loads_or_is_refused(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


ZEROS = 16 * MEGABYTE
BOMBS = {
    "unknown array": ("bomb.npy", (ZEROS // 8,)),
    "rows": ("factor.npy", (1, ZEROS // 32, 4)),
    "points": ("points.npy", (ZEROS // 16, 2)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_before_they_unpack(good, tmp_path, name):
    """Files of 20 kB that would unpack to 16 MB, as those of 2 MB would to 2 GB."""
    member, shape = BOMBS[name]
    path = tmp_path / "bomb.npz"
    path.write_bytes(rezipped(good["posterior"], with_member(member, npy(np.zeros(shape)))))
    assert path.stat().st_size < 25_000
    assert peak(path) < MEGABYTE


def test_a_text_without_end_is_refused_before_it_unpacks(good, tmp_path):
    path = tmp_path / "bomb.npz"
    text = npy_header("{'descr': '<U17000000', 'fortran_order': False, 'shape': (), }\n")
    path.write_bytes(rezipped(good["posterior"], with_member("header.npy", text + bytes(68000000))))
    assert peak(path) < MEGABYTE


def test_sizes_that_the_packed_bytes_cannot_have_are_refused(good, tmp_path):
    """The directory says 10^9 bytes; nothing of that size is asked for."""
    content = bytearray(good["posterior"])
    place = content.index(b"PK\x01\x02")
    while place >= 0:
        content[place + 24 : place + 28] = struct.pack("<I", 10**9)
        place = content.find(b"PK\x01\x02", place + 4)
    path = tmp_path / "lie.npz"
    path.write_bytes(bytes(content))
    assert peak(path) < MEGABYTE


def test_honest_files_take_little_more_than_their_size(tmp_path):
    path = tmp_path / "large.npz"
    posterior(N=1000).save(path)  # a factor of 8 MB
    tracemalloc.start()
    try:
        loaded = gpcert.Posterior.load(path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert loaded.factor.shape == (1, 1000, 1000)
    # the bytes as they are unpacked, and the array that the posterior checks and keeps
    assert most < 3 * 8e6 + 2 * MEGABYTE


def test_deep_kernels_load(tmp_path):
    kernel = SquaredExponential(1.0)
    for depth in range(50):
        kernel = (Sum if depth % 2 else Product)((kernel, Matern(1.0, 1.5)))
    saved = gpcert.Posterior(kernel, [[0.0]], [1.0])
    saved.save(tmp_path / "model.npz")
    assert gpcert.load(tmp_path / "model.npz").fingerprint == saved.fingerprint
    for _ in range(20):
        kernel = Sum((kernel, Matern(1.0, 1.5)))
    with pytest.raises(InputError, match="at most 200 deep"):
        gpcert.Posterior(kernel, [[0.0]], [1.0]).save(tmp_path / "deep.npz")
    assert not (tmp_path / "deep.npz").exists()


def test_arrays_in_the_order_of_columns(tmp_path):
    rng = np.random.default_rng(1)
    points = np.asfortranarray(rng.normal(size=(5, 3)))
    saved = gpcert.Posterior(SquaredExponential(1.0), points, rng.normal(size=5))
    object.__setattr__(saved, "points", points)
    saved.save(tmp_path / "model.npz")
    assert np.array_equal(gpcert.Posterior.load(tmp_path / "model.npz").points, points)


class TestFingerprints:
    def test_are_those_of_the_loaded_model(self, tmp_path):
        for model in (posterior(), committee()):
            model.save(tmp_path / "model.npz")
            assert load_model(tmp_path / "model.npz").fingerprint == model.fingerprint
            assert len(model.fingerprint) == 16
            assert int(model.fingerprint, 16) >= 0

    def test_tell_models_apart(self):
        weights = np.ones((2, 4))
        points = posterior().points
        kernel = SquaredExponential(1.0)
        several = [
            posterior(),
            posterior(noise=0.1),
            posterior(likelihood=Probit()),
            posterior(likelihood=Probit(), classes=("a", "b")),
            posterior(likelihood=Probit(), classes=("b", "a")),
            posterior(feature_names=("x", "y")),
            gpcert.Posterior(kernel, points, weights),
            gpcert.Posterior(kernel, points, weights, likelihood=Softmax()),
            gpcert.Posterior(kernel, points, np.nextafter(weights, 2.0)),
            committee(),
            Committee(committee().members, ("a", "c", "b"), "one_vs_rest"),
            Committee(committee().members, ("a", "b", "c"), "one_vs_one"),
        ]
        assert len({model.fingerprint for model in several}) == len(several)

    def test_of_models_that_cannot_be_saved(self):
        steep, flat = (
            posterior(likelihood=Discretised(lambda f, k=k: np.clip(0.5 + k * f, 0, 1), pieces=8))
            for k in (1.0, 0.1)
        )
        assert steep.fingerprint != flat.fingerprint
        with pytest.raises(InputError, match="cannot be saved"):
            steep.save("nowhere.npz")


@pytest.mark.parametrize(
    "classes", [(("a", 1), ("b", 2)), (date(2020, 1, 1), date(2021, 1, 1)), (0.5, np.inf)]
)
def test_labels_that_files_cannot_hold_are_refused_when_saving(tmp_path, classes):
    model = posterior(likelihood=Probit(), classes=classes)
    assert len(model.fingerprint) == 16
    members = (posterior(likelihood=Probit()),) * 2
    for each in (model, Committee(members, classes, "one_vs_rest")):
        with pytest.raises(InputError, match=r"expected (distinct labels|numbers of float64)"):
            each.save(tmp_path / "model.npz")
    assert not (tmp_path / "model.npz").exists()


def test_write_arrays_refuses_numbers_that_are_none(tmp_path):
    with pytest.raises(InputError, match="float64"):
        write_arrays(tmp_path / "x.npz", {"a": float("nan")}, {})
