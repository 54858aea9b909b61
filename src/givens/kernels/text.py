"""Numbers out of delimited text, correctly rounded, as fast as the bytes come.

A decimal number is w·10^q with a whole number w of at most 19 digits. Lemire's method ("Number parsing at a
gigabyte per second", 2021) multiplies w by the first 128 bits of 5^q and reads the 53 bits of the nearest
double off the product. It uses whole numbers only, so that no relaxed floating-point arithmetic can touch
the result. What it does not cover (more digits, subnormal numbers, `inf`, words) is handed back as an
*awkward* field, a place in the bytes, for Python to judge.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel

SKIP, NUMBER, TEXT = 0, 1, 2
MORE, FULL, RAGGED, QUOTE = 0, 1, 2, 3

SMALLEST, LARGEST = -300, 300


def _powers_of_five() -> np.ndarray:
    """Return the first 128 bits of each 5^q, as two words: cut off for q >= 0, rounded up for q < 0."""
    table = np.empty((LARGEST - SMALLEST + 1, 2), np.uint64)
    for q in range(SMALLEST, LARGEST + 1):
        power = 5 ** abs(q)
        if q < 0:
            bits = 2 * power.bit_length() + 128
            # Up to q = -27 the rounded-up reciprocal has exactly 128 bits; below, it is cut to them
            # afterwards.
            bits = (power - 1).bit_length() + 127 if q >= -27 else bits
            power = 2**bits // power + 1
        excess = power.bit_length() - 128
        power = power >> excess if excess > 0 else power << -excess
        table[q - SMALLEST] = power >> 64, power & (2**64 - 1)
    return table


POWERS = _powers_of_five()


@inline
def _high(a: np.uint64, b: np.uint64) -> np.uint64:
    """Return the upper 64 bits of the product of two words."""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low)
    return a1 * b1 + (middle >> half) + (other >> half)


@inline
def _double(w: np.uint64, q: int) -> tuple[np.uint64, bool]:
    """Return (the bits of the double nearest to w·10^q, whether they could be found)."""
    found = True
    bits = np.uint64(0)
    if w != np.uint64(0):
        if q < SMALLEST or q > LARGEST:
            found = False
        else:
            zeros = 0
            for step in (32, 16, 8, 4, 2, 1):
                if (w >> np.uint64(64 - step)) == np.uint64(0):
                    w = w << np.uint64(step)
                    zeros += step
            first = POWERS[q - SMALLEST, 0]
            high = _high(w, first)
            low = w * first
            if (high & np.uint64(0x1FF)) == np.uint64(0x1FF):
                more = _high(w, POWERS[q - SMALLEST, 1])
                low = low + more
                if more > low:
                    high = high + np.uint64(1)
            upper = high >> np.uint64(63)
            shift = upper + np.uint64(9)
            mantissa = high >> shift
            exponent = ((217706 * q) >> 16) + 63 + np.int64(upper) - zeros + 1023
            if low == np.uint64(0xFFFFFFFFFFFFFFFF) and (q < -27 or q > 55):
                found = False
            # A product that ends exactly half-way goes to the even neighbour; only these powers can produce
            # one.
            halfway = low <= np.uint64(1) and (mantissa & np.uint64(3)) == np.uint64(1)
            if halfway and q >= -4 and q <= 23 and (mantissa << shift) == high:
                mantissa = mantissa & np.uint64(0xFFFFFFFFFFFFFFFE)
            mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
            if mantissa >= np.uint64(1 << 53):
                mantissa = np.uint64(1 << 52)
                exponent += 1
            if exponent <= 0 or exponent >= 2047:
                found = False
            bits = (mantissa & np.uint64((1 << 52) - 1)) | (np.uint64(exponent) << np.uint64(52))
    return bits, found


@inline
def _number(data: np.ndarray, start: int, stop: int, decimal: int) -> tuple[np.uint64, bool]:
    """Read data[start:stop] as a number: (bits of the double, whether it is one that can be read here)."""
    at = start
    negative = False
    if at < stop and (data[at] == 45 or data[at] == 43):
        negative = data[at] == 45
        at += 1
    w = np.uint64(0)
    digits = 0  # significant ones
    seen = 0
    q = 0
    point = False
    while at < stop:
        byte = data[at]
        if byte >= 48 and byte <= 57:
            seen += 1
            if digits > 0 or byte != 48:
                digits += 1
            if digits <= 19:
                w = w * np.uint64(10) + np.uint64(byte - 48)
            if point:
                q -= 1
        elif byte == decimal and not point:
            point = True
        else:
            break
        at += 1
    good = seen > 0 and digits <= 19
    if good and at < stop:
        if data[at] == 101 or data[at] == 69:
            at += 1
            minus = False
            if at < stop and (data[at] == 45 or data[at] == 43):
                minus = data[at] == 45
                at += 1
            e = 0
            first = at
            while at < stop and data[at] >= 48 and data[at] <= 57 and e < 100000:
                e = e * 10 + int(data[at] - 48)
                at += 1
            good = at > first
            q = q - e if minus else q + e
        good = good and at == stop
    bits, found = _double(w, q)
    if negative:
        bits = bits | (np.uint64(1) << np.uint64(63))
    return bits, good and found


@kernel
def parse(
    data: np.ndarray,
    start: int,
    final: bool,
    separator: int,
    decimal: int,
    kinds: np.ndarray,
    targets: np.ndarray,
    out: np.ndarray,
    spans: np.ndarray,
    awkward: np.ndarray,
) -> tuple[int, int, int, int, int, int]:
    """Parse whole records from data[start:].

    `kinds` and `targets` say for each field whether it is left out, a number for column `targets` of `out`
    (the doubles' bits), or text whose place goes to `spans`. `separator` 32 means any run of blanks and tabs.
    Returns (records, where the next one starts, lines passed, how it ended, fields seen in the record at
    fault, awkward fields).
    """
    size = data.shape[0]
    fields = kinds.shape[0]
    blanks = separator == 32
    records = 0
    lines = 0
    odd = 0
    at = start
    while at < size:
        if records == out.shape[0]:
            return records, at, lines, FULL, 0, odd
        begin = at
        odd_before = odd
        field = 0
        passed = 0
        quoted = False
        while True:
            if blanks:
                while at < size and (data[at] == 32 or data[at] == 9):
                    at += 1
            else:
                while at < size and data[at] == 32 and data[at] != separator:
                    at += 1
            left = at
            if at < size and data[at] == 34:
                quoted = True
                at += 1
                while at < size and (data[at] != 34 or (at + 1 < size and data[at + 1] == 34)):
                    if data[at] == 34:
                        at += 1
                    if data[at] == 10:
                        passed += 1
                    at += 1
                if at >= size:
                    if final:
                        return records, begin, lines, QUOTE, field, odd_before
                    return records, begin, lines, MORE, 0, odd_before
                at += 1
            while at < size and data[at] != separator and data[at] != 10 and data[at] != 13:
                if blanks and data[at] == 9:
                    break
                at += 1
            if at >= size and not final:
                return records, begin, lines, MORE, 0, odd_before
            right = at
            while right > left and data[right - 1] == 32:
                right -= 1
            if right - left >= 2 and data[left] == 34 and data[right - 1] == 34:
                left += 1
                right -= 1
            ended = at >= size or data[at] == 10 or data[at] == 13
            if blanks and ended and right == left and field > 0:
                break
            if field < fields:
                if kinds[field] == NUMBER:
                    bits, good = _number(data, left, right, decimal)
                    if good:
                        out[records, targets[field]] = bits
                    else:
                        if odd == awkward.shape[0]:
                            return records, begin, lines, FULL, 0, odd_before
                        awkward[odd, 0] = records
                        awkward[odd, 1] = field
                        awkward[odd, 2] = left
                        awkward[odd, 3] = right
                        odd += 1
                elif kinds[field] == TEXT:
                    spans[records, targets[field], 0] = left
                    spans[records, targets[field], 1] = right
            field += 1
            if ended:
                break
            at += 1
        if at < size:
            if data[at] == 13 and at + 1 >= size and not final:
                return records, begin, lines, MORE, 0, odd_before
            if data[at] == 13 and at + 1 < size and data[at + 1] == 10:
                at += 1
            at += 1
        # A line of nothing, or of blanks, is no record.
        if field == 1 and right == left and not quoted:
            odd = odd_before
            lines += 1 + passed
            continue
        if field != fields:
            return records, begin, lines, RAGGED, field, odd_before
        records += 1
        lines += 1 + passed
    return records, at, lines, MORE, 0, odd
