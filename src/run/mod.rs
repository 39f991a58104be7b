//! The one loop: rounds and conversations become events, journalled as they happen.

pub mod event;
