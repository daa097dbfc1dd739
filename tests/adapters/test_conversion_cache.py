"""A kept conversion answers for the model as it is, never for the model as it was."""

import copy
import gc
import threading
import weakref

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import gpcert
from gpcert.adapters import registry
from gpcert.adapters.conversion_cache import ConversionCache, fingerprint
from gpcert.adapters.measure import measured
from gpcert.models import GPClassifier, GPRegressor
from gpcert.testing.effort import examples

rng = np.random.default_rng(1)
X = rng.normal(size=(30, 2))
y = np.sin(X.sum(1))
KERNEL = ConstantKernel(2.0) * RBF(1.0) + WhiteKernel(0.1)
BOX = gpcert.Ball(X[0], 0.3)


def regressor():
    return GaussianProcessRegressor(KERNEL, alpha=1e-3, optimizer=None)


def pipeline():
    return make_pipeline(MinMaxScaler(), StandardScaler(), regressor())


@pytest.fixture
def conversions(monkeypatch):
    """Counts the conversions that are made."""
    made = []
    monkeypatch.setattr(registry, "CONVERSIONS", ConversionCache())
    monkeypatch.setattr(registry, "measured", lambda c: made.append(c) or measured(c))
    return made


def converted(model):
    """The posterior of a conversion that is not cached."""
    return registry.convert(model).posterior


def fresh(model):
    """What a conversion that nothing was kept of predicts."""
    return converted(model).predict(X[:3] + 0.1)


def kept(model):
    return gpcert.as_posterior(model).predict(X[:3] + 0.1)


