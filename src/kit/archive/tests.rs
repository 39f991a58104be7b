use super::*;

fn items() -> Items {
    let tree = "hosts/h/tree/sys";
    [
        ("run/records.jsonl".to_owned(), Item::File(b"{}\n".to_vec())),
        (
            format!("{tree}/devices/pci0000:00/x/infiniband/mlx5_0/{}", "deep/".repeat(40) + "file"),
            Item::File(vec![0; 3]),
        ),
        (
            format!("{tree}/class/infiniband/mlx5_0"),
            Item::Link(format!("{tree}/devices/pci0000:00/x/infiniband/mlx5_0")),
        ),
    ]
    .into()
}

/// An archive of entries as they are given, behind a manifest that lists them.
fn crafted(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let manifest = Manifest { format: FORMAT.into(), version: VERSION, ..Manifest::default() };
    file(&mut archive, MANIFEST, &serde_json::to_vec(&manifest).unwrap()).unwrap();
    for (path, kind, content) in entries {
        let is_link = *kind == tar::EntryType::Symlink || *kind == tar::EntryType::Link;
        let size = if is_link { 0 } else { content.len() as u64 };
        let mut header = header(*kind, size);
        // As somebody with other tools would: no check of the path.
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        if is_link {
            header.as_mut_bytes()[157..157 + content.len()].copy_from_slice(content);
        }
        header.set_cksum();
        archive.append(&header, if is_link { &[][..] } else { content }).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

fn refused(entries: &[(&str, tar::EntryType, &[u8])]) -> String {
    read(&*crafted(entries)).unwrap_err().to_string()
}

#[test]
fn what_is_written_reads_back() {
    let manifest = Manifest { railgauge: "0".into(), hosts: [("h".into(), "h".into())].into(), ..Manifest::default() };
    let bytes = write(&manifest, &items()).unwrap();
    assert_eq!(bytes, write(&manifest, &items()).unwrap(), "the same files give the same bytes");
    let (read_back, found) = read(&*bytes).unwrap();
    assert_eq!(found, items());
    assert_eq!((read_back.hosts, read_back.version, read_back.files.len()), (manifest.hosts, VERSION, 3));
}

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    use tar::EntryType::Regular;
    for path in ["../x", "/etc/passwd", "run/../../x", "run//x", "./x", "run/x/", "a\\b", "a\nb"] {
        let error = refused(&[(path, Regular, b"x")]);
        assert!(error.contains("does not stay inside the kit"), "{path}: {error}");
    }
}

#[test]
fn links_out_of_a_tree_and_other_kinds_are_refused() {
    use tar::EntryType::{Block, Fifo, Link, Regular, Symlink};
    for (path, to) in [
        ("hosts/h/tree/sys/x", "../../../../../etc/passwd"),
        ("hosts/h/tree/sys/x", "/etc/passwd"),
        ("hosts/h/tree/sys/x", "../../../other/tree/sys/y"),
        ("hosts/h/tree/sys/x", "../.."),
        ("run/x", "records.jsonl"),
        ("hosts/h/tree/sys/x", ""),
    ] {
        let error = refused(&[(path, Symlink, to.as_bytes())]);
        assert!(error.contains("out of its host's tree"), "{path} -> {to}: {error}");
    }
    for kind in [Link, Fifo, Block] {
        let error = refused(&[("run/x", kind, b"")]);
        assert!(error.contains("files and symbolic links only"), "{error}");
    }
    // A file behind a link would be written through it.
    let through = [("hosts/h/tree/sys/x", Symlink, &b"y"[..]), ("hosts/h/tree/sys/x/z", Regular, b"1")];
    assert!(refused(&through).contains("another entry in its place"));
    let twice = [("run/x", Regular, &b"1"[..]), ("run/x", Regular, b"2")];
    assert!(refused(&twice).contains("another entry in its place"));
}

#[test]
fn bombs_are_refused_before_they_are_unpacked() {
    let zeros = Items::from([("run/zeros".to_owned(), Item::File(vec![0; 8 << 20]))]);
    let bytes = write(&Manifest::default(), &zeros).unwrap();
    assert!(bytes.len() < 64 << 10, "{}", bytes.len());
    let bounds = Bounds { all: 4 << 20, ..BOUNDS };
    assert!(matches!(read_within(&*bytes, bounds), Err(KitError::TooLarge(_))));
    let bounds = Bounds { one: 4 << 20, ..BOUNDS };
    assert!(matches!(read_within(&*bytes, bounds), Err(KitError::TooLarge(_))));
    let bounds = Bounds { archive: 1 << 10, ..BOUNDS };
    assert!(matches!(read_within(&*bytes, bounds), Err(KitError::TooLarge(_))));
    let bounds = Bounds { entries: 2, ..BOUNDS };
    assert!(matches!(
        read_within(&*write(&Manifest::default(), &items()).unwrap(), bounds),
        Err(KitError::TooLarge(_))
    ));
}

#[test]
fn what_the_manifest_does_not_say_is_refused() {
    let unlisted = refused(&[("run/x", tar::EntryType::Regular, b"1")]);
    assert!(unlisted.contains("run/x: the manifest does not list it"), "{unlisted}");
    assert!(matches!(read(&b"not gzip"[..]), Err(KitError::Unreadable(_))));
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    file(&mut archive, "other.txt", b"x").unwrap();
    let foreign = read(&*archive.into_inner().unwrap().finish().unwrap()).unwrap_err();
    assert!(matches!(foreign, KitError::Foreign(_)), "{foreign}");
    // A kit that was cut off on its way.
    let whole = write(&Manifest::default(), &items()).unwrap();
    assert!(read(&whole[..whole.len() / 2]).is_err());
}
