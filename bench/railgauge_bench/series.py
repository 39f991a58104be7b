"""Interleaved series of figures: ours, the peer's, and the peer's again, which tells the noise."""
import random
import statistics

DRAWS = 4000
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


def noise(series, higher):
    """How far below one the ratio would come if ours were the peer too: as many figures as ours has, and as the peer has,
    drawn from all of the peer's, with replacement; 95 of 100 draws are not further below (bootstrap; Efron, Annals of
    Statistics 7, 1979). `higher`: whether higher figures are the better ones."""
    peer, chance = series["peer"] + series["again"], random.Random(0)
    draw = lambda count: median(chance.choices(peer, k=count))
    ratios = sorted(draw(len(series["ours"])) / draw(len(peer)) for _ in range(DRAWS))
    tail = DRAWS // 20
    return 1 - ratios[tail] if higher else 1 - 1 / ratios[-1 - tail]


def conclude(name, worst, middle, bar, met):
    """The last line of a benchmark, and its exit code."""
    print(f"{name}: worst={worst:.3f} median={middle:.3f} bar={bar:.2f} {'met' if met else 'not met'}")
    return 0 if met else 1
