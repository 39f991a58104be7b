//! A library that forwards every call to libibverbs and librdmacm and writes down, as JSON lines, what decides how a
//! program uses a device: devices opened, memory registered, queues and queue pairs created, every attribute of every
//! transition, and a summary of what was posted. For `bench/trace-parity`, never part of the product.
//!
//! perftest gets it by `LD_PRELOAD`. railgauge's agent looks functions up in a library that it opens itself, which
//! passes `LD_PRELOAD` by: `RAILGAUGE_IBVERBS` and `RAILGAUGE_RDMACM` name this file there. Preloading it into the agent
//! too is what makes librdmacm's own calls of libibverbs pass here. `VERBS_TRACE` names the file to write; without it
//! nothing is written.
//!
//! | file | holds |
//! | --- | --- |
//! | [`real`] | the libraries behind this one |
//! | [`lines`], [`names`] | the file that is written, the words in it |
//! | [`posts`] | what was posted and completed, in numbers |
//! | [`verbs`], [`cm`] | the exported functions |
//! | [`ops`], [`builder`] | what goes through a context's table, and through a queue pair's own (`ibv_wr_*`) |
#![allow(clippy::missing_safety_doc, reason = "the contracts are libibverbs'")]

pub mod builder;
pub mod cm;
pub mod lines;
pub mod names;
pub mod ops;
pub mod posts;
pub mod real;
pub mod verbs;
