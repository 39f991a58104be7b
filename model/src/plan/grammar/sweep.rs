//! Message sizes: `"64..8MiB x2"`, `"4KiB..64KiB +4KiB"`, or one size.

use railgauge_wire::Bytes;

use super::{quantity::size, wrong::Wrong};

pub const MOST: usize = 1000;

const HELP: &str = "a sweep is FIRST..LAST and a step: \"64..8MiB x2\" doubles, \"4KiB..64KiB +4KiB\" adds";

/// The sizes of a text, ascending, unique. The first is always included; the last only if the steps reach it.
///
/// # Errors
/// The text is not a size or a sweep, is reversed, or has more than [`MOST`] sizes.
pub fn sweep(text: &str) -> Result<Vec<Bytes>, Wrong> {
    let Some(dots) = text.find("..") else {
        return Ok(vec![part(text, 0..text.len())?]);
    };
    let rest = &text[dots + 2..];
    let Some(space) = rest.trim_end().find([' ', 'x', '+', '×']) else {
        return Err(Wrong::new(0..text.len(), format!("the sweep `{text}` has no step"), HELP));
    };
    // A size may be `4 KiB`, so the step is what begins with its sign.
    let step_at = rest.find(['x', '+', '×']).unwrap_or(space);
    let (first, last) = (part(text, 0..dots)?, part(text, dots + 2..dots + 2 + step_at)?);
    if last < first {
        let help = format!("write {}..{}", rest[..step_at].trim(), text[..dots].trim());
        return Err(Wrong::new(0..dots + 2 + step_at, "the range of sizes is reversed", help));
    }
    let step = text[dots + 2 + step_at..].trim();
    let step_at = text.trim_end().len() - step.len();
    let sizes: Vec<Bytes> = if let Some(factor) = step.strip_prefix('x').or_else(|| step.strip_prefix('×')) {
        let factor: u64 = factor.trim().parse().ok().filter(|factor| *factor >= 2).ok_or_else(|| {
            Wrong::new(
                step_at..text.len(),
                format!("`{step}` is not a factor"),
                "a factor is a whole number from 2: x2",
            )
        })?;
        std::iter::successors(Some(first), |size| size.checked_mul(factor)).take_while(|size| *size <= last).collect()
    } else if step.starts_with('+') {
        let sign = step_at + text[step_at..].find('+').map_or(0, |at| at + 1);
        let step = part(text, sign..text.len())?;
        let count = (last - first) / step + 1;
        if count > MOST as u64 {
            let help = format!("a test has at most {MOST} sizes: use a larger step");
            return Err(Wrong::new(0..text.len(), format!("the sweep `{text}` has {count} sizes"), help));
        }
        (0..count).map(|index| first + step * index).collect()
    } else {
        return Err(Wrong::new(step_at..text.len(), format!("`{step}` is not a step"), HELP));
    };
    Ok(sizes)
}

pub fn range(text: &str) -> Result<(Bytes, Bytes), Wrong> {
    let Some(dots) = text.find("..") else {
        return part(text, 0..text.len()).map(|size| (size, size));
    };
    if text[..dots].trim().is_empty() || text[dots + 2..].trim().is_empty() {
        let help = "write both, such as \"64KiB..8MiB\"; without `sizes` it applies to all of them";
        return Err(Wrong::new(0..text.len(), "a range of sizes has two ends", help));
    }
    let (first, last) = (part(text, 0..dots)?, part(text, dots + 2..text.len())?);
    if last < first {
        let help = format!("write {}..{}", text[dots + 2..].trim(), text[..dots].trim());
        return Err(Wrong::new(0..text.len(), "the range of sizes is reversed", help));
    }
    Ok((first, last))
}

fn part(text: &str, at: std::ops::Range<usize>) -> Result<Bytes, Wrong> {
    let piece = &text[at.clone()];
    let offset = at.start + (piece.len() - piece.trim_start().len());
    size(piece.trim()).map_err(|wrong| wrong.shifted(offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sweeps_are_what_they_say() {
        assert_eq!(sweep("64..1KiB x2").unwrap(), [64, 128, 256, 512, 1024].map(Bytes));
        assert_eq!(sweep("1 KiB .. 4 KiB + 1 KiB").unwrap(), [1024, 2048, 3072, 4096].map(Bytes));
        assert_eq!(sweep("3..10 x2").unwrap(), [3, 6].map(Bytes));
        assert_eq!(sweep("8").unwrap(), [Bytes(8)]);
        assert_eq!(sweep("8..8x2").unwrap(), [Bytes(8)]);
        assert_eq!(range("64KiB..1MiB").unwrap(), (Bytes(65_536), Bytes(1_048_576)));
        for text in [
            "",
            "..",
            "8..",
            "..8 x2",
            "64..8 x2",
            "8..64",
            "8..64 x1",
            "8..64 x",
            "8..64 /2",
            "1..1GiB +1",
            "8..64 +0",
        ] {
            assert!(sweep(text).is_err(), "{text}");
        }
        assert_eq!(sweep("8..64 /2").unwrap_err().at, 6..8, "the step, not the space before it");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = (sweep(&text), range(&text));
        }

        #[test]
        fn no_near_miss_panics(text in "[0-9.x+ KMiB]{0,20}") {
            let _ = (sweep(&text), range(&text));
        }

        #[test]
        fn factors_stay_inside_and_multiply(first in 1_u64..100_000, more in 0_u64..1_000_000, factor in 2_u64..10) {
            let last = first + more;
            let sizes = sweep(&format!("{first}..{last} x{factor}")).unwrap();
            prop_assert_eq!(sizes[0], Bytes(first));
            prop_assert!(sizes.windows(2).all(|pair| pair[1] == pair[0] * factor));
            let end = sizes[sizes.len() - 1];
            prop_assert!(end <= Bytes(last) && end * factor > Bytes(last));
        }

        #[test]
        fn steps_stay_inside_and_add(first in 1_u64..100_000, step in 1_u64..100_000, count in 1_u64..1000, odd in 0_u64..100_000) {
            let last = first + step * (count - 1) + odd % step;
            let sizes = sweep(&format!("{first}..{last} +{step}")).unwrap();
            prop_assert_eq!(sizes.len() as u64, count);
            prop_assert!(sizes.windows(2).all(|pair| pair[1] == pair[0] + Bytes(step)));
        }
    }
}