@pytest.mark.parametrize(
    "model",
    [
        regressor(),
        pipeline(),
        GridSearchCV(regressor(), {"alpha": [1e-3, 1e-2]}, cv=2),
        GPRegressor(max_epochs=2),
        make_pipeline(StandardScaler(), GPRegressor(max_epochs=2)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_an_unchanged_model_is_converted_once(model, conversions):
    model = clone(model).fit(X, y)
    first = gpcert.as_posterior(model)
    gpcert.prediction_range(model, BOX, tol=0.5)
    gpcert.certify(model, X[0], 0.1, delta=1.0)
    assert gpcert.as_posterior(model) is first
    assert len(conversions) == 1


@pytest.mark.parametrize(
    "model",
    [
        GaussianProcessClassifier(RBF(1.0), optimizer=None),
        GPClassifier(max_epochs=2),
        GPClassifier(likelihood="softmax", max_epochs=0),
    ],
    ids=["sklearn", "probit", "softmax"],
)
@pytest.mark.parametrize("labels", [["no", "yes"], ["a", "b", "c"]])
def test_classifiers_are_kept_until_they_are_fitted_again(model, labels, conversions):
    several = len(labels) > 2
    if several and getattr(model, "likelihood", "softmax") != "softmax":
        pytest.skip("two classes only")
    target = np.asarray(labels)[np.digitize(y, [-0.3, 0.3])[:30] % len(labels)]
    model = clone(model).fit(X, target)
    first = gpcert.as_posterior(model)
    assert gpcert.as_posterior(model) is first
    model.fit(X, target[::-1])
    assert gpcert.as_posterior(model) is not first
    assert len(conversions) == 2


def _refit(model):
    model.fit(X[:20], 2.0 * y[:20])


def _scaled_alpha(model):  # both halves of the model, so that it still agrees with itself
    model[-1]._y_train_mean = np.asarray(model[-1]._y_train_mean + 1.0)


def _theta(model):
    model[-1].kernel_.k1.k1.constant_value = 1.5


def _alpha_in_place(model):
    model[-1].alpha_[0] += 0.25


def _points_in_place(model):
    model[-1].X_train_[3, 0] += 1e-9


def _factor_in_place(model):
    model[-1].L_[2, 1] *= 1.5


def _scaler_in_place(model):
    model[1].mean_[0] += 0.5


def _first_scaler(model):
    model[0].min_ = model[0].min_ + 0.01


def _inner_step_fitted_again(model):
    model[-1].fit(model[:-1].transform(X[:10]), y[:10])


def _step_replaced(model):
    other = StandardScaler().fit(3.0 * model[0].transform(X))
    model.steps[1] = (model.steps[1][0], other)


def _step_left_out(model):
    name = model.steps[1][0]
    model.set_params(**{name: "passthrough"})


ALTERATIONS = [
    _refit,
    _scaled_alpha,
    _theta,
    _alpha_in_place,
    _points_in_place,
    _factor_in_place,
    _scaler_in_place,
    _first_scaler,
    _inner_step_fitted_again,
    _step_replaced,
    _step_left_out,
]


@pytest.mark.parametrize("alter", ALTERATIONS, ids=lambda f: f.__name__.strip("_"))
def test_an_altered_model_gets_its_own_answer(alter, conversions):
    model = pipeline().fit(X, y)
    before = kept(model)
    alter(model)
    np.testing.assert_array_equal(kept(model), fresh(model))
    assert not np.array_equal(kept(model), before)
    assert len(conversions) == 2


def test_an_alteration_that_is_undone_has_the_first_answer_again(conversions):
    model = pipeline().fit(X, y)
    before, mean = kept(model), model[1].mean_.copy()
    model[1].mean_[0] += 0.5
    assert not np.array_equal(kept(model), before)
    model[1].mean_[:] = mean
    np.testing.assert_array_equal(kept(model), before)


def test_parameters_and_copies(conversions):
    model = pipeline().fit(X, y)
    first = gpcert.as_posterior(model)
    model[-1].set_params(alpha=0.5)  # no part of the fitted model, and yet converted again
    assert gpcert.as_posterior(model) is not first
    other = copy.deepcopy(model)
    other[-1].alpha_ *= 2.0
    np.testing.assert_array_equal(kept(other), fresh(other))
    np.testing.assert_array_equal(kept(model), fresh(model))
    assert not np.array_equal(kept(other), kept(model))


def test_a_new_model_at_an_old_address_is_converted():
    keep = ConversionCache()
    answers = []
    scales = np.arange(1, examples(30, quick=9))
    for scale in scales:
        model = regressor().fit(X, scale * y)
        posterior = keep.posterior(model, converted)
        answers.append(float(posterior.predict(X[:1])[0][0, 0]))
        del model, posterior
        gc.collect()
        assert len(keep) == 0  # nothing is kept of a model that is gone
    np.testing.assert_allclose(np.asarray(answers) / answers[0], scales, rtol=1e-9)


def test_a_model_goes_with_its_last_reference():
    # the matrices of a large model must not wait for the collector of cycles
    keep, model = ConversionCache(), regressor().fit(X, y)
    alive = weakref.ref(model)
    gc.collect()
    gc.disable()
    try:
        keep.posterior(model, converted)
        del model
        assert alive() is None
    finally:
        gc.enable()
    assert len(keep) == 0


def test_an_entry_of_another_object_is_never_used():
    keep, model = ConversionCache(), regressor().fit(X, y)
    keep.posterior(model, converted)
    (entry,) = keep._entries.values()
    other = regressor().fit(X, -y)
    keep._entries[id(other)] = entry  # as if the address had been reused before the callback
    found = keep.posterior(other, converted)
    np.testing.assert_array_equal(found.predict(X)[0], converted(other).predict(X)[0])


def test_few_models_are_kept():
    keep, models = ConversionCache(most=3), [regressor().fit(X, k * y) for k in range(1, 6)]
    for model in models:
        keep.posterior(model, converted)
    assert len(keep) == 3


def test_a_model_that_changes_during_its_conversion_is_not_kept():
    keep, model = ConversionCache(), regressor().fit(X, y)

    def convert(each):
        found = converted(each)
        each.alpha_[0] += 1.0
        return found

    keep.posterior(model, convert)
    assert len(keep) == 0


def test_what_cannot_be_described_is_not_kept():
    class Own(GaussianProcessRegressor):
        """Its attributes may come from anywhere."""

    keep = ConversionCache()
    for model in (Own(KERNEL, alpha=1e-3, optimizer=None), regressor().set_params(optimizer=print)):
        model.optimizer, given = None, model.optimizer
        model.fit(X, y)
        model.optimizer = given
        keep.posterior(model, converted)
        assert fingerprint(model) is None
    assert len(keep) == 0


def test_threads_get_the_answers_of_their_own_models():
    models = [regressor().fit(X, k * y) for k in range(1, 5)]
    expected = [fresh(model) for model in models]
    wrong = []

    def ask(k):
        for _ in range(10):
            if not np.array_equal(kept(models[k]), expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=ask, args=(k % 4,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_arrays_of_a_posterior_can_only_be_read():
    posterior = gpcert.as_posterior(regressor().fit(X, y))
    for given in (posterior, copy.deepcopy(posterior)):
        for name in ("points", "weights", "factor", "offset", "scale", "noise"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(given, name)[...] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            given.kernel.length_scale[...] = 2.0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["a", "b"], ["ab"]),
        (["a", ["b"]], [["a", "b"]]),
        ({"a": 1}, ["a", 1]),
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("1", 1),
        (b"1", "1"),
        (None, "None"),
        (np.zeros(2), np.zeros((1, 2))),
        (np.zeros((2, 3)), np.zeros((3, 2)).T.copy(order="F") + np.eye(2, 3)),
        (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(3, 2).T)),
        (np.zeros(2), np.zeros(2, np.int64)),
        (np.array(["a", "b"], object), np.array(["a", "c"], object)),
        (np.float32(1.0), np.float64(1.0)),
        (np.random.RandomState(0), np.random.RandomState(1)),
        (RBF(1.0), RBF(1.0 + 1e-15)),
    ],
)
def test_different_parts_have_different_fingerprints(first, second):
    assert fingerprint(first) == fingerprint(first)
    assert fingerprint(first) == fingerprint(copy.deepcopy(first))
    assert fingerprint(first) != fingerprint(second)
