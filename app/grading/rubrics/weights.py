"""What each thing that is found of a point is worth for met, missed and contradicted.

Fitted by `python -m tests.support.weights`, never typed.
"""

from __future__ import annotations

from collections.abc import Mapping

WEIGHTS: Mapping[str, tuple[float, float, float]] = {
    "always": (-2.09, 4.09, -2.00),
    "evidence: met": (0.85, -0.83, -0.03),
    "evidence: half met": (0.66, -0.62, -0.04),
    "evidence: unsure": (0.62, -0.88, 0.27),
    "evidence: contradicted": (0.07, -1.50, 1.43),
    "evidence: contradicted, as is surmised": (-0.67, -0.36, 1.02),
    "compared: met": (0.51, -0.38, -0.13),
    "compared: contradicted": (-0.43, -0.10, 0.53),
    "believed: half met": (-0.20, -0.10, 0.30),
    "believed: contradicted": (-0.05, -0.61, 0.66),
    "believed: unsure": (-0.41, 0.26, 0.15),
    "like right": (1.02, -0.61, -0.41),
    "like half": (1.50, -0.00, -1.49),
    "like wrong": (-1.28, -0.18, 1.45),
    "more like right than wrong": (1.71, -1.20, -0.51),
    "more like wrong than right": (-0.31, -1.20, 1.50),
    "near": (2.94, -3.81, 0.88),
    "near, of the nearest point": (0.79, -2.00, 1.21),
    "lean": (2.24, 0.18, -2.42),
    "lean, without evidence": (1.30, 0.22, -1.52),
    "lean of the evidence": (4.22, 1.37, -5.59),
    "others met by evidence": (1.04, -0.20, -0.85),
    "others contradicted by evidence": (0.07, 0.73, -0.79),
    "others believed met": (1.31, -0.50, -0.81),
    "others believed contradicted": (-0.54, -0.43, 0.97),
    "others like right": (0.29, 0.30, -0.59),
    "others like wrong": (0.01, -0.45, 0.45),
    "others like wrong, without evidence": (-0.78, 0.74, 0.03),
}
