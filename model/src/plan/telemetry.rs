//! A snapshot of UFM's telemetry as CSV, as `curl http://UFM:9002/csv/xcset/low_freq_debug` writes it. Appended snapshots are one file: the last
//! line of a port counts.
//!
//! Columns are found by their names. Sources of the names and units: NVIDIA UFM Enterprise User Manual, "Low-Frequency (Secondary) Telemetry
//! Fields"; NVIDIA UFM Telemetry release notes 1.15.7 (`Time_since_last_clear_[Min]` became `Time_since_last_clear_Min`); and
//! github.com/Mellanox/ufm_sdk_3.0, plugins/pdr_deterministic_plugin/tests/simulation_telemetry.py (a file as a whole) and
//! plugins/ufm_log_analyzer_plugin/src/loganalyze/utils/netfix/netfix_utils (the time is in minutes).

use std::collections::BTreeMap;

use railgauge_wire::{Bytes, Nanoseconds};
use serde::{Deserialize, Serialize};

use super::{Table, read::file};

/// With their names in other versions.
const COLUMNS: [&[&str]; 5] = [
    &["Node_GUID"],
    &["Port_Number"],
    &["Effective_BER"],
    &["Symbol_BER"],
    &["Time_since_last_clear_Min", "Time_since_last_clear_[Min]"],
];
const LARGEST: Bytes = Bytes::from_mib(256);

