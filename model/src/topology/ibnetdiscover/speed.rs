//! How fast a link runs, as InfiniBand names it: `4xHDR`.

/// Data rate of one lane in Gbit/s, by the name of its speed: SDR, DDR and QDR carry 8 of 10 bits of 2.5, 5 and 10 GBd, FDR10 to EDR 64 of
/// 66 bits of 10.3125, 14.0625 and 25.78125 GBd; HDR, NDR and XDR are named by what they carry (InfiniBand Architecture Specification,
/// volume 2; FDR10 is a vendor's speed, at 40 Gbit/s over four lanes).
pub fn lane_gbps(name: &str) -> Option<f64> {
    Some(match name {
        "SDR" => 2.0,
        "DDR" => 4.0,
        "QDR" => 8.0,
        "FDR10" => 10.0,
        "FDR" => 14.0625 * 64.0 / 66.0,
        "EDR" => 25.0,
        "HDR" => 50.0,
        "NDR" => 100.0,
        "XDR" => 200.0,
        _ => return None,
    })
}

pub(super) fn of(text: &str) -> (Option<u32>, Option<String>) {
    let read = |word: &str| {
        let (width, name) = word.split_once('x')?;
        lane_gbps(name)?;
        Some((width.parse().ok().filter(|width| (1..=12).contains(width)), Some(name.to_owned())))
    };
    text.split_whitespace().find_map(read).unwrap_or_default()
}
