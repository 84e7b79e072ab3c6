#!/usr/bin/env python3
"""Records what scikit-learn makes of small features, for the tests of the linear probe.

    probe.py OUT        OUT is tests/fixtures/evaluate/probe.json

Features are standardised first, as our probe does it. Debian: python3-sklearn.
"""
import json
import pathlib
import sys

import numpy
import sklearn
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

STRENGTHS = [0.01, 1.0, 100.0]


def clouds(classes, seed):
    """Overlapping clouds; the last feature is large and far from zero."""
    random = numpy.random.default_rng(seed)
    labels = numpy.arange(90) % classes
    centres = random.normal(size=(classes, 5))
    features = centres[labels] + random.normal(size=(90, 5)) * 1.2
    features[:, 4] = 500 + 40 * features[:, 4]
    return numpy.round(features, 3), labels


def rounded(values):
    return [[float(f"{value:.12g}") for value in row] for row in values]


def case(classes, seed):
    features, labels = clouds(classes, seed)
    seen, held_out = slice(0, 60), slice(60, 90)
    record = {"classes": classes, "features": features.tolist(), "labels": labels.tolist(),
              "seen": 60, "fits": []}
    for strength in STRENGTHS:
        logistic = make_pipeline(StandardScaler(), LogisticRegression(
            C=strength, solver="lbfgs", multi_class="multinomial", tol=1e-12, max_iter=100000))
        logistic.fit(features[seen], labels[seen])
        # Onto -1 and 1 instead of 0 and 1: twice our scores, less one.
        ridge = make_pipeline(StandardScaler(), RidgeClassifier(alpha=1 / strength))
        ridge.fit(features[seen], labels[seen])
        scores = ridge.decision_function(features[held_out])
        if scores.ndim == 1:
            scores = numpy.stack([-scores, scores], axis=1)
        record["fits"].append({
            "strength": strength,
            "probabilities": rounded(logistic.predict_proba(features[held_out])),
            "logistic_accuracy": logistic.score(features[held_out], labels[held_out]),
            "ridge_scores": rounded((scores + 1) / 2),
            "ridge_accuracy": ridge.score(features[held_out], labels[held_out])})
    return record


def main():
    out = pathlib.Path(sys.argv[1])
    record = {"scikit-learn": sklearn.__version__, "cases": [case(3, 1), case(2, 2)]}
    out.write_text(json.dumps(record, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
