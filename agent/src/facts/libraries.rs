//! Libraries that the loader finds, and kernel modules for RDMA and GPUs (kernel documentation: ABI/stable/sysfs-module).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use railgauge_wire::{Gather, MODULES};

use crate::{
    gpu::{AMD_SMI, CUBLASLT, HIP, HIPBLASLT, RCCL, present},
    system::{
        library::{self, NotOpened},
        tree::Tree,
    },
};

const CUDA: &str = "libcuda.so.1";
const NAMES: [&str; 5] = ["libibverbs.so.1", "librdmacm.so.1", CUDA, "libnccl.so.2", "libnvidia-ml.so.1"];

/// Each library's file, whose name has its version, or the loader's message; and the providers that libibverbs has loaded for this host's
/// devices (`libmlx5-rdmav34.so`, `librxe-rdmav34.so`, …).
pub(crate) fn probe() -> BTreeMap<String, String> {
    let mut found = BTreeMap::from(NAMES.map(|name| (name.to_owned(), told(library::find(name)))));
    // It is large, and useless without the driver.
    if found.get(CUDA).is_some_and(|path| path.starts_with('/')) {
        found.extend(newest(&CUBLASLT, library::find).map(|(name, said)| (name.to_owned(), told(said))));
    }
    // Without AMD GPUs the missing ROCm is not reported.
    let hip: Vec<_> = newest(&HIP, library::find).map(|(name, said)| (name.to_owned(), told(said))).collect();
    if hip.iter().any(|(_, path)| path.starts_with('/')) || !present::amd(&Tree::host()).is_empty() {
        found.extend(hip);
        for names in [&RCCL[..], &AMD_SMI, &HIPBLASLT] {
            found.extend(newest(names, library::find).map(|(name, said)| (name.to_owned(), told(said))));
        }
    }
    // If the file is unreadable, libibverbs could not have loaded anything either.
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    found.extend(providers(&maps));
    found
}

/// A library's file, or the loader's message. Text that starts with `/` is a file: messages start with the requested name, which may have
/// a folder.
fn told(said: Result<PathBuf, NotOpened>) -> String {
    match said {
        Ok(path) => path.display().to_string(),
        Err(missing) => match missing.to_string() {
            words if words.starts_with('/') => format!("not found: {words}"),
            words => words,
        },
    }
}

/// Results for the names of one library, up to the first that is found.
fn newest<'n, E>(
    names: &'n [&str],
    said: impl Fn(&str) -> Result<PathBuf, E>,
) -> impl Iterator<Item = (&'n str, Result<PathBuf, E>)> {
    let mut is_found = false;
    names.iter().map_while(move |name| {
        let said = (!is_found).then(|| said(name))?;
        is_found = said.is_ok();
        Some((*name, said))
    })
}

fn providers(maps: &str) -> impl Iterator<Item = (String, String)> {
    let paths = maps.lines().filter_map(|line| line.find('/').map(|start| &line[start..]));
    paths.filter_map(|path| {
        let file = Path::new(path).file_name()?.to_str()?;
        // libmlx5 and libefa are separate libraries, which their provider's file links to.
        let own = ["libmlx4.so.", "libmlx5.so.", "libefa.so.", "libmana.so."].iter().any(|name| file.starts_with(name));
        (file.contains("-rdmav") || own).then(|| (format!("provider {}", name_of(file)), path.to_owned()))
    })
}

/// `mlx5` of `libmlx5.so.1.24.44.0`, `rxe` of `librxe-rdmav34.so`.
fn name_of(file: &str) -> &str {
    let name = file.strip_prefix("lib").unwrap_or(file);
    name.split(['-', '.']).next().unwrap_or(name)
}

/// Versions of modules that are loaded or built in with parameters; empty for none.
pub(super) fn loaded(tree: &Tree) -> BTreeMap<String, String> {
    let there = MODULES.into_iter().filter(|name| tree.has(format!("sys/module/{name}")));
    there.map(|name| (name.to_owned(), version(tree, name))).gathered()
}

fn version(tree: &Tree, name: &str) -> String {
    let version = tree.text(format!("sys/module/{name}/version")).unwrap_or_default();
    // NVIDIA's two flavours share a name and a version; only the open one shares GPU memory as dma-bufs.
    let open = name == "nvidia"
        && tree.text("proc/driver/nvidia/version").is_some_and(|text| text.contains("Open Kernel Module"));
    if open { format!("{version} (open)").trim().to_owned() } else { version }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_names_the_first_that_is_found_is_the_last_one() {
        let said = |name: &str| if name == "b" { Ok(PathBuf::from("/lib/b")) } else { Err(()) };
        let asked = |names: &[&str]| newest(names, said).map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(asked(&["a", "b", "c"]), ["a", "b"]);
        assert_eq!(asked(&["a", "c"]), ["a", "c"]);
    }

    #[test]
    fn a_name_with_a_folder_that_is_not_there_is_not_told_as_a_file() {
        let said = told(library::find("/opt/railgauge-nowhere/lib/libx.so.1"));
        assert!(said.starts_with("not found: /opt/railgauge-nowhere/lib/libx.so.1: cannot open"), "{said}");
        assert!(told(library::find("libc.so.6")).starts_with('/'));
    }

    #[test]
    fn providers_are_found_among_mapped_files() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 1  /usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so\n\
                    7f01-7f02 r--p 00000000 08:01 2  /usr/lib/x86_64-linux-gnu/libmlx5.so.1.24.44.0\n\
                    7f02-7f03 rw-p 00000000 00:00 0  [heap]\n\
                    7f03-7f04 r--p 00000000 08:01 3  /usr/lib/x86_64-linux-gnu/libc.so.6\n";
        let found: Vec<String> = providers(maps).map(|(name, _)| name).collect();
        assert_eq!(found, ["provider rxe", "provider mlx5"]);
    }
}
