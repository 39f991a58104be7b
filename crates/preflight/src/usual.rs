use super::Severity;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Usual<T> {
    pub value: T,
    pub wanted: bool,
}

impl<T: Clone + PartialOrd> Usual<T> {
    pub(super) fn of(wanted: Option<T>, values: impl IntoIterator<Item = T>) -> Option<Self> {
        match wanted {
            Some(value) => Some(Self { value, wanted: true }),
            None => Some(Self { value: majority(values)?, wanted: false }),
        }
    }

    /// A deviation is a failure if the plan wants the value.
    pub(super) const fn severity(&self, otherwise: Severity) -> Severity {
        if self.wanted { Severity::Failure } else { otherwise }
    }

    pub(super) fn words(&self, shown: impl FnOnce(&T) -> String) -> String {
        let who = if self.wanted { "the plan requires" } else { "others have" };
        format!("{who} {}", shown(&self.value))
    }
}

/// The value that more than half have. Unordered values such as NaN have no majority.
fn majority<T: Clone + PartialOrd>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut sorted: Vec<T> = values.into_iter().collect();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let middle = sorted.get(sorted.len() / 2)?.clone();
    let holders = sorted.iter().filter(|value| **value == middle).count();
    (holders * 2 > sorted.len()).then_some(middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_comes_before_the_majority() {
        assert_eq!(Usual::of(Some(9000), [1500, 1500]), Some(Usual { value: 9000, wanted: true }));
        assert_eq!(Usual::of(None, [9000, 1500, 9000]), Some(Usual { value: 9000, wanted: false }));
        assert_eq!(Usual::of(None, [9000, 1500]), None);
        assert_eq!(Usual::<u32>::of(None, []), None);
    }
}
