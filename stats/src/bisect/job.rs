//! Groups that are to be measured, and how they decide.

/// Failing votes, or passing ones, that decide.
const DECIDES: usize = 2;

/// A group with its votes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Vote {
    /// The hosts to run on, a known-good one included where one was added.
    pub(super) hosts: Vec<u32>,
    pub(super) passed: usize,
    pub(super) failed: usize,
}

impl Vote {
    pub(super) fn new(hosts: Vec<u32>) -> Self {
        Self { hosts, passed: 0, failed: 0 }
    }

    /// Whether the group fails, once two of up to three results agree.
    pub(super) fn fails(&self) -> Option<bool> {
        if self.failed >= DECIDES {
            Some(true)
        } else if self.passed >= DECIDES {
            Some(false)
        } else {
            None
        }
    }
}

/// What follows from the votes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Job {
    /// Halves of a failing group, each with its vote.
    Halves { halves: [Vec<u32>; 2], votes: [Vote; 2] },
    /// Two mixes of half of each of two sides that pass by themselves and fail together, each with its vote.
    Mixes { sides: [Vec<u32>; 2], mixes: [[Vec<u32>; 2]; 2], votes: [Vote; 2], crossed: bool },
    /// A suspect host beside a known-good one.
    Confirm { host: u32, vote: Vote },
    /// Results of good groups of a size that has no reference yet.
    Reference { size: usize, groups: Vec<Vec<u32>>, results: Vec<f64>, tried: usize },
}

impl Job {
    /// The group to measure next; `None` once everything is decided.
    pub(super) fn next_group(&self) -> Option<&[u32]> {
        match self {
            Self::Halves { votes, .. } | Self::Mixes { votes, .. } => {
                votes.iter().find(|vote| vote.fails().is_none()).map(|vote| vote.hosts.as_slice())
            }
            Self::Confirm { vote, .. } => vote.fails().is_none().then_some(vote.hosts.as_slice()),
            Self::Reference { groups, tried, .. } => groups.get(*tried).map(Vec::as_slice),
        }
    }

    /// The vote that the next result counts for.
    pub(super) fn open_vote(&mut self) -> Option<&mut Vote> {
        match self {
            Self::Halves { votes, .. } | Self::Mixes { votes, .. } => {
                votes.iter_mut().find(|vote| vote.fails().is_none())
            }
            Self::Confirm { vote, .. } => Some(vote).filter(|vote| vote.fails().is_none()),
            Self::Reference { .. } => None,
        }
    }

    /// Sizes that need a reference before this can be measured.
    pub(super) fn sizes(&self) -> Vec<usize> {
        match self {
            Self::Halves { votes, .. } | Self::Mixes { votes, .. } => votes.iter().map(|v| v.hosts.len()).collect(),
            Self::Confirm { vote, .. } => vec![vote.hosts.len()],
            Self::Reference { .. } => Vec::new(),
        }
    }
}
