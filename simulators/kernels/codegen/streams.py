"""Random numbers inside kernels: a xoshiro256++ stream per trajectory (Blackman & Vigna 2021).

Every function is plain IEEE arithmetic without fused or reassociated operations, so that a
trajectory is the same bit for bit in a vector lane, in scalar code, and on another machine.
"""

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from simulators.random import GOLDEN

U = np.uint64
_GOLDEN, _M1, _M2 = U(GOLDEN), U(0xBF58476D1CE4E5B9), U(0x94D049BB133111EB)


def _bitcast(result, argument):
    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(result))

    return result(argument), generate


@intrinsic
def as_float(typing, bits):
    """float64 with these bits."""
    return _bitcast(types.float64, types.uint64)


@intrinsic
def as_bits(typing, value):
    """The bits of a float64."""
    return _bitcast(types.uint64, types.float64)


@intrinsic
def lowest(typing, bits):
    """Place of the lowest bit that is set; bits must not be 0."""

    def generate(context, builder, signature, args):
        never_zero = cgutils.true_bit
        return builder.cttz(args[0], never_zero)

    return types.uint64(types.uint64), generate


@njit(nogil=True)
def _mix(z):
    z = (z ^ (z >> U(30))) * _M1
    z = (z ^ (z >> U(27))) * _M2
    return z ^ (z >> U(31))


@njit(nogil=True)
def seed_stream(seed, trajectory, stream, lane):
    """stream[0:4, lane] for this trajectory: `simulators.random.words` with k = 0..3."""
    index = (U(trajectory) + U(1)) * _GOLDEN
    for k in range(4):
        stream[k, lane] = _mix(_mix(seed + (U(k) + U(1)) * _GOLDEN) + index)


@njit(nogil=True)
def next_bits(stream, lane):
    """The next 64 random bits of a stream."""
    s0, s1, s2, s3 = stream[0, lane], stream[1, lane], stream[2, lane], stream[3, lane]
    z = s0 + s3
    bits = ((z << U(23)) | (z >> U(41))) + s0
    z = s1 << U(17)
    s2 ^= s0
    s3 ^= s1
    stream[1, lane] = s1 ^ s2
    stream[0, lane] = s0 ^ s3
    stream[2, lane] = s2 ^ z
    stream[3, lane] = (s3 << U(45)) | (s3 >> U(19))
    return bits


@njit(nogil=True, error_model="numpy")
def unit(bits):
    """Uniform on (0, 1) from 64 bits: (k + 1/2) 2^-52, never 0 and never 1."""
    return as_float((bits >> U(12)) | U(0x3FF0000000000000)) - (1.0 - 2.0**-53)


@njit(nogil=True, error_model="numpy")
def exponential(bits):
    """Exponential with mean 1: -log(unit(bits)) to full precision, with no library call.

    x = 2^e m with m in [1/sqrt 2, sqrt 2), log m = 2 atanh s with s = (m-1)/(m+1), and the minimax
    polynomial of fdlibm's e_log.c: only arithmetic, so LLVM can vectorise a loop around it.
    """
    shifted = as_bits(unit(bits)) + U(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    e = as_float((shifted >> U(52)) | U(0x4330000000000000)) - (2.0**52 + 1023.0)
    m = as_float((shifted & U(0x000FFFFFFFFFFFFF)) + U(0x3FE6A09E667F3BCD))
    s = (m - 1.0) / (m + 1.0)
    y = s * s
    p = 0.1531383769920937332 + y * 0.1479819860511658591
    p = 0.2222219843214978396 + y * (0.1818357216161805012 + y * p)
    p = 0.3999999999940941908 + y * (0.2857142874366239149 + y * p)
    p = y * (0.6666666666666735130 + y * p)
    return -(e * 0.6931471805599453) - (2.0 * s + s * p)


@njit(nogil=True, error_model="numpy")
def poisson(mean, stream, lane):
    """Poisson variate: inversion below 10, Hörmann's transformed rejection (PTRS, 1993) above."""
    if mean <= 0.0:
        return 0.0
    if mean < 10.0:
        mass = np.exp(-mean)
        u = unit(next_bits(stream, lane))
        count = 0.0
        while u > mass and count < 1000.0:
            u -= mass
            count += 1.0
            mass *= mean / count
        return count
    root = np.sqrt(mean)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    scale = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2.0)
    while True:
        u = unit(next_bits(stream, lane)) - 0.5
        v = unit(next_bits(stream, lane))
        us = 0.5 - abs(u)
        k = np.floor((2.0 * a / us + b) * u + mean + 0.43)
        if us >= 0.07 and v <= squeeze:
            return k
        if k < 0.0 or (us < 0.013 and v > us):
            continue
        if np.log(v * scale / (a / (us * us) + b)) <= k * np.log(mean) - mean - _log_gamma(k + 1.0):
            return k


@njit(nogil=True, error_model="numpy")
def _log_gamma(x):
    """log Γ(x) for x >= 1 by Stirling's series after shifting to x >= 10."""
    shift = 0.0
    while x < 10.0:
        shift += np.log(x)
        x += 1.0
    y = 1.0 / (x * x)
    series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x
    return (x - 0.5) * np.log(x) - x + 0.9189385332046727 + series - shift