#[derive(Debug, PartialEq, thiserror::Error)]
enum TelemetryError {
    #[error("lacks columns: {}", .0.join(", "))]
    NoColumns(Vec<&'static str>),
    #[error("has no {what} in line {line}: `{text}`")]
    NoValue { what: &'static str, line: usize, text: String },
    #[error("has no line of a port")]
    Empty,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortTelemetry {
    /// Of the node, as in the facts of hosts: `946d:ae03:00f4:2e5a`.
    pub guid: String,
    pub port: u8,
    /// Errors per bit; `None` where UFM has no value.
    pub post_fec_ber: Option<f64>,
    pub symbol_errors: Option<f64>,
    /// Time in which they were counted: since the port's counters were last cleared.
    pub counted: Nanoseconds,
}

pub fn read(preflight: &Table<'_>) -> Vec<PortTelemetry> {
    let Some(path) = preflight.path("ufm_telemetry") else { return Vec::new() };
    let text = file::read_up_to(&path.value, LARGEST).map_err(|fault| fault.to_string());
    text.and_then(|text| parse(&text).map_err(|error| error.to_string())).unwrap_or_else(|why| {
        let help = "write it with `curl http://UFM:9002/csv/xcset/low_freq_debug`";
        preflight.wrong(path.span, format!("the file of UFM's telemetry {why}"), help);
        Vec::new()
    })
}

/// Of `0x946dae0300f42e5a`; `None` for anything else.
fn guid(text: &str) -> Option<String> {
    let digits = text.strip_prefix("0x")?.to_lowercase();
    let is_guid = digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_guid.then(|| [0, 4, 8, 12].map(|at| &digits[at..at + 4]).join(":"))
}

fn parse(text: &str) -> Result<Vec<PortTelemetry>, TelemetryError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let header = lines.next().map(|(_, line)| line).unwrap_or_default();
    let names = fields(header);
    let columns = COLUMNS.map(|wanted| names.iter().position(|name| wanted.contains(&name.trim())));
    let [Some(at_guid), Some(at_port), Some(at_post_fec), Some(at_symbol), Some(at_time)] = columns else {
        let missing = COLUMNS.iter().zip(columns).filter(|(_, at)| at.is_none());
        return Err(TelemetryError::NoColumns(missing.map(|(wanted, _)| wanted[0]).collect()));
    };
    let mut found: BTreeMap<(String, u8), PortTelemetry> = BTreeMap::new();
    // Every appended snapshot has a header of its own.
    for (number, line) in lines.filter(|(_, line)| *line != header) {
        let values = fields(line);
        let value = |at: usize| values.get(at).map(|value| value.trim()).unwrap_or_default();
        let wrong = |what, text: &str| TelemetryError::NoValue { what, line: number, text: text.to_owned() };
        let guid = guid(value(at_guid)).ok_or_else(|| wrong("node GUID", value(at_guid)))?;
        let port: u8 = value(at_port).parse().map_err(|_| wrong("port number", value(at_port)))?;
        let rate = |at: usize| match value(at) {
            "" | "N/A" => Ok(None),
            text => match text.parse::<f64>() {
                Ok(rate) if (0.0..=1.0).contains(&rate) => Ok(Some(rate)),
                _ => Err(wrong("error rate", text)),
            },
        };
        let (post_fec_ber, symbol_errors) = (rate(at_post_fec)?, rate(at_symbol)?);
        let minutes = value(at_time).parse::<f64>().ok().filter(|minutes| (0.0..1e9).contains(minutes));
        let counted = Nanoseconds::from_secs((minutes.unwrap_or_default() * 60.0) as u64);
        let one = PortTelemetry { guid: guid.clone(), port, post_fec_ber, symbol_errors, counted };
        found.insert((guid, port), one);
    }
    if found.is_empty() {
        return Err(TelemetryError::Empty);
    }
    Ok(found.into_values().collect())
}

/// Commas within double quotes separate nothing.
fn fields(line: &str) -> Vec<&str> {
    let mut quoted = false;
    let separates = move |letter: char| {
        quoted ^= letter == '"';
        letter == ',' && !quoted
    };
    line.split(separates).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "timestamp,source_id,tag,Node_GUID,port_guid,Port_Number,node_description,Effective_BER,Symbol_BER,Time_since_last_clear_Min";

    fn line(guid: &str, port: &str, rates: &str, minutes: &str) -> String {
        format!("1766000000000000,{guid},,{guid},{guid},{port},\"gpu01, mlx5_0\",{rates},{minutes}")
    }

    #[test]
    fn ports_come_out_by_guid_and_number() {
        let guid = "0x946DAE0300F42E5A";
        let text = [
            HEADER.to_owned(),
            line(guid, "1", "1.5E-254,1e-16", "130"),
            line(guid, "2", "N/A,", "N/A"),
            String::new(),
            HEADER.to_owned(),
            line(guid, "1", "2e-12,3e-15", "135.5"),
        ];
        let ports = parse(&text.join("\n")).unwrap();
        let one = &ports[0];
        assert_eq!((one.guid.as_str(), one.port, ports.len()), ("946d:ae03:00f4:2e5a", 1, 2));
        assert_eq!(
            (one.post_fec_ber, one.symbol_errors, one.counted),
            (Some(2e-12), Some(3e-15), Nanoseconds::from_secs(8130))
        );
        assert_eq!((ports[1].post_fec_ber, ports[1].symbol_errors, ports[1].counted), (None, None, Nanoseconds::ZERO));
        // As it was called before UFM Telemetry 1.15.7.
        let older = text.join("\n").replace("clear_Min", "clear_[Min]");
        assert_eq!(parse(&older).unwrap(), ports);
    }

    #[test]
    fn other_files_are_refused() {
        let guid = "0x946dae0300f42e5a";
        for (text, why) in [
            (String::new(), None),
            (HEADER.to_owned(), None),
            (format!("{HEADER}\n{}", line("gpu01", "1", "0,0", "1")), Some("node GUID")),
            (format!("{HEADER}\n{}", line(guid, "one", "0,0", "1")), Some("port number")),
            (format!("{HEADER}\n{}", line(guid, "1", "-1,0", "1")), Some("error rate")),
            (format!("{HEADER}\n{}", line(guid, "1", "NaN,0", "1")), Some("error rate")),
        ] {
            let found = match parse(&text).unwrap_err() {
                TelemetryError::NoValue { what, line: 2, .. } => Some(what),
                _ => None,
            };
            assert_eq!(found, why, "{text}");
        }
        let lacking = HEADER.replace("Symbol_BER", "other").replace("Port_Number", "other");
        let missing = vec!["Port_Number", "Symbol_BER"];
        assert_eq!(parse(&lacking), Err(TelemetryError::NoColumns(missing)), "all at once");
    }
}
