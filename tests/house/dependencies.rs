//! Everything that is linked into railgauge has a license, a source and a name that `deny.toml` allows.

use std::{fs, path::Path, process::Command};

use serde::Deserialize;
use spdx::{Expression, ParseMode};

/// The part of `deny.toml` that is checked here.
#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    clarify: Vec<Clarified>,
}

#[derive(Deserialize)]
struct Clarified {
    #[serde(rename = "crate")]
    name: String,
    expression: String,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Banned>,
}

#[derive(Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
}

/// The part of cargo's metadata that is checked here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    license: Option<String>,
    source: Option<String>,
    manifest_path: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn deny() -> Deny {
    toml::from_str(&fs::read_to_string(root().join("deny.toml")).unwrap()).unwrap()
}

/// Every package of the lock file that is built on Linux.
fn packages() -> Vec<Package> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let words = ["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", &platform];
    let done = Command::new(cargo).args(words).current_dir(root()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice::<Metadata>(&done.stdout).unwrap().packages
}

impl Deny {
    /// Why a package may not be used; `None` if it may. Everything comes from this repository or from one registry.
    fn refuses(&self, package: &Package, registry: &str) -> Option<String> {
        if self.bans.deny.iter().any(|banned| banned.name == package.name) {
            return Some("deny.toml bans it".to_owned());
        }
        match &package.source {
            None if !Path::new(&package.manifest_path).starts_with(root()) => {
                Some("it lies outside of the repository".into())
            }
            Some(source) if source != registry => Some(format!("it comes from {source}")),
            _ => self.license(package),
        }
    }

    fn license(&self, package: &Package) -> Option<String> {
        let clarified = self.licenses.clarify.iter().find(|known| known.name == package.name);
        let Some(text) = clarified.map(|known| &known.expression).or(package.license.as_ref()) else {
            return Some("it names no license".to_owned());
        };
        let expression = match Expression::parse_mode(text, ParseMode::LAX) {
            Ok(expression) => expression,
            Err(error) => return Some(format!("its license `{text}` cannot be read: {error}")),
        };
        let allowed = |wanted: &spdx::LicenseReq| self.licenses.allow.contains(&wanted.to_string());
        (!expression.evaluate(allowed)).then(|| format!("its license is `{text}`"))
    }
}

#[test]
fn what_is_linked_is_allowed() {
    let (deny, packages) = (deny(), packages());
    assert!(packages.len() > 100, "{} packages", packages.len());
    let registry = packages.iter().find(|package| package.name == "serde").unwrap().source.clone().unwrap();
    assert!(registry.starts_with("registry+"), "{registry}");
    let refused = packages.iter().filter_map(|package| Some((&package.name, deny.refuses(package, &registry)?)));
    let refused: Vec<_> = refused.collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn what_is_not_allowed_is_refused() {
    let deny = deny();
    let package = |license: Option<&str>, source: Option<&str>| Package {
        name: "other".to_owned(),
        license: license.map(str::to_owned),
        source: source.map(str::to_owned),
        manifest_path: "/elsewhere/Cargo.toml".to_owned(),
    };
    let registry = Some("registry+https://example.org/index");
    let refuses = |package: &Package| deny.refuses(package, "registry+https://example.org/index");
    assert_eq!(refuses(&package(Some("MIT/Apache-2.0"), registry)), None);
    for license in [Some("GPL-3.0-only"), Some("MIT AND GPL-2.0-or-later"), Some("not a license"), None] {
        assert!(refuses(&package(license, registry)).is_some(), "{license:?}");
    }
    for source in [None, Some("git+https://example.org/other"), Some("registry+https://example.com/index")] {
        assert!(refuses(&package(Some("MIT"), source)).is_some(), "{source:?}");
    }
    assert!(refuses(&Package { name: "openssl-sys".into(), ..package(Some("MIT"), registry) }).is_some());
}
