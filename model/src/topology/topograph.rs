//! Output of NVIDIA topograph with its `graph` engine: for every instance its switches, closest first, and its NVLink domain. (With its
//! `slurm` engine it writes a topology.conf.)

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{
    told::{Cable, Device, Nic, Plug, Switch, Told},
    unread::{self, MOST_CABLES, Remarks, Unread},
};

/// Labels of the accelerator domain: of topograph 1.0, and of earlier releases.
const DOMAINS: &[&str] = &["accelerator.topograph.run/domain", "network.topology.nvidia.com/accelerator"];
/// Labels of the host name where `id` is a cloud's name for it.
const HOSTNAMES: &[&str] = &["kubernetes.io/hostname", "hostname"];
const MOST_LAYERS: usize = 16;

#[derive(Deserialize)]
struct Document {
    instances: Vec<Instance>,
}

#[derive(Deserialize)]
struct Instance {
    id: String,
    #[serde(default)]
    network_layers: Option<Vec<String>>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

/// Reads the document.
///
/// # Errors
/// It is not JSON with a list `instances`, or is too large.
pub fn read(text: &str) -> Result<Told, Unread> {
    let document: Document = unread::json(text)?;
    let mut told = Told { source: "topograph".into(), ..Told::default() };
    let (mut remarks, mut known) = (Remarks::default(), BTreeSet::new());
    for instance in document.instances {
        let label = |names: &[&str]| {
            let labels = instance.labels.as_ref()?;
            names.iter().find_map(|name| labels.get(*name)).filter(|value| !value.is_empty()).cloned()
        };
        let host = label(HOSTNAMES).unwrap_or_else(|| instance.id.clone());
        if host.is_empty() {
            remarks.add("an instance without id".into());
            continue;
        }
        if let Some(domain) = label(DOMAINS) {
            told.domains.entry(domain).or_default().insert(host.clone());
        }
        let mut layers = instance.network_layers.unwrap_or_default();
        layers.retain(|layer| !layer.is_empty());
        if layers.len() > MOST_LAYERS || told.cables.len() >= MOST_CABLES {
            return Err(Unread::Whole(format!(
                "{host} has {} switches above it, or the document too many",
                layers.len()
            )));
        }
        if layers.is_empty() {
            remarks.add(format!("{host} has no switches: topograph does not know where it is"));
        }
        let mut below = Device::Nic(Nic { host: Some(host), ..Nic::default() });
        for layer in layers {
            told.switches.entry(layer.clone()).or_insert_with(|| Switch { name: layer.clone(), ..Switch::default() });
            let above = Device::Switch(layer);
            // Tiers without a switch of their own have the name of the one below.
            if below != above && known.insert((below.clone(), above.clone())) {
                let end = |device| Plug { device, port: None };
                let cable = Cable { a: end(below), b: end(above.clone()), rate_gbps: None, width: None, speed: None };
                told.cables.push(cable);
            }
            below = above;
        }
    }
    told.remarks = remarks.list();
    Ok(told)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// In the form of topograph's docs/engines/graph.md (1.0).
    const DOCUMENT: &str = r#"{"instances": [
        {"id": "gpu1", "network_layers": ["leaf-a", "spine"], "labels": {"accelerator.topograph.run/domain": "nvl-1"}},
        {"id": "gpu2", "network_layers": ["leaf-a", "spine"], "labels": {"accelerator.topograph.run/domain": "nvl-1"}},
        {"id": "i-7", "network_layers": ["leaf-b", "spine", "spine"], "labels": {"kubernetes.io/hostname": "gpu3"}},
        {"id": "gpu4", "network_layers": [], "labels": null}]}"#;

    #[test]
    fn layers_are_links_and_labels_are_domains() {
        let told = read(DOCUMENT).unwrap();
        let name = |plug: &Plug| match &plug.device {
            Device::Switch(key) => key.clone(),
            Device::Nic(nic) => nic.host.clone().unwrap(),
        };
        let pairs: Vec<String> =
            told.cables.iter().map(|cable| format!("{} {}", name(&cable.a), name(&cable.b))).collect();
        assert_eq!(pairs, ["gpu1 leaf-a", "leaf-a spine", "gpu2 leaf-a", "gpu3 leaf-b", "leaf-b spine"]);
        assert_eq!(told.domains["nvl-1"].len(), 2);
        assert_eq!((told.switches.len(), told.remarks.len()), (3, 1));
    }

    #[test]
    fn another_document_is_refused() {
        for text in ["", "[]", "{\"instances\": 7}", "{\"nodes\": []}"] {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = format!(r#"{{"instances":[{{"id":"a","network_layers":{:?}}}]}}"#, vec!["s"; 17]);
        assert!(read(&deep).is_err());
    }

    proptest! {
        #[test]
        fn nothing_panics(cut in 0..DOCUMENT.len(), skip in 0..40_usize, put in "[\\[\\]{}\",:a0]{0,3}") {
            let _ = read(&format!("{}{put}{}", &DOCUMENT[..cut], &DOCUMENT[(cut + skip).min(DOCUMENT.len())..]));
        }
    }
}
