//! A short message for a chat, a web service or mail: state, bad parts, first step, and link.

use railgauge_analysis::journal;
use railgauge_model::{
    border::text::path_text,
    directory::{JOURNAL, PAGE},
};
use railgauge_report::{self as report, index::escaped};
use serde::Serialize;

use super::{
    nights::Nights,
    state::{Standing, State},
    states::{Condition, Known},
    summary::Summary,
};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    pub version: u32,
    pub state: State,
    pub plan: String,
    pub run_id: String,
    pub sentence: String,
    pub bad_part: Option<String>,
    /// The first thing to do and its purpose; empty if nothing is needed or certain.
    pub first_step: String,
    /// A URL, or a path without one; empty without a page.
    pub link: String,
    pub text: String,
}

impl Message {
    /// The message of a cluster in this state; `nights` is `None` without a run. `base` is the URL of the directory of the runs. The step
    /// and the report are those of the newest run, or of the earlier one that found the faulty component.
    pub fn of(nights: Option<&Nights>, standing: &Standing, base: Option<&str>) -> Self {
        let faulty: Vec<&Known> = standing.components.iter().filter(|one| one.state == Condition::Faulty).collect();
        let run = nights.map(|nights| {
            let newest = nights.newest();
            let says = || faulty.iter().find_map(|one| nights.run(&one.faults.last()?.run_id));
            if newest.row.failures > 0 { newest } else { says().unwrap_or(newest) }
        });
        let certain = run.filter(|_| !matches!(standing.state, State::Ok | State::Unknown));
        let remedy = certain.and_then(|run| {
            let path = run.directory.join(JOURNAL);
            report::draw(&journal::read(&path).ok()?, &path).ok()?.view.banner.remedy
        });
        let first_step = remedy.map(|remedy| match remedy.about.as_str() {
            "" => remedy.text,
            about => format!("{about}: {}", remedy.text),
        });
        let names: Vec<&str> = faulty.iter().map(|one| one.name.as_str()).collect();
        let message = Self {
            version: 3,
            state: standing.state,
            plan: standing.plan.clone(),
            run_id: standing.run_id.clone(),
            sentence: standing.text.clone(),
            bad_part: (!names.is_empty()).then(|| names.join(", ")),
            first_step: first_step.unwrap_or_default(),
            link: run.map(|run| link(run, base)).unwrap_or_default(),
            text: String::new(),
        };
        Self { text: message.line(), ..message }
    }

    /// One line, without characters special to terminals or mail headers.
    fn line(&self) -> String {
        let of = if self.plan.is_empty() { String::new() } else { format!(" {} ({})", self.plan, self.run_id) };
        let mut line = format!("railgauge {}{of}: {}", self.state.word(), self.sentence);
        if !self.first_step.is_empty() {
            line = format!("{} First step: {}", ended(&line), self.first_step);
        }
        // It includes words of hosts, in which a chat could see links or mentions.
        let plain = |c: char| match c {
            c if c.is_control() => ' ',
            '<' => '\u{2039}',
            '>' => '\u{203a}',
            '@' => '\u{ff20}',
            '[' => '\u{ff3b}',
            ']' => '\u{ff3d}',
            c => c,
        };
        let line: String = line.replace("://", ": ").chars().map(plain).collect();
        if self.link.is_empty() { line } else { format!("{} Report: {}", ended(&line), self.link) }
    }
}

fn ended(text: &str) -> String {
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

fn link(run: &Summary, base: Option<&str>) -> String {
    let page = run.directory.join(PAGE);
    if !page.is_file() {
        return String::new();
    }
    let real = run.directory.canonicalize().unwrap_or_else(|_| run.directory.clone());
    match (base, real.file_name()) {
        (Some(base), Some(name)) => {
            format!("{}/{}/{PAGE}", base.trim_end_matches('/'), escaped(name.as_encoded_bytes()))
        }
        _ => path_text(real.join(PAGE)).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of a host are text, and the page of the run is the only link.
    #[test]
    fn a_message_has_no_link_but_its_own() {
        let message = Message {
            version: 3,
            state: State::Ok,
            plan: "night".into(),
            run_id: "r".into(),
            sentence: "see [the fix](http://evil.example/x) or <https://evil.example|here>, @all".into(),
            bad_part: None,
            first_step: "open https://evil.example".into(),
            link: "https://runs.example/r/report.html".into(),
            text: String::new(),
        };
        let line = message.line();
        assert_eq!(line.matches("://").count(), 1, "{line}");
        assert!(line.ends_with(&message.link) && !line.contains(['[', ']', '<', '>', '@']), "{line}");
    }
}
