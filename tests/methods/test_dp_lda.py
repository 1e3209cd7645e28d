import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from tests.adversarial import Silence

from privsvm.families.moments.joint_moments import class_sums
from privsvm.families.moments.private_scaling import rows_to_scale
from privsvm.families.moments.second_moments import MomentsMechanism, centre_rows, code_cells, constant_feature
from privsvm.methods.dp_lda import CONSTANT, DPLDAClassifier, discriminants


def moments_of(load, n_classes):
    """Exact moments of centred unit rows with the constant feature, and the rows."""
    X, y = load(return_X_y=True)
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-9) * 2 - 1
    cells = rows_to_scale(X, "centre")
    rows = constant_feature(centre_rows(cells, cells.mean(axis=0) * 2.0**-20))[0]
    mechanism = MomentsMechanism(
        n_features=rows.shape[1], n_codes=n_classes - 1, neighbours="replace_one", multiplier=1.0
    )
    return mechanism.release(rows, code_cells(n_classes)[y], Silence()), rows * 2.0**-20, y


@pytest.mark.parametrize(("load", "n_classes"), [(load_wine, 3), (load_digits, 10)])
def test_sums_of_classes_are_read_off_the_moments(load, n_classes):
    moments, rows, y = moments_of(load, n_classes)
    sums = class_sums(moments, 1e-9, len(y))
    assert np.allclose(rows[:, -1], CONSTANT, atol=1e-5)
    exact = np.array([rows[y == code].sum(axis=0) for code in range(n_classes)])
    assert np.allclose(sums[:, :-1], exact[:, :-1], atol=0.01)
    assert np.allclose(sums[:, -1], np.bincount(y), atol=0.01)


def test_without_noise_it_is_linear_discriminant_analysis():
    moments, rows, y = moments_of(load_wine, 3)
    scores = rows @ discriminants(moments, 1e-9, len(y)).T
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(rows[:, :-1], y).decision_function(rows[:, :-1])
    assert np.allclose(scores, theirs, atol=0.01 * np.abs(theirs).max())


def test_what_the_noise_hides_does_not_speak_for_a_class():
    """With much noise classes are about equal, counts are above 0, and scores are finite."""
    moments, _, y = moments_of(load_wine, 3)
    counts = class_sums(moments, 1e4, len(y))[:, -1]
    assert np.ptp(counts) == 0.0
    assert counts.min() > 0.0
    assert np.isfinite(discriminants(moments, 1e4, len(y))).all()


def test_classes_are_as_probable_as_they_are_frequent():
    """Rows that say nothing get the label of the larger class."""
    y = np.repeat([0, 1], [100, 900])
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    model = DPLDAClassifier(classes=[0, 1], epsilon=20.0, random_state=0).fit(rows, y)
    assert model.predict(rows).mean() > 0.99
