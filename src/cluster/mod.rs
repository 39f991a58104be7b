//! Launchers, deployment by content hash, and conversations with agents.
