//! Maps and sets of what an iterator gives.

pub trait Gather: Iterator + Sized {
    /// A map or set, filled one by one. `collect` sorts everything first, by 4 KB of code for each iterator that it is used with, and agents are
    /// sent to every host.
    fn gathered<C: Default + Extend<Self::Item>>(self) -> C {
        let mut all = C::default();
        all.extend(self);
        all
    }
}

impl<I: Iterator> Gather for I {}
