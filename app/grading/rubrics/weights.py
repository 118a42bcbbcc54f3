"""What each thing that is found of a point is worth for met, missed and contradicted.

Fitted by `python -m tests.support.weights`, never typed.
"""

from __future__ import annotations

from collections.abc import Mapping

WEIGHTS: Mapping[str, tuple[float, float, float]] = {
    "always": (-2.14, 4.11, -1.97),
    "evidence: met": (0.82, -0.80, -0.02),
    "evidence: half met": (0.81, -0.77, -0.04),
    "evidence: unsure": (0.46, -0.80, 0.34),
    "evidence: contradicted": (0.05, -1.50, 1.44),
    "evidence: contradicted, as is surmised": (-0.68, -0.35, 1.03),
    "compared: met": (0.56, -0.42, -0.15),
    "compared: contradicted": (-0.38, -0.12, 0.51),
    "believed: half met": (-0.40, 0.09, 0.31),
    "believed: contradicted": (-0.06, -0.60, 0.66),
    "believed: unsure": (-0.20, 0.16, 0.04),
    "like right": (0.98, -0.60, -0.38),
    "like half": (1.49, 0.01, -1.50),
    "like wrong": (-1.26, -0.19, 1.45),
    "more like right than wrong": (1.81, -1.24, -0.57),
    "more like wrong than right": (-0.29, -1.20, 1.49),
    "near": (2.96, -3.83, 0.87),
    "near, of the nearest point": (0.83, -2.02, 1.19),
    "lean": (2.21, 0.23, -2.44),
    "lean, without evidence": (1.37, 0.15, -1.51),
    "lean of the evidence": (4.10, 1.50, -5.60),
    "others met by evidence": (1.04, -0.18, -0.85),
    "others contradicted by evidence": (0.01, 0.76, -0.77),
    "others believed met": (1.29, -0.48, -0.80),
    "others believed contradicted": (-0.56, -0.41, 0.97),
    "others like right": (0.29, 0.30, -0.59),
    "others like wrong": (0.02, -0.48, 0.45),
    "others like wrong, without evidence": (-0.76, 0.74, 0.02),
}
