/// One of millions of lists needs no allocation of its own.
#[derive(Debug, Clone)]
pub struct Lists<T> {
    ends: Vec<usize>,
    all: Vec<T>,
}

impl<T: Copy + Default> Lists<T> {
    /// Each item has the number of its list; a list keeps the given order.
    ///
    /// # Panics
    /// An item has an unknown list number.
    pub fn new(lists: usize, items: impl Iterator<Item = (usize, T)> + Clone) -> Self {
        let mut ends = vec![0; lists];
        items.clone().for_each(|(list, _)| ends[list] += 1);
        let mut sum = 0;
        // Start of each list; adding its items moves it to the end.
        ends.iter_mut().for_each(|end| sum += std::mem::replace(end, sum));
        let mut all = vec![T::default(); sum];
        for (list, item) in items {
            all[ends[list]] = item;
            ends[list] += 1;
        }
        Self { ends, all }
    }

    /// # Panics
    /// If the list does not exist.
    pub fn of(&self, list: usize) -> &[T] {
        let from = list.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[from..self.ends[list]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_has_its_items_in_order() {
        let lists = Lists::new(4, [(2, 'a'), (0, 'b'), (2, 'c'), (3, 'd')].into_iter());
        let all: Vec<&[char]> = (0..4).map(|list| lists.of(list)).collect();
        assert_eq!(all, [&['b'][..], &[], &['a', 'c'], &['d']]);
    }
}
