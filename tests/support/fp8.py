"""FP8 recipes written out in numpy, from their definitions: formats, scales, casts, and the products of a linear layer.

Formats: Micikevicius et al. 2022, FP8 Formats for Deep Learning. Scales: torchao's float8_utils (tensorwise, rowwise,
rowwise_with_gw_hp), DeepSeek-V3 (blocks), OCP Microscaling 1.0 with the scale rounded up (mxfp8).
"""

import numpy as np

# name -> (mantissa bits, exponent bias, largest number)
FORMATS = {"e4m3fn": (3, 7, 448.0), "e5m2": (2, 15, 57344.0)}


def decode(codes, format):
    """The values of uint8 codes, f32."""
    mantissa, bias, largest = FORMATS[format]
    codes = np.asarray(codes, np.uint8).astype(np.int64)
    exponent, digits = (codes & 0x7F) >> mantissa, codes & ((1 << mantissa) - 1)
    normal = np.ldexp(1.0 + digits / (1 << mantissa), exponent - bias)
    values = np.where(exponent == 0, np.ldexp(digits / (1 << mantissa), 1 - bias), normal)
    if format == "e5m2":
        values = np.where((codes & 0x7F) == 0x7C, np.inf, values)
    values = np.where(values > largest, np.where(np.isinf(values), np.inf, np.nan), values)
    return np.where(codes >= 0x80, -values, values).astype(np.float32)


def encode(x, format):
    """The uint8 codes of f32 values: clamped to the largest number, nearest, ties to even; NaN stays NaN."""
    largest = FORMATS[format][2]
    codes = np.arange(0x80, dtype=np.uint8)
    table = decode(codes, format)
    table, codes = table[table <= largest].astype(np.float64), codes[table <= largest]
    x = np.asarray(x, np.float32)
    magnitude = np.minimum(np.abs(x.astype(np.float64)), largest)
    magnitude = np.where(np.isnan(magnitude), 0.0, magnitude)
    above = np.clip(np.searchsorted(table, magnitude), 1, len(table) - 1)
    low, high = table[above - 1], table[above]
    takes_high = (magnitude - low > high - magnitude) | ((magnitude - low == high - magnitude) & (codes[above] % 2 == 0))
    result = np.where(takes_high, codes[above], codes[above - 1])
    result = np.where(np.isnan(x), 0x7F, result) | np.where(np.signbit(x), 0x80, 0)
    return result.astype(np.uint8)


def scale(amax, format, rounding, nonfinite="propagate"):
    """The f32 scale of a largest absolute value.

    rounding: "none": f32(largest / max(amax, 1e-12)), divided in f64; "down": the largest power of two not above that;
    "e8m0": 2^-e, 2^e the smallest power of two not below f32(amax / largest), e at least -127.
    """
    amax = np.asarray(amax, np.float32)
    largest = FORMATS[format][2]
    with np.errstate(all="ignore"):
        if rounding == "e8m0":
            quotient = amax / np.float32(largest)
            digits, exponent = np.frexp(quotient.astype(np.float64))
            exponent = np.where(quotient == 0, -127, np.maximum(np.where(digits == 0.5, exponent - 1, exponent), -127))
            result = np.where(np.isfinite(quotient), np.ldexp(1.0, -exponent), np.nan).astype(np.float32)
        else:
            result = (largest / np.maximum(amax.astype(np.float64), 1e-12)).astype(np.float32)
            if rounding == "down":
                result = np.where(np.isnan(result), result, (result.view(np.uint32) & 0x7F800000).view(np.float32))
    if nonfinite == "scale1":
        result = np.where(np.isfinite(amax), result, np.float32(1))
    return result.astype(np.float32)


def bf16(x):
    """Rounded to bf16, nearest, ties to even; as f32."""
    x = np.ascontiguousarray(x, np.float32)
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), x, rounded)


