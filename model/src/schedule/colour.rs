//! Spreads pairs over rounds in order: each goes into the first round in which both hosts are free.

/// The rounds of `pairs`: fewer than the two hosts of the busiest pair have pairs together.
pub(super) fn first_fit(pairs: impl Iterator<Item = (u32, u32)>, hosts: usize) -> Vec<Vec<(u32, u32)>> {
    let mut calendars = vec![Calendar::default(); hosts];
    let mut rounds: Vec<Vec<(u32, u32)>> = Vec::new();
    for (a, b) in pairs {
        let mut round = 0;
        loop {
            let both = calendars[a as usize].free_from(round).max(calendars[b as usize].free_from(round));
            if both == round {
                break;
            }
            round = both;
        }
        calendars[a as usize].take(round);
        calendars[b as usize].take(round);
        if round == rounds.len() {
            rounds.push(Vec::new());
        }
        rounds[round].push((a, b));
    }
    rounds
}

#[derive(Clone, Default)]
struct Calendar {
    taken: Vec<bool>,
    full: usize,
}

impl Calendar {
    fn free_from(&self, round: usize) -> usize {
        let mut round = round.max(self.full);
        while self.taken.get(round).copied().unwrap_or(false) {
            round += 1;
        }
        round
    }

    fn take(&mut self, round: usize) {
        self.taken.resize(self.taken.len().max(round + 1), false);
        self.taken[round] = true;
        self.full = self.free_from(self.full);
    }
}
