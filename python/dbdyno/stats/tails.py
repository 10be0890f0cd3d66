"""Tail probabilities as base 10 logarithms, so that p values below the range of a float keep their size.

With millions of waits every p value underflows: Welch's test on the 4,000,000 waits per arm of the flash-log post has
log10 p = -15,046.8, where a library prints 0. Each function uses the exact distribution while p is above the underflow,
and a series or continued fraction for smaller p.
"""

from __future__ import annotations

import math

LN10 = math.log(10.0)
_SAFE = 1e-280


def t_log10_p(t: float, df: float) -> float:
    """Return log10 of the two-sided p of Student's t; NaN if `t` or `df` is NaN or `df` is not above 0.

    P(|T| > t) = I_x(df/2, 1/2) with x = df / (df + t^2). For tiny p the incomplete beta function is computed by its
    continued fraction (DLMF 8.17.22), with the leading factor kept as a logarithm.
    """
    from scipy import special

    if math.isnan(t) or math.isnan(df) or df <= 0:
        return math.nan
    if math.isinf(t):
        return -math.inf
    p = 2.0 * float(special.stdtr(df, -abs(t)))
    if p > _SAFE:
        return min(math.log10(p), 0.0)
    # log x is computed by log1p because x is close to 1 when df is in the millions.
    log_x = -math.log1p(t * t / df)
    log_rest = 2 * math.log(abs(t)) - math.log(df) + log_x
    return _beta_log10(df / 2.0, 0.5, log_x, log_rest)


def f_log10_p(f: float, between: float, within: float) -> float:
    """Return log10 of the upper-tail p of Fisher's F with `between` and `within` degrees of freedom; NaN if undefined.

    P(F > f) = I_x(within/2, between/2) with x = within / (within + between f).
    """
    from scipy import special

    if math.isnan(f) or math.isnan(within) or min(between, within) <= 0:
        return math.nan
    if math.isinf(f):
        return -math.inf
    if f <= 0:
        return 0.0
    p = float(special.fdtrc(between, within, f))
    if p > _SAFE:
        return min(math.log10(p), 0.0)
    odds = between * f / within
    log_x = -math.log1p(odds)
    return _beta_log10(within / 2.0, between / 2.0, log_x, math.log(odds) + log_x)


def chi2_log10_p(x: float, df: float) -> float:
    """Return log10 of the upper-tail p of chi squared with `df` degrees of freedom; NaN if undefined.

    Tiny p are computed by the continued fraction of the incomplete gamma function (DLMF 8.9.2, in the contracted form
    of its even part).
    """
    from scipy import special

    if math.isnan(x) or df <= 0:
        return math.nan
    p = float(special.chdtrc(df, max(x, 0.0)))
    if p > _SAFE:
        return min(math.log10(p), 0.0)
    a, z = df / 2.0, x / 2.0
    b = z + 1.0 - a
    c, d = 1e300, 1.0 / b
    value = d
    for step in range(1, 100_000):
        term = -step * (step - a)
        b += 2.0
        d = 1.0 / ((term * d + b) or 1e-300)
        c = (b + term / c) or 1e-300
        value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return (a * math.log(z) - z - float(special.gammaln(a)) + math.log(value)) / LN10


def _beta_log10(a: float, b: float, log_x: float, log_rest: float) -> float:
    """Return log10 I_x(a, b) from log x and log (1 - x), for values that underflow as a float."""
    from scipy import special

    front = a * log_x + b * log_rest - math.log(a) - float(special.betaln(a, b))
    return (front - math.log(_beta_fraction(a, b, math.exp(log_x)))) / LN10


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return 1 + d1/(1 + d2/(1 + ...)) of DLMF 8.17.22 by Lentz's method; it converges for x < (a+1)/(a+b+2)."""
    tiny = 1e-300
    value, c, d = 1.0, 1.0, 0.0
    for step in range(1, 200_000):
        m = step // 2
        if step % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 / ((1.0 + term * d) or tiny)
        c = (1.0 + term / c) or tiny
        value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def normal_log10_p(z: float) -> float:
    """Return log10 of the two-sided p of a standard normal value."""
    from scipy import special

    return min((math.log(2.0) + float(special.log_ndtr(-abs(z)))) / LN10, 0.0)


def kolmogorov_log10_p(d: float, n: float, m: float) -> float:
    """Return log10 of the asymptotic two-sided p of the Kolmogorov-Smirnov D of samples of `n` and `m` values.

    2 sum (-1)^(k-1) exp(-2 k^2 l^2) with l = D sqrt(n m / (n + m)) (Kolmogorov 1933). For tiny p only the first term is
    used.
    """
    from scipy import special

    scaled = d * math.sqrt(n / (n + m) * m)
    p = float(special.kolmogorov(scaled))
    if p > _SAFE:
        return min(math.log10(p), 0.0)
    return (math.log(2.0) - 2.0 * scaled * scaled) / LN10
