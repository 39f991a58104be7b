use super::{Cell, Flow, Round, Schedule};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CaseIndex {
    /// From 0 in the order of execution; repeats share it.
    pub id: u64,
    pub round: usize,
    pub cell: usize,
    pub flow: usize,
}

impl Schedule {
    /// All cases in order of execution: by round, then cell, then flow; flows run at the same time.
    pub fn cases(&self) -> impl Iterator<Item = CaseIndex> + '_ {
        let places = (0..self.rounds.len()).flat_map(|round| self.places(round));
        (0..).zip(places).map(|(id, (round, cell, flow))| CaseIndex { id, round, cell, flow })
    }

    pub fn case_count(&self) -> u64 {
        (0..self.rounds.len()).map(|round| self.count(round)).sum()
    }

    pub fn resolve(&self, case: CaseIndex) -> Option<(&Round, &Flow, &Cell)> {
        let round = self.rounds.get(case.round)?;
        Some((round, round.flows.get(case.flow)?, self.cells.get(round.test)?.get(case.cell)?))
    }

    fn places(&self, round: usize) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let (cells, flows) = self.extent(round);
        (0..cells).flat_map(move |cell| (0..flows).map(move |flow| (round, cell, flow)))
    }

    fn count(&self, round: usize) -> u64 {
        let (cells, flows) = self.extent(round);
        cells as u64 * flows as u64
    }

    fn extent(&self, round: usize) -> (usize, usize) {
        self.rounds.get(round).map_or((0, 0), |round| (self.cells[round.test].len(), round.flows.len()))
    }
}
