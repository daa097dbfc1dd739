"""Data sets: shapes, splits, pooling, and errors that say what is wrong with a folder."""

import contextlib
import gzip
import tracemalloc

import numpy as np
import pytest
from scipy.stats import norm

from gpcert.errors import InputError
from gpcert.study import datasets
from gpcert.study.datasets import files, images, tables
from gpcert.study.datasets.files import read_idx, read_table
from gpcert.study.datasets.images import pooled


def test_synthetic2d_is_standardised_balanced_and_reproducible():
    data = datasets.synthetic2d(n=400, n_test=50, random_state=3)
    again = datasets.synthetic2d(n=400, n_test=50, random_state=3)
    np.testing.assert_array_equal(data.X_train, again.X_train)
    np.testing.assert_array_equal(data.y_test, again.y_test)
    np.testing.assert_allclose(data.X_train.mean(0), 0.0, atol=1e-12)
    np.testing.assert_allclose(data.X_train.std(0), 1.0, rtol=1e-12)
    assert np.bincount(data.y_train).tolist() == [0, 200, 200]
    assert not np.array_equal(data.X_train, datasets.synthetic2d(n=400, n_test=50).X_train)


@pytest.mark.parametrize("shift", [3.0, 5.0])
def test_synthetic2d_has_the_documented_accuracy(shift):
    data = datasets.synthetic2d(n=20000, shift=shift)
    # class 1 is shifted along the first dimension, so the best rule compares the two
    best = np.where(data.X_train[:, 0] > data.X_train[:, 1], 1, 2)
    accuracy = np.mean(best == data.y_train)
    assert accuracy == pytest.approx(norm.cdf(shift / np.sqrt(2)), abs=4e-3)


@pytest.mark.parametrize("wrong", [{"n": 1}, {"n_test": 0}, {"n": 2.5}, {"shift": np.nan}])
def test_synthetic2d_rejects_bad_arguments(wrong):
    with pytest.raises(InputError):
        datasets.synthetic2d(**wrong)


def test_digits_pixels_and_split():
    data = datasets.digits((3, 8))
    assert data.dim == 64
    assert data.classes == (3, 8)
    assert data.X_train.min() == 0.0
    assert data.X_train.max() == 1.0
    assert len(data.X_train) + len(data.X_test) == 357
    assert set(data.y_test) == {3, 8}
    rows = {tuple(x) for x in data.X_train}
    assert not any(tuple(x) in rows for x in data.X_test)


def write_images(path, n_train=12, n_test=6, labels=(3, 5, 8), **changes):
    rng = np.random.default_rng(0)
    arrays = {
        "x_train": rng.integers(0, 256, (n_train, 28, 28)).astype(np.uint8),
        "y_train": np.resize(labels, n_train).astype(np.uint8),
        "x_test": rng.integers(0, 256, (n_test, 28, 28)).astype(np.uint8),
        "y_test": np.resize(labels, n_test).astype(np.uint8),
    }
    arrays.update(changes)
    np.savez_compressed(path, **arrays)
    return arrays


def test_mnist_from_a_folder_pools_by_means(tmp_path):
    arrays = write_images(tmp_path / "mnist_358.npz")
    data = datasets.mnist(folder=tmp_path)
    assert data.X_train.shape == (8, 196)
    assert data.X_test.shape == (4, 196)
    assert data.classes == (3, 8)
    assert data.name == "mnist 3 against 8"
    first = arrays["x_train"][0].astype(float) / 255
    np.testing.assert_allclose(
        data.X_train[0].reshape(14, 14)[2, 5], first[4:6, 10:12].mean(), rtol=1e-15
    )
    assert data.X_train.max() <= 1.0


def test_mnist_in_full_size_and_three_classes(tmp_path):
    arrays = write_images(tmp_path / "mnist_358.npz")
    data = datasets.mnist((3, 5, 8), tmp_path, size=28)
    assert data.X_train.shape == (12, 784)
    np.testing.assert_array_equal(data.X_train[1] * 255, arrays["x_train"][1].ravel())


def test_fashion_from_a_folder(tmp_path):
    write_images(tmp_path / "fashion_tsp.npz", labels=(0, 2, 6))
    data = datasets.fashion((0, 6), tmp_path)
    assert data.classes == (0, 6)
    assert data.name == "fashion 0 against 6"


def test_spambase_from_a_folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(2.0, 3.0, (40, 57)).astype(np.float32)
    X[:, 3] = 7.0
    y = (np.arange(40) < 16).astype(np.uint8)
    np.savez_compressed(tmp_path / "spambase.npz", X=X, y=y)
    data = datasets.spambase(tmp_path)
    assert data.X_train.shape == (30, 57)
    assert data.y_train.sum() == 12  # the split keeps the share of spam
    np.testing.assert_allclose(data.X_train.mean(0), 0.0, atol=1e-12)
    np.testing.assert_array_equal(data.X_train[:, 3], 0.0)
    eleven = datasets.spambase(tmp_path, features="paper", standardise=False)
    assert eleven.dim == 11
    assert set(eleven.X_train[:, 0]) <= set(X[:, 4].astype(float))
    assert [j + 1 for j in tables.PAPER_COLUMNS] == [5, 7, 16, 17, 19, 21, 23, 25, 52, 53, 57]


