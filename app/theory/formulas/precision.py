"""Number formats, loss scaling and updates that vanish."""

from __future__ import annotations

from math import frexp

from app.theory import number_formats as formats
from app.theory.formulas.latex import over, power, two_to
from app.theory.formulas.registry import Formula, Input, Where
from app.theory.formulas.shared import Inputs
from app.units import latex_number

_SOURCES = "IEEE 754-2019; Kalamkar et al. 2019 (bf16); Micikevicius et al. 2022 (FP8); OCP Microscaling 1.0 (FP4)"
_MIXED = "Micikevicius et al. 2018 (Mixed Precision Training), section 3"
FORMAT = Input("number_format", "Format", "", choices=tuple(formats.FORMATS), default="bf16")
GRADIENT_FORMAT = Input("number_format", "Format", "", choices=tuple(formats.FORMATS), default="fp16")
VALUE = Input("value", "Value", "x", minimum=0, maximum=3e38)
WEIGHT = Input("weight", "Weight", "w", minimum=0, maximum=3e38)
SCALE = Input("loss_scale", "Loss scale", "S", minimum=2.0**-24, maximum=2.0**40, default=65536.0)
SURVIVES = ("min-subnormal", "min-normal", "rounds-to-zero")


def _exponent(value: float) -> int:
    """⌊log₂⌋ of a value above 0."""
    return frexp(value)[1] - 1


def _format_constants(inputs: Inputs) -> dict[str, float]:
    """Bits of exponent and mantissa, and the limits."""
    record = formats.FORMATS[inputs["number_format"]]
    spacing = formats.spacing(record.max, record.name)
    return {
        "e": record.exponent_bits,
        "m": record.mantissa_bits,
        "k": record.max / spacing,
        r"\Delta": spacing,
        r"x_\text{max}": record.max,
        r"x_\text{min}": record.min_normal,
        r"x_\text{sub}": record.min_subnormal,
    }


def _spacing_at(symbol: str, name: str) -> Where:
    return lambda inputs: {symbol: formats.spacing(inputs[name], inputs["number_format"])}


def _held_weight(inputs: Inputs) -> float:
    return formats.rounded(inputs["weight"], inputs["number_format"])


def _limit_latex(inputs: Inputs) -> tuple[str, str]:
    record = formats.FORMATS[inputs["number_format"]]
    bits, lowest = record.mantissa_bits, record.smallest_exponent
    return {
        "max": (r"k\,\Delta", _max_latex(record)),
        "min-normal": (two_to("2 - 2^{e-1}"), two_to(lowest)),
        "min-subnormal": (two_to("2 - 2^{e-1} - m"), two_to(f"{lowest} - {bits}")),
        "epsilon": (two_to("-m"), two_to(-bits)),
    }[inputs["asked"]]


def _max_latex(record: formats.NumberFormat) -> str:
    """The largest number as a mantissa times its spacing: 2047 × 2^5 in fp16."""
    step = formats.spacing(record.max, record.name)
    return rf"{latex_number(record.max / step)} \times {two_to(_exponent(step))}"


def _spacing_latex(inputs: Inputs) -> tuple[str, str]:
    step = _exponent(formats.spacing(inputs["value"], inputs["number_format"]))
    record = formats.FORMATS[inputs["number_format"]]
    exponent = "2 - 2^{e-1}" if inputs["value"] < record.min_normal else r"\lfloor\log_2 x\rfloor"
    return two_to(f"{exponent} - m"), two_to(f"{step + record.mantissa_bits} - {record.mantissa_bits}")


def _rounded_latex(inputs: Inputs) -> tuple[str, str]:
    step = two_to(_exponent(formats.spacing(inputs["value"], inputs["number_format"])))
    steps = over(latex_number(inputs["value"]), step)
    return r"\text{round}\left(\frac{x}{\Delta}\right)\Delta", rf"\text{{round}}\left({steps}\right) \times {step}"


