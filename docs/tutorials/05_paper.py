"""
The paper's experiments, and the same on a table of one's own
=============================================================

*Adversarial Robustness Guarantees for Gaussian Processes* has ten experiments. Each is a command
here; this page runs one of them at its quick size, and two on a table. The full runs, with every
claim of the paper beside what we found, are in the results.
"""

# %%
# Which experiments there are
# ---------------------------

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.image
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

folder = Path(tempfile.mkdtemp())


def gpcert_command(*arguments: str) -> str:
    """What the command prints."""
    program = Path(sys.executable).with_name("gpcert")
    environment = {"cwd": folder, "capture_output": True, "text": True}
    result = subprocess.run([program, *arguments], **environment, check=True)
    return result.stdout


print(gpcert_command("reproduce", "--list"))

# %%
# Safety: how far an attack misses the worst case
# -----------------------------------------------
# Around one point the proved bounds of the prediction grow with the radius (solid); the attack
# GPFGS (with crosses) is what the gradient finds. Where the attack stays above the threshold while
# the bounds cross it, a test by attacks says "safe", wrongly.

print(gpcert_command("reproduce", "safety", "--quick", "--output", "results"))

# %%


def show(name: str) -> None:
    """The figures that an experiment wrote."""
    for path in sorted((folder / name).glob("*.png")):
        image = matplotlib.image.imread(path)
        height, width = image.shape[:2]
        axes = plt.figure(figsize=(9.0, 9.0 * height / width)).add_axes((0.0, 0.0, 1.0, 1.0))
        axes.imshow(image)
        axes.set_axis_off()
        plt.show()


show("results/safety")

# %%
# The paper's figures and ours
# ----------------------------
# What each figure of the paper shows, and ours from the full runs on the same data.
#
# Fig. 2, safety. The paper: bounds of the probability grow with the radius, and cross the threshold
# where the attack does not. Ours: the attack misses 39 of 95 points on Synthetic2D and 10 of 27 on
# MNIST38.
#
# .. image:: /results/safety/curves.png
#    :alt: Bounds of the probability against the radius, five data sets
#
# Fig. 3, robustness. The paper: expectation propagation is more robust than Laplace's method, and
# robustness grows with the epochs. Ours: the first holds by the median on all data but SPAM; the
# second does not.
#
# .. image:: /results/robustness/boxes.png
#    :alt: Delta of Laplace and EP by epochs, five data sets
#
# Fig. 4, sparse models. The paper: FIC and VAR become more robust with more training points. Ours:
# on MNIST38 they do (VAR by the mean), on F-MNIST they do not.
#
# .. image:: /results/sparse/boxes.png
#    :alt: Delta and accuracy of sparse models by training and inducing points
#
# Fig. 5, global interpretability. The paper: LIME's signs are the opposite of the global relation
# on Synthetic2D. Ours: so are those of the published scripts' LIME, with shift 5.
#
# .. image:: /results/interpretability-global/means.png
#    :alt: Mean effects of features, and LIME's weights
#
# Fig. 6, images. The paper: LIME needs more pixels to flip a decision. Ours: at five of six images
# with the scripts' LIME.
#
# .. image:: /results/interpretability-images/images.png
#    :alt: Effects of pixels, smallest gaps, adversarial images

# %%
# On a table of one's own
# -----------------------
# The same questions for any CSV file: its columns are the features, one of them is the target.

table = load_diabetes(as_frame=True, scaled=False).frame.iloc[:120]
table["high"] = (table.pop("target") > 140).map({True: "high", False: "low"})
table.to_csv(folder / "own.csv", index=False)
options = ["--on", "own.csv", "--target", "high", "--output", "own"]
print(gpcert_command("reproduce", "robustness", *options))
show("own/robustness")

# %%
# How robust each model is after 10, 40 and 100 epochs of training: delta is how far the probability
# can move within the radius.

print(gpcert_command("reproduce", "interpretability-global", *options))
show("own/interpretability-global")

# %%
# Mean effects of the features over the table, with proved intervals, beside those of LIME.
