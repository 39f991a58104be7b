//! Matrix products of AMD's GPUs, with a double of hipBLASLt (`examples/hipblaslt_double.rs`) beside that of HIP.

use std::path::PathBuf;

use railgauge_wire::{Bytes, Carrier, Checked, Kind, NodeAccount, Precision};

use super::{
    hip::{HIP, HIPRTC, rocm, with},
    multiplied,
};
use crate::double::folder_of;

fn folder() -> PathBuf {
    folder_of(&[("hip_double", &[HIP, HIPRTC]), ("hipblaslt_double", &["libhipblaslt.so.0"])])
}

fn on_amd(precision: Precision, settings: &[(&str, &str)]) -> NodeAccount {
    multiplied(precision, &with(&folder(), settings))
}

#[test]
fn products_of_hipblaslt_are_counted_and_verified_before_and_after() {
    for precision in Precision::ALL {
        let account = on_amd(*precision, &[]);
        assert_eq!(account.account.failure, None, "{precision}");
        let measured = account.account.measured.as_ref().unwrap();
        assert_eq!((measured.operations, measured.flops), (20, 20 * 2 * 32 * 32 * 32), "{precision}");
        let verified = Bytes(2 * precision.square(32).0);
        assert_eq!(account.account.checked, Checked { verified, wrong: Bytes::ZERO, first_wrong: None }, "{precision}");
        let told = ["precision", "library", "algorithm"].map(|name| account.settings[name].as_str());
        assert_eq!(told, [precision.word(), "libhipblaslt.so.0 (1100)", "not reported by hipBLASLt"]);
        assert_eq!(account.carrier, Some(Carrier::Hipblaslt));
    }
}

#[test]
fn elements_of_8_bits_are_those_of_the_generation() {
    // gfx942 has FNUZ, gfx950 and gfx12 have OCP's: the double reads each by the type that it is told.
    for generation in ["94", "95", "120"] {
        let account = on_amd(Precision::Fp8, &[("HIP_DOUBLE_GENERATION", generation)]);
        assert_eq!((account.account.failure, account.account.checked.wrong), (None, Bytes::ZERO), "gfx{generation}x");
    }
}

#[test]
fn a_wrong_element_of_hipblaslt_is_found() {
    for precision in Precision::ALL {
        let checked = |fault: &str| on_amd(*precision, &[("HIPBLASLT_DOUBLE", fault)]).account.checked;
        let (width, all) = (precision.result().0, Bytes(2 * precision.square(32).0));
        let wrong = Checked { verified: all, wrong: Bytes(2 * width), first_wrong: Some((5 * 32 + 3) * width) };
        assert_eq!((checked("wrong"), checked("lazy").wrong), (wrong, all), "{precision}");
        assert!(checked("part").wrong > Bytes(all.0 / 2), "{precision}");
    }
}

#[test]
fn products_that_a_gpu_of_amd_does_not_have_are_refused_in_words() {
    let refused = |precision, settings: &[(&str, &str)]| {
        let failure = on_amd(precision, settings).account.failure.unwrap();
        (failure.kind, failure.cause.clone(), failure.remedy.map(|remedy| remedy.id.to_string()))
    };
    let (kind, cause, remedy) = refused(Precision::Fp8, &[("HIP_DOUBLE_GENERATION", "90")]);
    assert_eq!((kind, remedy.as_deref()), (Kind::Unsupported, Some("other-precision")));
    let words = "FP8 is multiplied on gfx942, gfx950 and gfx12 alone; GPU 0 (double of a GPU) is gfx90x";
    assert!(cause.contains(words), "{cause}");
    let (_, cause, _) = refused(Precision::Tf32, &[("HIP_DOUBLE_GENERATION", "95")]);
    assert!(cause.contains("TF32 is multiplied on gfx942 alone; GPU 0 (double of a GPU) is gfx95x"), "{cause}");
    let (_, cause, remedy) = refused(Precision::Bf16, &[("HIPBLASLT_DOUBLE", "none")]);
    assert!(cause.contains("libhipblaslt.so.0 (1100): looking for an algorithm: status 15"), "{cause}");
    assert_eq!(remedy.as_deref(), Some("other-precision"));
    let (_, cause, remedy) = refused(Precision::Bf16, &[("HIPBLASLT_DOUBLE", "dead")]);
    assert!(cause.contains("hipBLASLt cannot be used") && cause.contains("starting libhipblaslt.so.0"), "{cause}");
    assert_eq!(remedy.as_deref(), Some("install-hipblaslt"));
    let failure = multiplied(Precision::Bf16, &with(&rocm(), &[])).account.failure.unwrap();
    assert!(failure.cause.contains("hipBLASLt cannot be used: libhipblaslt.so.1: cannot open"), "{failure}");
}