def _round_up_latex(inputs: Inputs) -> tuple[str, str]:
    step = two_to(_exponent(formats.spacing(inputs["value"], inputs["number_format"])))
    steps = over(latex_number(inputs["value"]), step)
    return (
        r"\frac{x}{\Delta} - \left\lfloor\frac{x}{\Delta}\right\rfloor",
        rf"{steps} - \left\lfloor{steps}\right\rfloor",
    )


def _updated_latex(inputs: Inputs) -> tuple[str, str]:
    weight, update = latex_number(inputs["weight"]), latex_number(inputs["update"])
    return r"\text{fl}(\text{fl}(w) + u)", rf"\text{{fl}}(\text{{fl}}({weight}) + {update})"


def _threshold_latex(inputs: Inputs) -> tuple[str, str]:
    half = formats.swallow_threshold(inputs["weight"], inputs["number_format"])
    return r"\frac{\Delta(w)}{2}", over(two_to(_exponent(half) + 1), "2")


def _smallest_latex(inputs: Inputs) -> tuple[str, str]:
    symbol = {"min-subnormal": r"x_\text{sub}", "min-normal": r"x_\text{min}", "rounds-to-zero": r"x_\text{sub}/2"}
    limit = formats.smallest_gradient(1.0, inputs["number_format"], inputs["asked"])
    return over(symbol[inputs["asked"]], "S"), over(two_to(_exponent(limit)), latex_number(inputs["loss_scale"]))


def _largest_latex(inputs: Inputs) -> tuple[str, str]:
    limit = formats.FORMATS[inputs["number_format"]].max
    return over(r"x_\text{max}", "S"), over(latex_number(limit), latex_number(inputs["loss_scale"]))


def _scaled_latex(inputs: Inputs) -> tuple[str, str]:
    scale, gradient = latex_number(inputs["loss_scale"]), latex_number(inputs["gradient"])
    return over(r"\text{fl}(g\,S)", "S"), over(rf"\text{{fl}}({gradient} \times {scale})", scale)


def _dynamic_latex(inputs: Inputs) -> tuple[str, str]:
    grown = rf"\lfloor {inputs['good_steps']} / 2000 \rfloor"
    values = rf"{latex_number(inputs['initial'])} \times {power('0.5', inputs['overflows'])} \times {two_to(grown)}"
    return r"S_0 \times 0.5^{o} \times 2^{\lfloor i / 2000 \rfloor}", values


