//! Kits: facts and measurements of a user's hosts in one file that becomes a test (`docs/dev/bundle.md`).
//!
//! ```text
//! run::contact, a run directory ─ content (withhold, tree, anonymise) ─▶ files ─ archive ─▶ FILE.tar.gz
//! ```
//!
//! | module | does |
//! | --- | --- |
//! | [`archive`] | files and a manifest into an archive |
//! | [`anonymise`] | replaces names, addresses and identities by placeholders, the same everywhere |
//! | [`tree`] | one host's facts and their source files |
//! | `withhold` | takes environments and launchers' settings out of a run's records |
//! | `content` | facts of hosts, and a run directory, as files |
//! | `shortened` | a plan that measures briefly |

pub mod anonymise;
pub mod archive;
pub(crate) mod content;
pub(crate) mod shortened;
pub mod tree;
mod withhold;
