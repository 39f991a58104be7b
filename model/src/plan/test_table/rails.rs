use railgauge_wire::Transport;

use super::members::Members;
use crate::plan::{At, LAST_RAIL, Mistake, Rails, Table, Test, grammar::nearest};

/// A list of unique rails with places; `None` after reporting a mistake.
pub fn list(table: &Table<'_>, name: &'static str) -> Option<Vec<At<u32>>> {
    let raw = table.raw(name)?;
    let rails = table.numbers::<u32>(name, (0, LAST_RAIL), &raw);
    table.unique(name, rails.clone());
    (!rails.is_empty()).then_some(rails)
}

pub fn read(test: &Table<'_>, members: Option<&Members<'_>>, transport: Option<Transport>) -> Option<Rails> {
    let raw = test.raw("rails")?;
    if let Some(word) = raw.value.as_str() {
        return match word {
            "aligned" => Some(Rails::Aligned),
            "crossed" => Some(Rails::Crossed),
            "each" => Some(Rails::Each),
            _ => {
                let mistake = Mistake::at(raw.span.clone(), format!("`rails` cannot be \"{word}\""));
                let near = nearest(word, ["aligned", "crossed", "each"]);
                let mistake = near.map_or(mistake.clone(), |near| mistake.label(format!("did you mean \"{near}\"?")));
                test.book.add(mistake.help("expected \"aligned\", \"crossed\", \"each\", or a list such as [0, 2]"));
                None
            }
        };
    }
    let rails = list(test, "rails")?;
    // If the plan lists a host's devices, a rail it does not have is a mistake; otherwise the agent finds out.
    let taking_part =
        members.into_iter().flat_map(|members| members.hosts.list.iter().filter(|host| members.has(&host.name)));
    for host in taking_part {
        let ports = match transport {
            Some(Transport::Cpu | Transport::Gpu) => break,
            Some(Transport::Tcp) => &host.tcp,
            _ => &host.devices,
        };
        if let Some(rail) = rails.iter().find(|rail| !ports.is_empty() && rail.value as usize >= ports.len()) {
            let message = format!("{} has no rail {}: in the plan it has {}", host.name, rail.value, ports.join(", "));
            test.wrong(rail.span.clone(), message, "rails are counted from 0");
            break;
        }
    }
    let mut numbers: Vec<u32> = rails.into_iter().map(|rail| rail.value).collect();
    numbers.sort_unstable();
    Some(Rails::Only(numbers))
}

/// Reports `each` where pairs are chosen by their ports and have no rails to measure in turn.
pub fn judge(table: &Table<'_>, test: &Test) {
    if test.rails == Rails::Each && test.on_fabric() {
        let span = table.written("rails").unwrap_or(table.span.clone());
        let message = "rails = \"each\" does not apply with a pattern that chooses ports by the topology";
        table.wrong(span, message, "use rails = \"aligned\", or a pattern of hosts such as \"neighbours\"");
    }
}
