//! A fast check that JSON needs no [`look()`](super::look()): true for nearly all of it. A journal may have millions of lines.

use super::FARTHEST;

const DIGITS: usize = 18;
const _: () = assert!(FARTHEST >= 10_u64.pow(DIGITS as u32));

/// Whether all texts are ASCII without escapes (hence printable) and all numbers short enough. Invalid JSON may pass.
pub(super) fn is_plain(bytes: &[u8]) -> bool {
    let (mut in_text, mut digits) = (false, 0);
    for byte in bytes {
        match byte {
            b'"' => (in_text, digits) = (!in_text, 0),
            b'\\' | 0..0x20 | 0x7f.. => return false,
            _ if in_text => {}
            b'e' | b'E' if digits > 0 => return false,
            b'0'..=b'9' => {
                digits += 1;
                if digits > DIGITS {
                    return false;
                }
            }
            b'.' => {}
            _ => digits = 0,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::look;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn usual_lines_are_plain() {
        for text in [
            r#"{"v":4,"run":"6e94192081731662","at":"2026-11-28T03:00:00.000Z","event":{"started":123456789012345678,"rate":400.0}}"#,
            r#"[-1.25,true,null,"7e9"]"#,
        ] {
            assert!(is_plain(text.as_bytes()), "{text}");
        }
        for text in [r#""\u202e""#, "\"\u{e9}\"", "\"a\tb\"", "1e300", "[1E9]", "4611686018427387905", "\"\u{7f}\""] {
            assert!(!is_plain(text.as_bytes()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_plain_needs_no_look(text in r#"(\{"[ -~]{0,6}":)?(\[)?"?-?[0-9.eE+\-]{0,24}[ -~]{0,8}"?(\])?(\})?"#) {
            if is_plain(text.as_bytes()) && let Ok(value) = serde_json::from_str(&text) {
                let seen = look(&value);
                prop_assert!(!seen.unprintable && seen.impossible.is_none(), "{text}");
            }
        }
    }
}