def test_errors_name_folder_file_and_keys(tmp_path):
    with pytest.raises(InputError, match="is none"):
        datasets.mnist(folder=tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"mnist_358\.npz"):
        datasets.mnist(folder=tmp_path)
    np.savez(tmp_path / "spambase.npz", X=np.zeros((4, 57)))
    with pytest.raises(InputError, match="missing y"):
        datasets.spambase(tmp_path)
    np.savez(tmp_path / "spambase.npz", X=np.zeros((4, 3)), y=np.zeros(4))
    with pytest.raises(InputError, match="57 numbers"):
        datasets.spambase(tmp_path)
    for content in (b"", b"not a zip file", b"PK\x03\x04broken"):
        (tmp_path / "fashion_tsp.npz").write_bytes(content)
        with pytest.raises(InputError, match="npz"):
            datasets.fashion((0, 6), tmp_path)
    np.save(tmp_path / "fashion_tsp.npz.npy", np.zeros(3))
    (tmp_path / "fashion_tsp.npz.npy").rename(tmp_path / "fashion_tsp.npz")
    with pytest.raises(InputError, match="npz"):
        datasets.fashion((0, 6), tmp_path)


def test_errors_name_classes_shapes_and_sizes(tmp_path):
    write_images(tmp_path / "mnist_358.npz")
    with pytest.raises(InputError, match=r"\[4\]"):
        datasets.mnist((3, 4), tmp_path)
    with pytest.raises(InputError, match="two or more"):
        datasets.mnist((3, 3), tmp_path)
    with pytest.raises(InputError, match="size"):
        datasets.mnist((3, 8), tmp_path, size=7)
    write_images(tmp_path / "mnist_358.npz", x_test=np.zeros((5, 27, 27), np.uint8))
    with pytest.raises(InputError, match="28x28"):
        datasets.mnist((3, 8), tmp_path)


def test_files_are_checked_before_they_are_unpacked(tmp_path):
    path = tmp_path / "spambase.npz"
    good = {"X": np.ones((4, 57)), "y": np.array([0, 1, 0, 1])}
    np.savez_compressed(path, **good, bomb=np.zeros(10**6))
    tracemalloc.start()
    try:
        datasets.spambase(tmp_path, test_size=0.5)
        assert tracemalloc.get_traced_memory()[1] < 2**21  # the bomb would have taken 8 MB
    finally:
        tracemalloc.stop()
    for wrong in ([0.5, 1, 0, 1], [np.nan, 1, 0, 1], [np.inf, 1, 0, 1], ["a", "b", "a", "b"]):
        np.savez_compressed(path, X=good["X"], y=np.array(wrong))
        with pytest.raises(InputError, match=r"spambase\.npz"):
            datasets.spambase(tmp_path)
    np.savez_compressed(path, **good)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(50):
        data = bytearray(content)
        for place in rng.integers(len(data), size=3):
            data[place] = int(rng.integers(256))
        path.write_bytes(bytes(data))
        with contextlib.suppress(InputError):
            files.read_npz(tmp_path, "spambase.npz", ("X", "y"), (57,))


def test_pooling_is_the_mean_of_four_pixels():
    image = np.arange(784).reshape(1, 28, 28) % 256
    expected = image.reshape(14, 2, 14, 2).transpose(0, 2, 1, 3).reshape(14, 14, 4).mean(2) / 255
    np.testing.assert_allclose(pooled(image, 14)[0], expected.ravel(), rtol=1e-15)


def test_openml_is_read_as_numbers(monkeypatch):
    def fetch(name, **options):
        return np.ones((3, 2), dtype=object), np.array(["3", "8", "3"], dtype=object)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    X, y = files.download("mnist_784", version=1)
    assert X.dtype == np.float64
    assert y.tolist() == [3, 8, 3]


