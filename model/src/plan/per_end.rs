//! Settings that the two ends of a flow may have in common, or each its own.

use std::fmt::{self, Display, Formatter};

use railgauge_wire::{Memory, Role};
use serde::{Deserialize, Serialize};

/// As in plans, one value where both ends have it: `"cuda"`, or `{ "from": "host", "to": "cuda" }`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(
    from = "Written<T>",
    into = "Written<T>",
    bound(serialize = "T: Clone + PartialEq + Serialize", deserialize = "T: Clone + Deserialize<'de>")
)]
pub struct PerEnd<T> {
    /// The end that posts the operations.
    pub from: T,
    pub to: T,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written<T> {
    Same(T),
    Each { from: T, to: T },
}

impl<T> PerEnd<T> {
    pub fn same(value: T) -> Self
    where
        T: Clone,
    {
        Self { from: value.clone(), to: value }
    }

    pub const fn of(&self, role: Role) -> &T {
        match role {
            Role::Initiator => &self.from,
            Role::Responder => &self.to,
        }
    }

    pub fn any(&self, is: impl Fn(&T) -> bool) -> bool {
        is(&self.from) || is(&self.to)
    }

    pub fn all(&self, is: impl Fn(&T) -> bool) -> bool {
        is(&self.from) && is(&self.to)
    }
}

impl<T: Clone> From<Written<T>> for PerEnd<T> {
    fn from(written: Written<T>) -> Self {
        match written {
            Written::Same(value) => Self::same(value),
            Written::Each { from, to } => Self { from, to },
        }
    }
}

impl<T: PartialEq> From<PerEnd<T>> for Written<T> {
    fn from(PerEnd { from, to }: PerEnd<T>) -> Self {
        if from == to { Self::Same(from) } else { Self::Each { from, to } }
    }
}

/// `cuda`, or `host to cuda`.
impl<T: Display + PartialEq> Display for PerEnd<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self { from, to } if from == to => from.fmt(f),
            Self { from, to } => write!(f, "{from} to {to}"),
        }
    }
}

impl PerEnd<Memory> {
    pub fn has_gpu(&self) -> bool {
        self.any(|memory| *memory == Memory::Cuda)
    }
}
