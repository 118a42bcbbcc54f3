"""What each thing that is found of a point is worth for met, missed and contradicted.

Fitted by `python -m tests.support.weights`, never typed.
"""

from __future__ import annotations

from collections.abc import Mapping

WEIGHTS: Mapping[str, tuple[float, float, float]] = {
    "always": (-2.09, 4.08, -1.99),
    "evidence: met": (0.85, -0.83, -0.03),
    "evidence: half met": (0.65, -0.62, -0.04),
    "evidence: unsure": (0.60, -0.89, 0.29),
    "evidence: contradicted": (0.07, -1.50, 1.43),
    "evidence: contradicted, as is surmised": (-0.67, -0.35, 1.02),
    "compared: met": (0.52, -0.38, -0.14),
    "compared: contradicted": (-0.42, -0.11, 0.53),
    "believed: half met": (-0.20, -0.10, 0.30),
    "believed: contradicted": (-0.06, -0.61, 0.66),
    "believed: unsure": (-0.39, 0.27, 0.12),
    "like right": (1.00, -0.61, -0.39),
    "like half": (1.50, -0.00, -1.49),
    "like wrong": (-1.26, -0.17, 1.43),
    "more like right than wrong": (1.74, -1.20, -0.55),
    "more like wrong than right": (-0.30, -1.19, 1.49),
    "near": (2.94, -3.81, 0.87),
    "near, of the nearest point": (0.79, -2.00, 1.21),
    "lean": (2.24, 0.18, -2.42),
    "lean, without evidence": (1.31, 0.22, -1.53),
    "lean of the evidence": (4.20, 1.37, -5.57),
    "others met by evidence": (1.05, -0.20, -0.85),
    "others contradicted by evidence": (0.06, 0.73, -0.79),
    "others believed met": (1.30, -0.50, -0.80),
    "others believed contradicted": (-0.55, -0.43, 0.97),
    "others like right": (0.29, 0.30, -0.59),
    "others like wrong": (0.01, -0.46, 0.45),
    "others like wrong, without evidence": (-0.77, 0.74, 0.03),
}
