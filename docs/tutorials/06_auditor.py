"""
Checking a certificate that somebody sent
=========================================

A supplier says: this classifier's decision stands whatever the measurement errors of this patient
are. The claim comes as a file. An auditor checks it without the supplier's program, and without
trusting who made it.

The part of the supplier is played here by gpcert, that of the auditor by ``gpcert-check``: a
separate small program, which shares no code with gpcert and proves the claim again from the
definitions, in ball arithmetic.
"""

# %%
# What the supplier does
# ----------------------
# Fit a model, ask a question, and keep the proof.

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpcert

data, target = load_breast_cancer(return_X_y=True, as_frame=True)
data, labels = data.iloc[:120, :5], np.where(target[:120] == 1, "benign", "malignant")
process = GaussianProcessClassifier(4.0 * RBF(3.0), optimizer=None)
model = make_pipeline(StandardScaler(), process).fit(data, labels)
patient = data.iloc[7]

folder = Path(tempfile.mkdtemp())
errors = {"mean radius": 0.3, "mean texture": 0.5}
certificate = gpcert.certify(model, patient, radius=errors, proof=True)
certificate.save(folder / "patient.cert")
print(certificate)

# %%
# What the auditor does
# ---------------------
# Read what the file claims; reading executes nothing.


def command(*arguments: str) -> None:
    """Run a program of the environment, and print what it prints."""
    program = Path(sys.executable).with_name(arguments[0])
    options = {"cwd": folder, "capture_output": True, "text": True}
    result = subprocess.run([program, *arguments[1:]], check=False, **options)
    print(result.stdout.strip() or result.stderr.strip())
    print(f"exit code {result.returncode}")


command("gpcert", "show", "patient.cert")

# %%
# Prove it again. The exit code is 0 if every claim is proved, 1 if one is refuted, 2 if something
# is not covered, and 3 if the file is none of ours.

command("gpcert-check", "patient.cert")

# %%
# A forgery
# ---------
# Somebody widens the region in the file: an error of 9.5 where 0.5 was proved.

content = (folder / "patient.cert").read_bytes()
(folder / "forged.cert").write_bytes(content.replace(b"0.5", b"9.5"))
command("gpcert-check", "forged.cert")

# %%
# What a counter-example says
# ---------------------------
# With larger errors the decision does not stand, and the file holds a patient that shows it: what
# moved, within the errors.

larger = gpcert.certify(
    model, patient, radius={"mean radius": 4.0, "mean texture": 8.0}, proof=True
)
larger.save(folder / "larger.cert")
print(larger)
larger.plot()
plt.show()

# %%
# This claim too is checked: that both points lie in the region, and that their decisions differ.

command("gpcert-check", "larger.cert")

# %%
# A page to print and to file, without script and without network:

command("gpcert", "page", "larger.cert")
