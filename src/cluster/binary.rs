//! The agent's file on this machine: found, read once, hashed, and its architecture read from its ELF header.

use std::{
    env, fmt, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use flate2::{Compression, write::GzEncoder};
use railgauge_model::border::text::path_text;
use railgauge_wire::{Failure, Kind, Stage, remedy};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::script;

/// File name of the agent; those of other architectures are next to it as `railgauge-agent-aarch64`.
const NAME: &str = "railgauge-agent";
const VARIABLE: &str = "RAILGAUGE_AGENT";

/// As in `uname -m`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine(String);

impl Machine {
    pub fn of_uname(word: &str) -> Self {
        Self(match word {
            "amd64" => "x86_64".to_owned(),
            "arm64" => "aarch64".to_owned(),
            word => word.to_owned(),
        })
    }

    pub fn here() -> Self {
        Self::of_uname(env::consts::ARCH)
    }

    /// By the first bytes of an ELF file: `e_machine`, two bytes at offset 18 (System V ABI, "ELF Header"). `None` if it is not a
    /// little-endian 64-bit ELF file.
    fn of_elf(bytes: &[u8]) -> Option<Self> {
        let [0x7f, b'E', b'L', b'F', 2, 1, ..] = bytes else { return None };
        let number = u16::from_le_bytes(bytes.get(18..20)?.try_into().ok()?);
        Some(Self(match number {
            62 => "x86_64".to_owned(),
            183 => "aarch64".to_owned(),
            243 => "riscv64".to_owned(),
            21 => "ppc64le".to_owned(),
            other => format!("ELF machine {other}"),
        }))
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[derive(Debug)]
pub(crate) struct Image {
    pub path: PathBuf,
    pub machine: Machine,
    /// SHA-256, 64 lower-case hexadecimal digits.
    pub hash: String,
    pub bytes: Vec<u8>,
    packed: OnceCell<Vec<u8>>,
}

/// The agent's file, for one or several architectures. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AgentBinary {
    images: Arc<Vec<Arc<Image>>>,
}

impl AgentBinary {
    /// Finds the agent: the file in `RAILGAUGE_AGENT`, else `railgauge-agent` next to the running executable, in `../lib/railgauge` of its
    /// directory (where packages put it) or in the build directory `agent` next to the executable's. Files called
    /// `railgauge-agent-ARCHITECTURE` in the same directory serve hosts of other architectures.
    ///
    /// # Errors
    /// The file does not exist, it cannot be read, or it is not an executable for Linux; the remedy says how to build it.
    pub fn find() -> Result<Self, Failure> {
        if let Some(named) = env::var_os(VARIABLE) {
            return Self::open(Path::new(&named))
                .map_err(|failure| failure.remedy(remedy::CORRECT_LIBRARY_VARIABLE.with([("variable", VARIABLE)])));
        }
        let program = env::current_exe().map_err(|error| {
            Failure::new(Stage::Deploy, Kind::Configuration, format!("cannot find where railgauge itself is: {error}"))
                .remedy(remedy::NAME_AGENT_FILE)
        })?;
        Self::beside(&program)
    }

    fn beside(program: &Path) -> Result<Self, Failure> {
        let directory = program.parent().unwrap_or(Path::new("."));
        // `cargo build --profile agent` writes to target/agent; the controller is in target/debug or target/release, its tests one level
        // deeper in `deps`. An agent next to the controller in a directory of cargo was built without optimisation and would measure
        // itself: `.fingerprint` marks such a directory.
        let mut places = vec![directory.join("../agent"), directory.join("../../agent")];
        if !directory.join(".fingerprint").exists() {
            places.splice(0..0, [directory.to_owned(), directory.join("../lib/railgauge")]);
        }
        let files: Vec<PathBuf> = places.iter().flat_map(|place| agents_in(place, NAME)).collect();
        if files.is_empty() {
            let tried = places.iter().map(|place| place.join(NAME).display().to_string()).collect::<Vec<_>>();
            let cause = format!("the agent's file was not found; looked for {}", tried.join(", "));
            return Err(Failure::new(Stage::Deploy, Kind::Configuration, cause).remedy(remedy::BUILD_AGENT));
        }
        Self::read(&files)
    }

    /// Reads the agent in this file, and those for other architectures next to it (`FILE-ARCHITECTURE`).
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let mut files = vec![path.to_owned()];
        if let Some(directory) = path.parent() {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(NAME);
            files.extend(agents_in(directory, name).into_iter().filter(|other| other != path));
        }
        Self::read(&files)
    }

    fn read(files: &[PathBuf]) -> Result<Self, Failure> {
        let mut images: Vec<Arc<Image>> = Vec::new();
        for path in files {
            let image = Image::read(path)?;
            if images.iter().all(|other| other.machine != image.machine) {
                images.push(Arc::new(image));
            }
        }
        Ok(Self { images: Arc::new(images) })
    }

    pub(crate) fn images(&self) -> &[Arc<Image>] {
        &self.images
    }

    /// The agent for `machine`.
    ///
    /// # Errors
    /// No agent is usable; the failure lists existing ones and the searched places.
    pub(crate) fn image(&self, machine: &Machine) -> Result<&Arc<Image>, Failure> {
        self.images.iter().find(|image| image.machine == *machine).ok_or_else(|| {
            let have = self.images.iter().map(|image| image.machine.to_string()).collect::<Vec<_>>().join(", ");
            let place = self.images.first().and_then(|image| image.path.parent()).unwrap_or(Path::new("."));
            let cause = format!("the host is {machine}, but the agent was built for {have} only");
            let path = place.join(format!("{NAME}-{machine}")).display().to_string();
            Failure::new(Stage::Deploy, Kind::Configuration, cause)
                .remedy(remedy::BUILD_AGENT_FOR.with([("machine", machine.to_string()), ("path", path)]))
        })
    }
}

/// Files called `NAME` or `NAME-ARCHITECTURE` in a directory, the plain name first.
fn agents_in(directory: &Path, name: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|file| is_agent_name(file, name)))
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

