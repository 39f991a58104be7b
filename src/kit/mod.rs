//! Kits: what a user's hosts are and measured, in one file that becomes a test (`docs/dev/bundle.md`).
//!
//! ```text
//! run::contact, a run directory ─ content ─▶ files ─ anonymise ─▶ files ─ archive ─▶ FILE.tar.gz
//!                                        FILE.tar.gz ─ archive ─▶ files ─ fixture ─▶ agent/tests/hosts/*.host
//! ```
//!
//! | module | does |
//! | --- | --- |
//! | [`archive`] | files and a manifest into an archive, and out of one that anybody may have written |
//! | [`anonymise`] | replaces names, addresses and identities by placeholders, the same everywhere |
//! | [`content`] | what was learned of hosts, and a run directory, as files |
//! | [`fixture`] | a kit's hosts as texts for the agent's tests |
//! | [`tree`] | one host's facts and the files that they are made of |
//! | `withhold` | takes environments and launchers' settings out of a run's records |
//! | `stop` | whether somebody interrupted it |
//! | [`shortened`] | a plan that measures briefly, and the tests of a kit itself |

pub mod anonymise;
pub mod archive;
pub(crate) mod content;
pub mod fixture;
pub(crate) mod shortened;
pub(crate) mod stop;
pub mod tree;
mod withhold;
