use super::draw;

/// Hosts by their index in the plan, sender first.
pub(super) type Pair = (u32, u32);

pub(super) fn incast(hosts: &[u32], to: Option<u32>) -> Vec<Vec<Pair>> {
    stars(hosts, to).map(|(one, others)| others.into_iter().map(|other| (other, one)).collect()).collect()
}

pub(super) fn outcast(hosts: &[u32], from: Option<u32>) -> Vec<Vec<Pair>> {
    stars(hosts, from).map(|(one, others)| others.into_iter().map(|other| (one, other)).collect()).collect()
}

fn stars(hosts: &[u32], one: Option<u32>) -> impl Iterator<Item = (u32, Vec<u32>)> {
    let centres = one.map_or_else(|| hosts.to_vec(), |one| vec![one]);
    centres.into_iter().map(|one| (one, hosts.iter().copied().filter(|host| *host != one).collect()))
}

/// Every host to every other, in the order of their distance in the list: where not all flows can start at once, the first ones are spread
/// over all hosts.
pub(super) fn all_to_all(hosts: &[u32]) -> Vec<Pair> {
    let n = hosts.len();
    (1..n).flat_map(|distance| (0..n).map(move |place| (hosts[place], hosts[(place + distance) % n]))).collect()
}

pub(super) fn ring(hosts: &[u32]) -> Vec<Pair> {
    let next = hosts.iter().copied().cycle().skip(1);
    hosts.iter().copied().zip(next).collect()
}

pub(super) fn permutations(hosts: &[u32], rounds: u32, seed: u64) -> Vec<Vec<Pair>> {
    drawn(hosts, rounds, seed).map(|order| ring(&order)).collect()
}

pub(super) fn halves(hosts: &[u32], rounds: u32, seed: u64) -> Vec<Vec<Pair>> {
    let half = hosts.len() / 2;
    drawn(hosts, rounds, seed).map(|order| across(&order[..half], &order[half..])).collect()
}

/// A flow alone, then with all other hosts sending to one host that is not one of its ends: two rounds per draw. Missing ends and targets
/// are the first free hosts of a random order.
pub(super) fn victims(hosts: &[u32], (flow, to): (Option<Pair>, Option<u32>), draws: u32, seed: u64) -> Vec<Vec<Pair>> {
    let rounds = drawn(hosts, draws, seed).filter_map(|order| {
        let free = |taken: &[Option<u32>]| {
            order.iter().copied().filter(|host| !taken.contains(&Some(*host))).collect::<Vec<_>>()
        };
        let (from, into) = match flow {
            Some(flow) => flow,
            None => *free(&[to]).first_chunk().map(|[from, into]| (*from, *into)).as_ref()?,
        };
        let one = to.or_else(|| free(&[Some(from), Some(into)]).first().copied())?;
        let others = hosts.iter().copied().filter(|host| ![from, into, one].contains(host));
        let beside = std::iter::once((from, into)).chain(others.map(|host| (host, one))).collect();
        Some([vec![(from, into)], beside])
    });
    rounds.flatten().collect()
}

pub(super) fn across(left: &[u32], right: &[u32]) -> Vec<Pair> {
    left.iter().zip(right).filter(|(a, b)| a != b).flat_map(|(&a, &b)| [(a, b), (b, a)]).collect()
}

/// The hosts in a random order for each round.
fn drawn(hosts: &[u32], rounds: u32, seed: u64) -> impl Iterator<Item = Vec<u32>> {
    (0..rounds).map(move |round| {
        let order = draw::distinct(hosts.len(), hosts.len(), seed.wrapping_add(u64::from(round)));
        order.into_iter().map(|place| hosts[place]).collect()
    })
}
