//! Reading plans: every kind of mistake with its rendered text, the example plans, the documentation, the command.

mod command;
mod documentation;
mod examples;
mod invalid;
mod limits;
mod meaning;
