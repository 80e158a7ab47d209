"""Bytes that were flipped, cut, repeated, exchanged or emptied."""


def damaged(rng, data):
    """Flip a bit or some bytes, cut, repeat, exchange or empty."""
    at, other = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    near = rng.choice((at, min(at, 64), min(at, 600)))  # headers are looked at more closely
    ways = (
        lambda: flipped(rng, data, near),
        lambda: flipped(rng, data, near),
        lambda: flipped(rng, flipped(rng, data, at), other),
        lambda: data[:at],
        lambda: data[:at] + bytes(rng.randrange(256) for _ in range(8)) + data[at + 8 :],
        lambda: data[:at] + bytes(other - at) + data[other:],
        lambda: data[:at] + data[other:],
        lambda: data + data[at:other],
        lambda: data[other:] + data[:other],
        lambda: b"",
    )
    return rng.choice(ways)()


def flipped(rng, data, at):
    """Flip a bit of one byte, or of the last."""
    at = min(at, len(data) - 1)
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
