//! A dedicated round for a link that the search left open, with only the flows it needs.

use super::{
    Wanted,
    demand::{Demand, ROUNDING},
    loaded::carried,
    network::{Link, Network},
    state::{Flow, Manner, State},
};

const MOST_TRIES: usize = 256;

/// Flows that load `link` together; `None` where those that send most, taken greedily, do not.
pub(super) fn round(network: &Network, wanted: Wanted, demand: &Demand, link: Link) -> Option<Vec<Flow>> {
    let manner = Manner { both_ways: wanted.both_ways, one_per_host: wanted.one_per_host };
    let mut state = State::new(network, demand, manner, 1);
    let users = &demand.users[link as usize];
    let over = |flows: Vec<(f64, &[Link])>| -> f64 {
        flows.iter().filter(|(_, path)| path.contains(&link)).map(|(gbps, _)| gbps).sum()
    };
    let sent = |(from, to): Flow| {
        let ways = if wanted.both_ways { vec![(from, to), (to, from)] } else { vec![(from, to)] };
        let path = |&(from, to): &Flow| network.path(from, to).unwrap_or_default();
        // In most fabrics both directions have no link in common.
        if let [there, back] = ways[..]
            && path(&there).iter().any(|link| path(&back).contains(link))
        {
            return over(carried(network, true, &[there]));
        }
        over(ways.iter().map(|flow| (network.alone(flow.0, flow.1), path(flow))).collect())
    };
    let best = |&(leaf, to): &(u32, u32)| {
        let flows = network.below(leaf).iter().map(|from| (*from, to)).filter(|flow| state.may_be(*flow));
        flows.map(|flow| (sent(flow), flow)).max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let mut flows: Vec<(f64, Flow)> = users.iter().filter_map(best).collect();
    flows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut chosen, mut reached): (Vec<Flow>, f64) = (Vec::new(), 0.0);
    for (_, (from, to)) in flows.into_iter().take(MOST_TRIES) {
        let leaf = network.ends()[from as usize].leaf?;
        let senders = [from].into_iter().chain(network.below(leaf).iter().copied());
        let is_free = |end| state.flow_at(0, end).is_none();
        let Some(from) = senders.into_iter().find(|from| state.may_be((*from, to)) && is_free(*from) && is_free(to))
        else {
            continue;
        };
        chosen.push((from, to));
        let sum = over(carried(network, wanted.both_ways, &chosen));
        if sum * ROUNDING <= reached {
            chosen.pop();
            continue;
        }
        state.add(0, (from, to));
        reached = sum;
        if reached >= demand.need[link as usize] * ROUNDING {
            return Some(chosen);
        }
    }
    None
}
