use railgauge_wire::{
    Failure, Kind, Stage,
    remedy::{self, Remedy},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// It names no host yet: [`Trouble::at`] does.
    pub failure: Failure,
    /// Whether the cause is of the kind that passes by itself.
    pub passing: bool,
}

impl Trouble {
    pub(crate) fn lasting(stage: Stage, kind: Kind, cause: impl Into<String>) -> Self {
        Self { failure: Failure::new(stage, kind, cause), passing: false }
    }

    pub(crate) fn passing(stage: Stage, kind: Kind, cause: impl Into<String>) -> Self {
        Self { failure: Failure::new(stage, kind, cause), passing: true }
    }

    #[must_use]
    pub(crate) fn remedy(mut self, remedy: impl Into<Remedy>) -> Self {
        self.failure = self.failure.remedy(remedy);
        self
    }

    /// The same trouble with this remedy, unless there is one already.
    #[must_use]
    pub(crate) fn remedy_or(self, remedy: impl Into<Remedy>) -> Self {
        if self.failure.remedy.is_some() { self } else { self.remedy(remedy) }
    }

    /// The same trouble where a script of ours reported too little, though the client of its stream ended with status 0: the stream was
    /// cut, and another try may help, unless a full disk was the reason.
    #[must_use]
    pub(crate) fn cut(self, remedy: impl Into<Remedy>) -> Self {
        let is_full = self.failure.remedy.as_ref().is_some_and(|known| known.id == remedy::AGENT_DIR_SPACE.id);
        if is_full { self } else { Self { passing: true, ..self.remedy_or(remedy) } }
    }

    pub(crate) fn at(self, host: &str) -> Failure {
        self.failure.at(host)
    }
}
