//! Commands with places for what the plan says of a host. No shell takes part.

use railgauge_model::plan::model::Host;
use railgauge_wire::{
    failure::{Kind, Stage},
    remedy,
};

use super::trouble::Trouble;

/// A command's words for one host: `{host}`, `{name}`, `{user}` and `{port}` are what the plan says of it.
pub(crate) fn filled(template: &[String], host: &Host) -> Result<Vec<String>, Trouble> {
    template.iter().map(|word| fill(word, host)).collect()
}

/// Puts `{host}`, `{name}`, `{user}` and `{port}` into one word, once and from left to right: what is put in is not
/// looked at again.
fn fill(word: &str, host: &Host) -> Result<String, Trouble> {
    let mut filled = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        filled += before;
        let value = [
            ("{host}", Some(host.address.clone())),
            ("{name}", Some(host.name.clone())),
            ("{user}", host.user.clone()),
            ("{port}", host.port.map(|port| port.to_string())),
        ];
        match value.into_iter().find(|(place, _)| from.starts_with(place)) {
            Some((place, Some(value))) => {
                filled += &value;
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
        assert_eq!(fill("a{host}b{port}{name}{other}{", &host()).unwrap(), "a{port} $(x)b7gpu1{other}{");
    }

    #[test]
    fn a_place_without_a_value_is_told() {
        assert!(fill("{user}", &host()).unwrap_err().failure.cause.contains("wants {user}"));
    }
}
