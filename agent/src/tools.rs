//! Programs of this host that report switches and cables: lldpcli, ibnetdiscover, dump_fts. Their output is passed on page by page.

use std::io;

use parking_lot::Mutex;
use railgauge_wire::{
    Failure, Kind, Neighbour, RawContent, Stage, Tool, ToolPage, neighbours,
    remedy::{self, Entry},
    tool::PAGE,
};

use crate::system::program::{self, ProgramFailed};

/// What was written last, for the pages behind the first one.
static WRITTEN: Mutex<Option<(Tool, Vec<u8>)>> = Mutex::new(None);

pub(crate) fn page(tool: Tool, from: u64) -> Result<ToolPage, Failure> {
    let mut written = WRITTEN.lock();
    if from == 0 {
        *written = None;
        *written = Some((tool, output(tool).map_err(|why| failure(tool, &why))?));
    }
    let bytes = written.as_ref().filter(|(of, _)| *of == tool).map(|(_, bytes)| bytes.as_slice());
    let rest = bytes.zip(usize::try_from(from).ok()).and_then(|(bytes, from)| bytes.get(from..));
    let rest = rest.ok_or_else(|| {
        Failure::new(Stage::Facts, Kind::Internal, format!("byte {from} belongs to no output of a program"))
    })?;
    let page = &rest[..rest.len().min(PAGE)];
    let next = (page.len() < rest.len()).then(|| from + page.len() as u64);
    if next.is_none() {
        let content = RawContent::of(page, true);
        *written = None;
        return Ok(ToolPage { content, next });
    }
    Ok(ToolPage { content: RawContent::of(page, false), next })
}

fn output(tool: Tool) -> Result<Vec<u8>, ProgramFailed> {
    let installed = tool.commands().iter().find_map(|words| {
        let (name, arguments) = words.split_first()?;
        Some((program::find(name)?, arguments))
    });
    match installed {
        Some((path, arguments)) => program::run(&path, arguments, tool.limit(), tool.most().as_usize()),
        None => {
            let names: Vec<&str> = tool.commands().iter().filter_map(|words| words.first().copied()).collect();
            Err(ProgramFailed::Absent(names.join(" (or ") + if names.len() > 1 { ")" } else { "" }))
        }
    }
}

fn failure(tool: Tool, why: &ProgramFailed) -> Failure {
    let lldp = tool == Tool::Neighbours;
    let (kind, remedy): (Kind, Entry) = match why {
        ProgramFailed::Absent(_) if lldp => (Kind::Unsupported, remedy::INSTALL_LLDPD),
        ProgramFailed::Absent(_) => (Kind::Unsupported, remedy::INSTALL_INFINIBAND_DIAGS),
        ProgramFailed::Forbidden(_) if lldp => (Kind::Configuration, remedy::MAY_ASK_LLDPD),
        ProgramFailed::Refused { .. } if lldp => (Kind::Configuration, remedy::LLDPD_ANSWERS),
        ProgramFailed::Forbidden(_) | ProgramFailed::Refused { .. } => (Kind::Configuration, remedy::MAY_ASK_SUBNET),
        ProgramFailed::Late { .. } => (Kind::Deadline, remedy::RUN_TOOL_BY_HAND),
        ProgramFailed::TooMuch { .. } | ProgramFailed::Start { .. } => (Kind::Internal, remedy::RUN_TOOL_BY_HAND),
    };
    Failure::new(Stage::Facts, kind, why.to_string()).remedy(remedy)
}

pub(crate) fn heard() -> io::Result<Vec<Neighbour>> {
    let written = output(Tool::Neighbours).map_err(io::Error::other)?;
    let value = serde_json::from_slice(&written).map_err(|why| io::Error::other(format!("lldpcli: {why}")))?;
    let heard = neighbours::read(&value).map_err(|why| io::Error::other(format!("lldpcli: {why}")))?;
    Ok(heard.neighbours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_belongs_to_no_output_is_refused() {
        *WRITTEN.lock() = Some((Tool::Tables, vec![7; PAGE + 1]));
        assert!(page(Tool::Fabric, 1).is_err());
        let last = page(Tool::Tables, PAGE as u64).unwrap();
        assert_eq!((last.content.bytes().unwrap(), last.next), (vec![7], None));
        assert!(page(Tool::Tables, PAGE as u64).is_err());
    }

    #[test]
    fn every_trouble_has_a_remedy() {
        for (tool, id) in [(Tool::Neighbours, "install-lldpd"), (Tool::Tables, "install-infiniband-diags")] {
            let told = failure(tool, &ProgramFailed::Absent("x".into()));
            assert_eq!((told.kind, told.remedy.unwrap().id.as_ref()), (Kind::Unsupported, id));
        }
        let told = failure(Tool::Neighbours, &ProgramFailed::Forbidden("/usr/sbin/lldpcli".into()));
        assert_eq!((told.kind, told.remedy.unwrap().id.as_ref()), (Kind::Configuration, "may-ask-lldpd"));
    }
}