/// `NAME`, or `NAME-` and a known architecture; so not `NAME.d`.
fn is_agent_name(file: &str, name: &str) -> bool {
    const ARCHITECTURES: [&str; 4] = ["x86_64", "aarch64", "riscv64", "ppc64le"];
    let Some(rest) = file.strip_prefix(name) else { return false };
    rest.is_empty() || rest.strip_prefix('-').is_some_and(|word| ARCHITECTURES.contains(&word))
}

impl Image {
    fn read(path: &Path) -> Result<Self, Failure> {
        let failure =
            |cause: String| Failure::new(Stage::Deploy, Kind::Configuration, cause).remedy(remedy::BUILD_AGENT);
        let name = path_text(path);
        let bytes = fs::read(path).map_err(|error| failure(format!("cannot read the agent's file {name}: {error}")))?;
        let machine = Machine::of_elf(&bytes)
            .ok_or_else(|| failure(format!("the agent's file {name} is not a 64-bit executable for Linux (ELF)")))?;
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let hash = hex::encode(Sha256::digest(&bytes));
        Ok(Self { path, machine, hash, bytes, packed: OnceCell::new() })
    }

    pub(crate) fn upload(&self) -> Vec<u8> {
        script::upload(&self.bytes)
    }

    /// Sent to a host that answers `missing gzip`: less than half as much. Made once for all hosts.
    pub(crate) async fn packed_upload(self: &Arc<Self>) -> &[u8] {
        let image = Arc::clone(self);
        self.packed
            .get_or_init(|| async {
                let packing = tokio::task::spawn_blocking(move || packed(&image.bytes));
                script::upload(&packing.await.ok().and_then(Result::ok).unwrap_or_default())
            })
            .await
    }
}

/// A gzip file of these bytes (RFC 1952). Writing to memory does not fail.
pub(crate) fn packed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(machine: u16) -> Vec<u8> {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
        bytes.resize(64, 0);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes
    }

    #[test]
    fn several_architectures_stand_side_by_side() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("railgauge-agent"), header(62)).unwrap();
        fs::write(directory.path().join("railgauge-agent-aarch64"), header(183)).unwrap();
        fs::write(directory.path().join("railgauge-agent.d"), "not an agent").unwrap();
        fs::write(directory.path().join("railgauge-agent-old"), "not an agent either").unwrap();
        let found = AgentBinary::beside(&directory.path().join("railgauge")).unwrap();
        let image = found.image(&Machine::of_uname("arm64")).unwrap();
        assert!(image.path.ends_with("railgauge-agent-aarch64"));
        assert_eq!(image.hash.len(), 64);
        let missing = found.image(&Machine::of_uname("riscv64")).unwrap_err();
        assert!(missing.cause.contains("the host is riscv64"), "{missing}");
        assert!(missing.remedy.unwrap().values["path"].ends_with("railgauge-agent-riscv64"));
    }

    #[test]
    fn the_build_directory_next_door_is_searched() {
        let target = tempfile::tempdir().unwrap();
        fs::create_dir_all(target.path().join("debug")).unwrap();
        let missing = AgentBinary::beside(&target.path().join("debug/railgauge")).unwrap_err();
        assert_eq!(missing.remedy.unwrap().id, "build-agent");
        fs::create_dir_all(target.path().join("agent")).unwrap();
        fs::write(target.path().join("agent/railgauge-agent"), header(62)).unwrap();
        assert!(AgentBinary::beside(&target.path().join("debug/railgauge")).is_ok());
    }

    #[test]
    fn a_package_has_its_agents_below_lib() {
        let system = tempfile::tempdir().unwrap();
        let (bin, lib) = (system.path().join("bin"), system.path().join("lib/railgauge"));
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&lib).unwrap();
        fs::write(lib.join("railgauge-agent"), header(62)).unwrap();
        fs::write(lib.join("railgauge-agent-aarch64"), header(183)).unwrap();
        let found = AgentBinary::beside(&bin.join("railgauge")).unwrap();
        for machine in ["x86_64", "aarch64"] {
            let image = found.image(&Machine::of_uname(machine)).unwrap();
            assert!(image.path.starts_with(fs::canonicalize(&lib).unwrap()), "{:?}", image.path);
        }
        fs::write(bin.join("railgauge-agent"), header(62)).unwrap();
        let found = AgentBinary::beside(&bin.join("railgauge")).unwrap();
        let image = found.image(&Machine::of_uname("x86_64")).unwrap();
        assert!(image.path.starts_with(fs::canonicalize(&bin).unwrap()), "{:?}", image.path);
    }

    #[test]
    fn an_agent_built_without_optimisation_is_not_taken() {
        let target = tempfile::tempdir().unwrap();
        fs::create_dir_all(target.path().join("debug/.fingerprint")).unwrap();
        fs::write(target.path().join("debug/railgauge-agent"), header(62)).unwrap();
        let missing = AgentBinary::beside(&target.path().join("debug/railgauge")).unwrap_err();
        assert!(missing.cause.contains("not found"), "{missing}");
    }

    #[test]
    fn a_script_is_not_an_agent() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("railgauge-agent");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        assert!(AgentBinary::open(&path).unwrap_err().cause.contains("not a 64-bit executable"));
    }

    #[test]
    fn the_hash_is_sha_256() {
        // FIPS 180-2, appendix B.1: "abc".
        let hash = hex::encode(Sha256::digest(b"abc"));
        assert_eq!(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
