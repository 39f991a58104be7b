//! What drivers of another host said, where its tree has it: nobody can ask them here.
//!
//! | file | holds |
//! | --- | --- |
//! | `ethtool/IF/statistics` | what `ethtool -S IF` printed |
//! | `ethtool/IF/module/ADDRESS.PAGE` | a page of the module's memory from its begin, as hexadecimal bytes with spaces between them: `50.00` |

use std::io;

use super::watcher::Drivers;
use crate::system::{module_eeprom::Part, tree::Tree};

/// The drivers of the host that a tree was taken from.
pub(super) struct Recorded(pub(super) Tree);

impl Drivers for Recorded {
    fn statistics(&self, interface: &str) -> io::Result<Vec<(String, u64)>> {
        let text = self.0.text(format!("ethtool/{interface}/statistics")).unwrap_or_default();
        let of = |line: &str| {
            let (name, value) = line.rsplit_once(':')?;
            Some((name.trim().to_owned(), value.trim().parse().ok()?))
        };
        Ok(text.lines().filter_map(of).collect())
    }

    fn module(&self, interface: &str, part: Part) -> io::Result<Vec<u8>> {
        let Part { address, page, offset, length } = part;
        let Some(text) = self.0.text(format!("ethtool/{interface}/module/{address:02x}.{page:02x}")) else {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        };
        let bytes: Result<Vec<u8>, _> = text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16)).collect();
        let bytes = bytes.map_err(io::Error::other)?;
        let end = usize::from(offset) + usize::from(length);
        let part =
            bytes.get(usize::from(offset)..end).ok_or_else(|| io::Error::other("the recorded page is too short"))?;
        Ok(part.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::module_eeprom::MODULE;

    #[test]
    fn what_a_tree_has_is_told_and_what_it_lacks_is_not_there() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().join("ethtool/rail0/module");
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(at.join("../statistics"), "NIC statistics:\n     rx_prio3_pause: 17\n     odd: name: 4\n")
            .unwrap();
        std::fs::write(at.join("50.00"), "11 00 0a\nff").unwrap();
        let recorded = Recorded(Tree::new(place.path()));
        let told = recorded.statistics("rail0").unwrap();
        assert_eq!(told, [("rx_prio3_pause".to_owned(), 17), ("odd: name".to_owned(), 4)]);
        let part = |offset, length| recorded.module("rail0", Part { address: MODULE, page: 0, offset, length });
        assert_eq!(part(1, 3).unwrap(), [0, 10, 255]);
        assert!(part(2, 3).is_err() && recorded.statistics("rail1").unwrap().is_empty());
        let missing = recorded.module("rail1", Part { address: MODULE, page: 0, offset: 0, length: 1 }).unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
