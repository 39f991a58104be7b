use serde::{Deserialize, Serialize};

use crate::remedy::{self, Remedy};

crate::words! {
    Stage {
        Connect = "connect",
        Deploy = "deploy",
        Start = "start",
        Facts = "facts",
        Configure = "configure",
        Open = "open",
        Join = "join",
        Verify = "verify",
        Measure = "measure",
        Converse = "converse",
    }
}

/// Decides whether a row is an error, not run, or a failed verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The host or its agent is gone or does not answer.
    Lost,
    /// The device, library or kernel does not offer what was asked.
    Unsupported,
    /// The host is not set up for it (limits, permissions, addresses, ports down).
    Configuration,
    /// The fabric did not carry the bytes (retries exceeded, connection cut).
    Fabric,
    /// The bytes that arrived are not the bytes that were sent.
    Corruption,
    Deadline,
    Aborted,
    Internal,
}

/// Programs decide by the fields, never by the words.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Name in the plan. Agents do not know theirs: the controller sets it.
    pub host: Option<String>,
    /// Name in the plan of the other end, if either end may be the cause.
    pub peer: Option<String>,
    pub stage: Stage,
    pub kind: Kind,
    pub cause: String,
    /// What the library's own diagnostics say of it.
    pub said: Option<String>,
    pub remedy: Option<Box<Remedy>>,
}

impl Failure {
    pub fn new(stage: Stage, kind: Kind, cause: impl Into<String>) -> Self {
        Self { host: None, peer: None, stage, kind, cause: cause.into(), said: None, remedy: None }
    }

    pub fn at(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self.filled()
    }

    pub fn unnamed(mut self) -> Self {
        self.host = None;
        self
    }

    /// Adds the host that may be the cause instead.
    pub fn with(mut self, peer: &str) -> Self {
        self.peer = Some(peer.to_owned());
        self.filled()
    }

    pub fn about(mut self, what: impl std::fmt::Display) -> Self {
        self.cause = format!("{what}: {}", self.cause);
        self
    }

    pub fn remedy(mut self, remedy: impl Into<Remedy>) -> Self {
        self.remedy = Some(Box::new(remedy.into()));
        self.filled()
    }

    /// Whether the remedy says that a bad GPU caused it: other ends then only wait for that one.
    pub fn is_of_gpu(&self) -> bool {
        let of_gpu = [remedy::XID.id, remedy::GPU_MEMORY_ERRORS.id, remedy::LOOK_AT_GPU.id];
        self.remedy.as_ref().is_some_and(|remedy| of_gpu.contains(&&*remedy.id))
    }

    /// The remedy with host and peer in its words, also for a journal of another version without them.
    pub fn told_remedy(&self) -> Option<Remedy> {
        self.clone().filled().remedy.map(|remedy| *remedy)
    }

    fn filled(mut self) -> Self {
        if let Some(remedy) = &mut self.remedy {
            for (name, value) in [("host", &self.host), ("peer", &self.peer)] {
                if let Some(value) = value {
                    remedy.name(name, value);
                }
            }
        }
        self
    }

    pub fn remedy_if(self, remedy: Option<impl Into<Remedy>>) -> Self {
        match remedy {
            Some(remedy) => self.remedy(remedy),
            None => self,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(host) = &self.host {
            write!(f, "{host}: ")?;
        }
        write!(f, "{}: {}", self.stage, self.cause)?;
        if let (Some(host), Some(peer)) = (&self.host, &self.peer) {
            write!(f, " (between {host} and {peer})")?;
        }
        if let Some(said) = &self.said {
            write!(f, "; {said}")?;
        }
        if let Some(remedy) = &self.remedy {
            write!(f, " ({remedy})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
