//! Journals in, frames, verdicts and reports out.

#[path = "../support/mod.rs"]
mod support;

mod frames;
mod journals;
mod pages;
mod scale;
mod verdicts;
