use railgauge_model::plan::model::Host;
use railgauge_wire::{Kind, Stage, remedy};

use super::Trouble;

const VALUE: &str = "{value}";

/// A command's words for one host, with `{host}`, `{name}`, `{user}` and `{port}` replaced.
pub(crate) fn filled(template: &[String], host: &Host) -> Result<Vec<String>, Trouble> {
    filled_at(template, Some(host), None)
}

/// The same with `{value}`; without a host, its placeholders stay.
pub(crate) fn filled_at(template: &[String], host: Option<&Host>, value: Option<&str>) -> Result<Vec<String>, Trouble> {
    template.iter().map(|word| fill(word, host, value)).collect()
}

/// Replaces `{host}`, `{name}`, `{user}`, `{port}` and `{value}` in one word, once and from left to right: replacements are not scanned
/// again, and stay within the word.
fn fill(word: &str, host: Option<&Host>, value: Option<&str>) -> Result<String, Trouble> {
    let mut filled = String::new();
    let mut rest = word;
    let of_host = host.map(|host| {
        [
            ("{host}", Some(host.address.clone())),
            ("{name}", Some(host.name.clone())),
            ("{user}", host.user.clone()),
            ("{port}", host.port.map(|port| port.to_string())),
        ]
    });
    let places: Vec<(&str, Option<String>)> =
        of_host.into_iter().flatten().chain(value.map(|value| (VALUE, Some(value.to_owned())))).collect();
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        filled += before;
        match places.iter().find(|(place, _)| from.starts_with(place)) {
            Some((place, Some(value))) => {
                filled += value;
                rest = &from[place.len()..];
            }
            Some((place, None)) => {
                let cause = format!("the command wants {place}, but the plan gives this host none");
                return Err(Trouble::lasting(Stage::Connect, Kind::Configuration, cause)
                    .remedy(remedy::ADD_HOST_SETTING.with([("key", place.trim_matches(['{', '}']))])));
            }
            None => {
                filled.push('{');
                rest = &from[1..];
            }
        }
    }
    Ok(filled + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host {
            name: "gpu1".into(),
            address: "{port} $(x)".into(),
            user: None,
            port: Some(7),
            devices: vec![],
            tcp: vec![],
        }
    }

    #[test]
    fn places_are_filled_once() {
        let host = host();
        assert_eq!(fill("a{host}b{port}{name}{other}{", Some(&host), None).unwrap(), "a{port} $(x)b7gpu1{other}{");
        assert_eq!(fill("{value}{host}", Some(&host), Some("{host} 1%")).unwrap(), "{host} 1%{port} $(x)");
        assert_eq!(fill("{value}", Some(&host), None).unwrap(), "{value}");
        assert_eq!(fill("{host} {value}", None, Some("a b")).unwrap(), "{host} a b");
    }

    #[test]
    fn a_place_without_a_value_is_told() {
        assert!(fill("{user}", Some(&host()), None).unwrap_err().failure.cause.contains("wants {user}"));
    }
}
