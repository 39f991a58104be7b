"""Interleaved series of figures: ours, the peer's, and the peer's again, which tells the noise."""
import statistics

ORDER = ["ours", "peer", "again"]


def interleaved(rounds, measure):
    """`measure(who)` called for ours, the peer and the peer again, `rounds` times each, in turn and in every order."""
    series, order = {who: [] for who in ORDER}, ORDER
    for _ in range(rounds):
        for who in order:
            series[who].append(measure(who))
        order = order[1:] + order[:1]
    return series


def median(values):
    return statistics.median(values)


def ratio(series):
    """Median of ours over the median of all of the peer's figures."""
    return median(series["ours"]) / median(series["peer"] + series["again"])


def noise(series):
    """How far the peer is from itself: the ratio of its two medians, and not less than the standard error of their
    ratio as the spread of the single figures gives it (median absolute deviation; Huber, Robust Statistics, 1981)."""
    both = series["peer"] + series["again"]
    centre = median(both)
    spread = 1.4826 * median([abs(value - centre) for value in both]) / centre
    # The standard error of a median is 1.2533 spreads over the root of its count; two medians are compared.
    error = 1.2533 * spread * (2 / len(series["peer"])) ** 0.5
    return max(abs(1 - median(series["again"]) / median(series["peer"])), error)


def conclude(name, worst, middle, bar, met):
    """The last line of a benchmark, and its exit code."""
    print(f"{name}: worst={worst:.3f} median={middle:.3f} bar={bar:.2f} {'met' if met else 'not met'}")
    return 0 if met else 1
