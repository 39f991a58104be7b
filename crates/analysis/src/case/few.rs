//! Lists with one item in most of millions of cases.

use std::ops::Deref;

/// Uses no memory of its own with at most one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Few<T>(Held<T>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Held<T> {
    One([T; 1]),
    // An empty one allocates nothing.
    Others(Box<[T]>),
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Held::One(one) => one,
            Held::Others(others) => others,
        }
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let mut all = all.into_iter();
        match (all.next(), all.next()) {
            (None, _) => Self(Held::Others([].into())),
            (Some(one), None) => Self(Held::One([one])),
            (Some(one), Some(two)) => Self(Held::Others([one, two].into_iter().chain(all).collect())),
        }
    }
}

impl<'f, T> IntoIterator for &'f Few<T> {
    type Item = &'f T;
    type IntoIter = std::slice::Iter<'f, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_those_that_were_given() {
        for all in [&[][..], &[1], &[1, 2], &[3, 2, 1]] {
            assert_eq!(*all.iter().copied().collect::<Few<i32>>(), *all);
        }
        assert!(size_of::<Few<&u8>>() <= 16);
    }
}