def _tensor_scale_latex(inputs: Inputs) -> tuple[str, str]:
    limit = formats.FORMATS[inputs["number_format"]].max
    return over(r"x_\text{max}", r"\max|x|"), over(latex_number(limit), latex_number(inputs["largest_magnitude"]))


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F42",
        "format_limit",
        "Limits of a number format",
        formats.format_limit,
        (FORMAT, Input("asked", "Asked for", "", choices=formats.PROPERTIES, default="max")),
        "count",
        "",
        _limit_latex,
        _SOURCES,
        "e exponent and m mantissa bits; Δ is the spacing at the largest number, k its mantissa. Epsilon is the "
        "spacing at 1.",
        _format_constants,
        example={"number_format": "fp32", "asked": "max"},
    ),
    Formula(
        "F42",
        "format_spacing",
        "Spacing of a format at a value",
        formats.spacing,
        (VALUE, FORMAT),
        "count",
        "",
        _spacing_latex,
        _SOURCES,
        "Upwards from the value; constant below the smallest normal number.",
        _format_constants,
        example={"value": 1.5},
    ),
    Formula(
        "F42",
        "format_rounded",
        "A value as a format holds it",
        formats.rounded,
        (VALUE, FORMAT),
        "count",
        "",
        _rounded_latex,
        _SOURCES,
        "To nearest, ties to even, with subnormals; some hardware flushes those to 0. Values beyond the largest number "
        "are refused: they become infinity or NaN.",
        _spacing_at(r"\Delta", "value"),
        example={"value": 2049, "number_format": "fp16"},
    ),
    Formula(
        "F43",
        "smallest_gradient",
        "Smallest gradient that survives loss scaling",
        formats.smallest_gradient,
        (SCALE, GRADIENT_FORMAT, Input("asked", "Limit", "", choices=SURVIVES, default="min-subnormal")),
        "count",
        "",
        _smallest_latex,
        _MIXED,
        "Loss scaling is against underflow; it brings overflow nearer. bf16 has the range of fp32 and does without.",
        _format_constants,
        example={"loss_scale": 1024},
    ),
    Formula(
        "F43",
        "largest_gradient",
        "Largest gradient that survives loss scaling",
        formats.largest_gradient,
        (SCALE, GRADIENT_FORMAT),
        "count",
        "",
        _largest_latex,
        _MIXED,
        "Beyond it the scaled gradient overflows: a dynamic scale skips the step and halves itself.",
        _format_constants,
        example={"loss_scale": 65536},
    ),
    Formula(
        "F43",
        "scaled_gradient",
        "A gradient after loss scaling",
        formats.scaled_gradient,
        (Input("gradient", "True gradient", "g", minimum=0, maximum=1e30), SCALE, GRADIENT_FORMAT),
        "count",
        "",
        _scaled_latex,
        _MIXED,
        "fl rounds to the format, once; unscaling happens in fp32.",
        example={"gradient": 1e-7, "loss_scale": 1024},
    ),
    Formula(
        "F43",
        "dynamic_loss_scale",
        "A dynamic loss scale",
        formats.dynamic_loss_scale,
        (
            Input("good_steps", "Steps since without overflow", "i", minimum=0, maximum=100_000, integer=True),
            Input("overflows", "Overflows before", "o", minimum=0, maximum=100, integer=True, default=0),
            Input("initial", "Initial scale", "S_0", minimum=1, maximum=2.0**40, default=65536.0),
        ),
        "count",
        "",
        _dynamic_latex,
        "PyTorch documentation, torch.amp.GradScaler",
        "PyTorch's defaults: ×2 every 2,000 good steps, ×½ at each overflow, whose step is skipped.",
        example={"good_steps": 5999},
    ),
    Formula(
        "F43",
        "tensor_scale",
        "Scale of a tensor for FP8",
        formats.tensor_scale,
        (
            Input("largest_magnitude", "Largest magnitude", r"\max|x|", minimum=1e-30, maximum=1e30),
            Input("number_format", "Format", "", choices=tuple(formats.FORMATS), default="fp8-e4m3"),
        ),
        "count",
        "",
        _tensor_scale_latex,
        "Micikevicius et al. 2022 (FP8 Formats for Deep Learning), section 3",
        "Per tensor or per block; recipes use past maxima or powers of two.",
        _format_constants,
        example={"largest_magnitude": 3.5},
    ),
    Formula(
        "F44",
        "updated_weight",
        "A weight after its update",
        formats.updated_weight,
        (WEIGHT, Input("update", "Update", "u", minimum=0, maximum=3e38), FORMAT),
        "count",
        "",
        _updated_latex,
        _MIXED,
        "fl rounds to the format, in which the weight is kept; an fp32 master copy or stochastic rounding keeps small "
        "updates.",
        example={"weight": 0.02, "update": 0.0001},
    ),
    Formula(
        "F44",
        "swallow_threshold",
        "Updates below this are lost",
        formats.swallow_threshold,
        (WEIGHT, FORMAT),
        "count",
        "",
        _threshold_latex,
        _MIXED,
        "Half the weight's spacing; a tie is lost where the weight's last bit is 0. A decrease from a power of two is "
        "lost below half of it.",
        lambda inputs: {r"\Delta(w)": formats.spacing(_held_weight(inputs), inputs["number_format"])},
        example={"weight": 1.5},
    ),
    Formula(
        "F44",
        "round_up_probability",
        "How often stochastic rounding goes up",
        formats.round_up_probability,
        (VALUE, FORMAT),
        "fraction",
        "%",
        _round_up_latex,
        "Gupta et al. 2015, section 3",
        "So the mean of many roundings is the value.",
        _spacing_at(r"\Delta", "value"),
        example={"value": 0.1},
    ),
)