def test_without_a_folder_every_set_comes_from_openml_which_keeps_a_copy(monkeypatch, tmp_path):
    arrays = write_images(tmp_path / "mnist_358.npz")
    X, y = (np.concatenate([arrays[f"{c}_train"], arrays[f"{c}_test"]]) for c in "xy")
    spambase = np.random.default_rng(0).normal(size=(40, 57)), np.arange(40) % 2
    asked = []

    def fetch(name, *, version, cache=True, **options):
        asked.append((name, version, cache))
        data, labels = spambase if name == "spambase" else (X.reshape(len(X), -1), y)
        return data, labels.astype(str).astype(object)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    monkeypatch.setattr(images, "TRAIN_SIZE", len(arrays["x_train"]))
    found, expected = datasets.mnist((3, 8)), datasets.mnist((3, 8), tmp_path)
    for part in ("X_train", "y_train", "X_test", "y_test"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
    assert datasets.fashion((3, 8)).dim == 196
    assert datasets.spambase(features="paper").dim == 11
    assert asked == [("mnist_784", 1, True), ("Fashion-MNIST", 1, True), ("spambase", 1, True)]


def test_without_network_the_error_says_what_to_do(monkeypatch):
    def fetch(name, **options):
        raise OSError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(InputError, match="folder="):
        datasets.spambase()


def test_dataset_checks_its_parts():
    X = np.zeros((2, 2))
    with pytest.raises(InputError, match="y_test"):
        datasets.Dataset(X, [0, 1], X, [0], name="short labels")
    with pytest.raises(InputError, match="X_test"):
        datasets.Dataset(X, [0, 1], np.zeros((2, 3)), [0, 1], name="other features")
    with pytest.raises(InputError, match="finite"):
        datasets.Dataset(X * np.nan, [0, 1], X, [0, 1], name="holes")


def idx_bytes(array):
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def test_idx_and_csv_files_hold_the_same_images_as_npz(tmp_path):
    arrays = write_images(tmp_path / "mnist_358.npz")
    expected = datasets.mnist(folder=tmp_path)
    (tmp_path / "idx" / "mnist").mkdir(parents=True)
    for name, key in zip(images.IDX, images.KEYS, strict=True):
        path = tmp_path / "idx" / "mnist" / (f"{name}.gz" if "images" in name else name)
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "wb") as file:
            file.write(idx_bytes(arrays[key]))
    (tmp_path / "csv").mkdir()
    for part, header in (("train", "label," + ",".join(f"p{k}" for k in range(784))), ("test", "")):
        rows = np.column_stack([arrays[f"y_{part}"], arrays[f"x_{part}"].reshape(-1, 784)])
        path = tmp_path / "csv" / f"mnist_{part}.csv"
        np.savetxt(path, rows, fmt="%d", delimiter=",", header=header, comments="")
        if not header:
            path.write_text(path.read_text().lstrip("\n"))
    for folder in ("idx", "csv"):
        found = datasets.mnist(folder=tmp_path / folder)
        np.testing.assert_array_equal(found.X_train, expected.X_train)
        np.testing.assert_array_equal(found.y_test, expected.y_test)
    (tmp_path / "csv" / "mnist_test.csv").unlink()
    with pytest.raises(InputError, match=r"mnist_test\.csv"):
        datasets.mnist(folder=tmp_path / "csv")


def test_broken_idx_and_csv_files_are_refused(tmp_path):
    path = tmp_path / "x"
    whole = idx_bytes(np.arange(6, dtype=np.uint8).reshape(2, 3))
    for content, reason in (
        (b"", "nothing"),
        (whole[:9], "cut off"),
        (whole[:-1], "fewer"),
        (whole + b"1", "more"),
        (bytes([0, 0, 8, 2]) + b"\xff" * 8, "more than"),
        (b"\x00\x00\x0d" + whole[3:], "000008"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=reason):
            read_idx(path)
    (tmp_path / "y.gz").write_bytes(b"no gzip")
    with pytest.raises(InputError, match=r"y\.gz"):
        read_idx(tmp_path / "y.gz")
    for text in ("1,2\n3\n", "1,nan\n", "1,2,3\n", "a,b\nc,d\n"):
        path.write_text(text)
        with pytest.raises(InputError, match="x: expected"):
            read_table(path, 2)


def test_spam_features_by_name_and_from_csv(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 57)), np.arange(60) % 2
    X[:, 4] += 4.0 * y
    np.savetxt(tmp_path / "spambase.data", np.column_stack([X, y]), delimiter=",")
    assert datasets.spambase(tmp_path, features="paper").dim == 11
    reduced = datasets.spambase(tmp_path, features="reduced")
    assert reduced.dim == 1
    np.testing.assert_allclose(reduced.X_train.mean(), 0.0, atol=1e-12)
    with pytest.raises(InputError, match="paper"):
        datasets.spambase(tmp_path, features="eleven")


def test_l1_features_stop_where_accuracy_falls():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 6))
    y = (X[:, 1] + X[:, 4] > 0).astype(int)
    data = datasets.Dataset(X[:200], y[:200], X[200:], y[200:], name="two matter")
    assert datasets.l1_features(data, C=0.1).tolist() == [1, 4]
    assert len(datasets.l1_features(data, C=0.1, loss=1.0)) == 1
    three = datasets.Dataset(X, np.arange(400) % 3, X, np.arange(400) % 3, name="three classes")
    with pytest.raises(InputError, match="two classes"):
        datasets.l1_features(three)
