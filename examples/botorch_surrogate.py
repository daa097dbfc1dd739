"""Certify a BoTorch surrogate in raw units: the largest posterior mean over a box, proved."""

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize

import gpcert

torch.manual_seed(0)
X = torch.rand(25, 2, dtype=torch.float64) * torch.tensor([100.0, 5.0])  # degrees and bars, say
Y = torch.sin(X[:, :1] / 20.0) * X[:, 1:]
model = SingleTaskGP(
    X, Y, input_transform=Normalize(2), outcome_transform=Standardize(1)
).eval()  # fit_gpytorch_mll(...) would choose its length-scales

region = gpcert.Box([10.0, 1.0], [60.0, 4.0])
found = gpcert.prediction_range(model, region, tol=0.05)
print(f"the largest posterior mean lies between {found.maximum.lower} and {found.maximum.upper}")
print("attained at", found.argmax)
