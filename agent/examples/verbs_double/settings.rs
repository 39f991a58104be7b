//! What the environment asks for. Read once.

use std::{path::PathBuf, sync::OnceLock};

use crate::{
    hostile::Hostile,
    profile::{self, Profile},
};

/// What this process's devices are.
pub struct Settings {
    /// Where the processes of the fabric meet.
    pub directory: PathBuf,
    /// The host that this process is on: the last byte of its addresses, its LID. From 1.
    pub host: u8,
    /// Number of devices.
    pub devices: u8,
    /// What they are.
    pub profile: &'static Profile,
    /// How they misbehave.
    pub hostile: Hostile,
}

/// The settings; `None` where the environment has none or wrong ones, which is said on standard error.
pub fn settings() -> Option<&'static Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    SETTINGS
        .get_or_init(|| match read() {
            Ok(settings) => Some(settings),
            Err(why) => {
                eprintln!("verbs_double: {why}");
                None
            }
        })
        .as_ref()
}

fn read() -> Result<Settings, String> {
    let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let number = |name: &str, otherwise: u8| match text(name) {
        None => Ok(otherwise),
        Some(text) => text.parse().map_err(|_| format!("{name}={text} is no number from 0 to 255")),
    };
    let directory = text("VERBS_DOUBLE_DIR").ok_or("VERBS_DOUBLE_DIR names no directory")?;
    let wanted = text("VERBS_DOUBLE_PROFILE").unwrap_or_else(|| profile::ALL[0].name.to_owned());
    let profile = profile::ALL.iter().find(|profile| profile.name == wanted).ok_or_else(|| {
        let known: Vec<_> = profile::ALL.iter().map(|profile| profile.name).collect();
        format!("VERBS_DOUBLE_PROFILE={wanted} is none of {}", known.join(", "))
    })?;
    Ok(Settings {
        directory: directory.into(),
        host: number("VERBS_DOUBLE_HOST", 1)?,
        devices: number("VERBS_DOUBLE_DEVICES", 1)?,
        profile,
        hostile: Hostile::parse(&text("VERBS_DOUBLE_HOSTILE").unwrap_or_default())?,
    })
}
