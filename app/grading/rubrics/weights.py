"""What each thing that is found of a point is worth for met, missed and contradicted.

Fitted by `python -m tests.support.weights`, never typed.
"""

from __future__ import annotations

from collections.abc import Mapping

WEIGHTS: Mapping[str, tuple[float, float, float]] = {
    "always": (-2.09, 4.09, -2.00),
    "evidence: met": (0.85, -0.83, -0.03),
    "evidence: half met": (0.65, -0.61, -0.04),
    "evidence: unsure": (0.62, -0.88, 0.27),
    "evidence: contradicted": (0.08, -1.50, 1.43),
    "evidence: contradicted, as is surmised": (-0.66, -0.35, 1.02),
    "compared: met": (0.52, -0.38, -0.13),
    "compared: contradicted": (-0.43, -0.10, 0.53),
    "believed: half met": (-0.20, -0.11, 0.31),
    "believed: contradicted": (-0.06, -0.61, 0.67),
    "believed: unsure": (-0.41, 0.26, 0.15),
    "like right": (1.01, -0.61, -0.40),
    "like half": (1.49, -0.01, -1.48),
    "like wrong": (-1.27, -0.17, 1.45),
    "more like right than wrong": (1.70, -1.21, -0.49),
    "more like wrong than right": (-0.30, -1.19, 1.49),
    "near": (2.95, -3.81, 0.86),
    "near, of the nearest point": (0.79, -2.00, 1.21),
    "lean": (2.23, 0.17, -2.39),
    "lean, without evidence": (1.32, 0.23, -1.55),
    "lean of the evidence": (4.21, 1.36, -5.57),
    "others met by evidence": (1.05, -0.20, -0.85),
    "others contradicted by evidence": (0.06, 0.73, -0.80),
    "others believed met": (1.31, -0.49, -0.81),
    "others believed contradicted": (-0.54, -0.44, 0.98),
    "others like right": (0.28, 0.30, -0.58),
    "others like wrong": (0.01, -0.45, 0.44),
    "others like wrong, without evidence": (-0.78, 0.74, 0.03),
}
