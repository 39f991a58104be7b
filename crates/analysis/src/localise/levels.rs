//! The level that each case was compared with.

/// Position of each case's level. A test may have millions of cases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LevelOf(Vec<(u64, u32)>);

impl LevelOf {
    fn at(&self, case: u64) -> Option<usize> {
        self.0.binary_search_by_key(&case, |(case, _)| *case).ok()
    }

    /// `None` where it was not looked at.
    pub fn of(&self, case: u64) -> Option<usize> {
        self.at(case).map(|at| self.0[at].1 as usize)
    }

    pub(super) fn change(&mut self, case: u64, level: usize) {
        if let Some(at) = self.at(case) {
            self.0[at].1 = u32::try_from(level).unwrap_or(u32::MAX);
        }
    }
}

impl FromIterator<(u64, usize)> for LevelOf {
    fn from_iter<I: IntoIterator<Item = (u64, usize)>>(all: I) -> Self {
        let level = |(case, level)| (case, u32::try_from(level).unwrap_or(u32::MAX));
        let mut all: Vec<(u64, u32)> = all.into_iter().map(level).collect();
        // Nearly always in order already.
        all.sort_by_key(|(case, _)| *case);
        all.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = next.1;
            }
            same
        });
        Self(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_level_of_a_case_counts() {
        let mut levels: LevelOf = [(7, 1), (3, 0), (7, 2)].into_iter().collect();
        assert_eq!([3, 5, 7].map(|case| levels.of(case)), [Some(0), None, Some(2)]);
        levels.change(3, 4);
        levels.change(5, 4);
        assert_eq!([3, 5, 7].map(|case| levels.of(case)), [Some(4), None, Some(2)]);
    }
}