def quantize(x, blocks, format, rounding, nonfinite="propagate"):
    """Codes of `x` (uint8, its shape) and the inverses of its scales (f32): one for each block, of `blocks[d]` elements along
    dimension d."""
    x = np.asarray(x, np.float32)
    parted = x.reshape([part for size, block in zip(x.shape, blocks) for part in (size // block, block)])
    amax = np.abs(parted).max(axis=tuple(range(1, 2 * x.ndim, 2)))
    scales = scale(amax, format, rounding, nonfinite)
    with np.errstate(all="ignore"):
        return encode(x * spread(scales, blocks), format), np.float32(1) / scales


def dequantize(codes, inverse, blocks, format):
    """What codes (uint8) times the inverses of their scales (f32, one for each block) stand for: f64, exact."""
    return decode(codes, format).astype(np.float64) * spread(inverse, blocks)


def spread(scales, blocks):
    """A value for each element of its block."""
    for dim, block in enumerate(blocks):
        scales = np.repeat(scales, block, axis=dim)
    return scales


# recipe -> product -> operand -> (format, elements along what is contracted that share a scale, along the rest, rounding);
# None: all of them. A product that is not there is computed in bf16.
ALL = None


def _alike(gradient_format, contracted, kept, rounding):
    row = {operand: ("e4m3fn", contracted, kept, rounding) for operand in ("activation", "weight")}
    row["gradient"] = (gradient_format, contracted, kept, rounding)
    return {product: row for product in ("output", "input_grad", "weight_grad")}


RECIPES = {
    "tensorwise": _alike("e5m2", ALL, ALL, "none"),
    "rowwise": _alike("e4m3fn", ALL, 1, "down"),
    "rowwise_hp": {
        "output": {"activation": ("e4m3fn", ALL, 1, "down"), "weight": ("e4m3fn", ALL, 1, "down")},
        "input_grad": {"gradient": ("e4m3fn", ALL, 1, "down"), "weight": ("e4m3fn", ALL, ALL, "down")},
    },
    "block128": {
        "output": {"activation": ("e4m3fn", 128, 1, "down"), "weight": ("e4m3fn", 128, 128, "down")},
        "input_grad": {"gradient": ("e4m3fn", 128, 1, "down"), "weight": ("e4m3fn", 128, 128, "down")},
        "weight_grad": {"gradient": ("e4m3fn", 128, 1, "down"), "activation": ("e4m3fn", 128, 1, "down")},
    },
    "mxfp8": _alike("e4m3fn", 32, 1, "e8m0"),
}


def blocks_of(shape, policy, contracted, tokens, groups):
    """The blocks of a matrix: `contracted` is its dimension that is contracted, `tokens` that of tokens or None."""
    blocks = []
    for dim, size in enumerate(shape):
        block = policy[1] if dim == contracted else policy[2]
        blocks.append(block if block is not ALL else size // groups if dim == tokens else size)
    return blocks


# product -> operand -> (dimension of its matrix that is contracted, that of tokens or None)
OPERANDS = {
    "output": {"activation": (1, 0), "weight": (1, None)},
    "input_grad": {"gradient": (1, 0), "weight": (0, None)},
    "weight_grad": {"gradient": (0, 0), "activation": (0, 0)},
}


def read(x, recipe, product, operand, groups=1):
    """The operand, x, g or w as linear_backward has them, as it is multiplied: f64."""
    policy = RECIPES[recipe].get(product, {}).get(operand)
    if policy is None:
        return bf16(x).astype(np.float64)
    contracted, tokens = OPERANDS[product][operand]
    blocks = blocks_of(x.shape, policy, contracted, tokens, groups)
    codes, inverse = quantize(x, blocks, policy[0], policy[3])
    return dequantize(codes, inverse, blocks, policy[0])


def linear_forward(x, w, recipe, groups=1):
    """x Wᵀ of x [T, K], bf16 values, and w [N, K], f32. With `groups` the tokens have scales in so many equal parts."""
    return (read(x, recipe, "output", "activation", groups) @ read(w, recipe, "output", "weight").T).astype(np.float32)


def linear_backward(x, w, g, recipe, groups=1):
    """The gradients of x and w for that of the output, g [T, N], bf16 values."""
    dx = read(g, recipe, "input_grad", "gradient", groups) @ read(w, recipe, "input_grad", "weight")
    dw = read(g, recipe, "weight_grad", "gradient", groups).T @ read(x, recipe, "weight_grad", "activation", groups)
    return dx.astype(np.float32), dw.astype(np.float32)


def case_values():
    """x [256, 256], w [128, 256] (f32), g [256, 128] of the recorded products, x and g bf16 values: with rows of zeros,
    outliers and values near and below the least that scales tell apart. From integers, as training_values."""
    random = np.random.default_rng(11)
    shapes = ((256, 256), (128, 256), (256, 128))
    x, w, g = ((random.integers(-1000, 1001, shape) / 1000).astype(np.float32) for shape in shapes)
    x[:, 3] *= 100
    x[5], x[70:74] = 0, x[70:74] * np.float32(1e-14)
    x[128:160, 40] = 0
    w[5] *= 30
    w[9], w[40:42, 32:64] = 0, 0
    w[60] *= np.float32(1e-30)
    w[64, 0] = 448 / 256 * (1 + 2**-23)  # its scale is just below a power of two
    w[64, 1:] *= np.float32(0.5)
    g *= np.float32(2**-20)
    g[7, 2] = 3
    g[9], g[96:128, 5] = 0, 0
    g[200] *= np.float32(1e-20)
    return bf16(x), w, bf16(g)


def training_values(shapes, samples, length):
    """Weights by name, tokens and targets [samples, length] of a recorded training: from integers, which no version of numpy
    draws otherwise."""
    random = np.random.default_rng(7)
    weights = {}
    for name, shape in shapes.items():
        drawn = (random.integers(-1000, 1001, shape) / 1000).astype(np.float32)
        weights[name] = drawn * np.float32(0.08) if len(shape) > 1 else (
            drawn * np.float32(0.1) + np.float32("bias" not in name))
    tokens, targets = (random.integers(0, 256, (samples, length), dtype=np.int32) for _ in range(2))
    return weights, tokens, targets
