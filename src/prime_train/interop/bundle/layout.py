"""The files of a bundle. All are below one folder, which has the name of the run."""

FORMAT = "prime-train-bundle-1"
README, RUN, CONFIG, CODE, METRICS, PAGE = (
    "README.md",
    "run.json",
    "config.yaml",
    "code.tar.gz",
    "metrics.csv",
    "page.html",
)
MANIFEST, SUMS = "checkpoint-manifest.json", "SHA256SUMS"
SIGNATURE, NAMESPACE = "SHA256SUMS.sig", "prime-train-bundle"
"""The signature of the hashes, in the format of ssh-keygen, and what it is made for."""
THROUGHPUT, RESULTS, OBJECTS = "throughput.csv", "results.json", "checkpoint-objects.csv"
CURVES, MACHINES, WEIGHTS, SAFETENSORS = "curves", "machines", "checkpoint", "weights"
"""Folders: the curves, what the machines said of themselves, the files of the checkpoint, and the model's
weights from them.
"""
CODE_FOLDER = "code"
"""The folder that the config names; the code has to be unpacked there."""
REQUIRED = (README, RUN, CONFIG, METRICS, PAGE)
