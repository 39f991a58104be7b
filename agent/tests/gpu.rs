//! GPU memory on a real GPU: `cargo test -p railgauge-agent --test agent gpu:: -- --ignored --nocapture` on a host with one.

use std::os::fd::AsRawFd;

use railgauge_agent::parts::{Buffer, Device, Part, Stream, Values, kernels, pattern};
use railgauge_wire::{Bytes, Datatype, Pattern, Reduction};

const SIZES: [u64; 8] = [1, 7, 8, 9, 4_095, 65_536, 1_000_003, 64 << 20];

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn by_hand_patterns_on_the_gpu_are_those_of_the_host() {
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    for size in SIZES {
        let pattern = Pattern { size: Bytes(size), seed: 77, iteration: 2 };
        let buffer = Buffer::new(&device, size).unwrap();
        let mut bytes = vec![0; size as usize];
        kernels::fill(&stream, &buffer, 0, &pattern, 3).unwrap();
        stream.to_host(&mut bytes, &buffer, 0).unwrap();
        stream.wait().unwrap();
        assert_eq!(pattern::check(&bytes, &pattern, 3).wrong, Bytes::ZERO, "{size} bytes filled by the GPU");

        kernels::poison(&stream, &buffer, 0, &pattern, 3).unwrap();
        assert_eq!(
            kernels::check(&stream, &buffer, 0, &pattern, 3).unwrap().wrong,
            Bytes(size),
            "every poisoned byte is wrong"
        );

        pattern::fill(&mut bytes, &pattern, 3);
        let at = size * 2 / 3;
        bytes[at as usize] ^= 0x20;
        stream.to_device(&buffer, 0, &bytes).unwrap();
        stream.wait().unwrap();
        let checked = kernels::check(&stream, &buffer, 0, &pattern, 3).unwrap();
        assert_eq!((checked.verified, checked.wrong, checked.first_wrong), (Bytes(size), Bytes(1), Some(at)));
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn by_hand_wrong_elements_are_found_in_every_type() {
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    for datatype in Datatype::ALL {
        let width = datatype.bytes().0;
        let values = Values::new(&stream, *datatype, Some(Reduction::Sum), 4, 9).unwrap();
        let buffer = Buffer::new(&device, 1_000 * width).unwrap();
        let part = Part { at: 0, count: 1_000, offset: 5, first: 2, many: 1 };
        kernels::write_values(&stream, &buffer, &values, &part).unwrap();
        let checked = kernels::check_values(&stream, &buffer, &values, &part).unwrap();
        assert_eq!((checked.verified, checked.wrong), (Bytes(1_000 * width), Bytes::ZERO), "{datatype}");
        for wrong in [Part { first: 1, ..part }, Part { offset: 6, ..part }, Part { many: 2, ..part }] {
            let checked = kernels::check_values(&stream, &buffer, &values, &wrong).unwrap();
            assert!(checked.wrong > Bytes(300 * width), "{datatype}: {wrong:?}: {checked:?}");
        }
        let mut bytes = vec![0; (1_000 * width) as usize];
        stream.to_host(&mut bytes, &buffer, 0).unwrap();
        stream.wait().unwrap();
        bytes[(700 * width) as usize] ^= 1;
        stream.to_device(&buffer, 0, &bytes).unwrap();
        stream.wait().unwrap();
        let checked = kernels::check_values(&stream, &buffer, &values, &part).unwrap();
        assert_eq!((checked.wrong, checked.first_wrong), (Bytes(width), Some(700 * width)), "{datatype}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn by_hand_a_buffer_is_exported_as_a_dma_buf_or_refused_in_words() {
    let device = Device::open(0).unwrap();
    let buffer = Buffer::new(&device, 1_000_000).unwrap();
    match buffer.dma_buf(false) {
        Ok((descriptor, covered, _)) => {
            let link = std::fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd())).unwrap();
            println!("dma-buf: {covered} bytes as {}", link.display());
            assert!(covered >= 1_000_000 && link.to_string_lossy().contains("dmabuf"), "{link:?}");
        }
        Err(failure) => {
            println!("dma-buf refused: {failure}");
            assert!(failure.cause.contains("no dma-buf"), "{failure}");
            assert_eq!(failure.remedy.unwrap().commands()[0].command, "modprobe nvidia_peermem");
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn by_hand_what_is_not_there_is_refused_before_it_is_used() {
    let failure = Device::open(64).err().unwrap();
    assert!(failure.cause.contains("GPU 64 does not exist"), "{failure}");
    let device = Device::open(0).unwrap();
    let failure = Buffer::new(&device, 1 << 50).err().unwrap();
    assert!(failure.cause.contains("are free"), "{failure}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn by_hand_kernels_have_their_speeds() {
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    let size = 4_u64 << 30;
    let pattern = Pattern { size: Bytes(size), seed: 1, iteration: 1 };
    let buffer = Buffer::new(&device, size).unwrap();
    kernels::fill(&stream, &buffer, 0, &pattern, 0).unwrap();
    for _ in 0..3 {
        let begin = std::time::Instant::now();
        kernels::fill(&stream, &buffer, 0, &pattern, 0).unwrap();
        let filled = begin.elapsed();
        let begin = std::time::Instant::now();
        let checked = kernels::check(&stream, &buffer, 0, &pattern, 0).unwrap();
        let speed = |time: std::time::Duration| size as f64 / time.as_secs_f64() / 1e9;
        println!("4 GiB: fill {:.0} GB/s, check {:.0} GB/s", speed(filled), speed(begin.elapsed()));
        assert_eq!(checked.wrong, Bytes::ZERO);
    }
}

#[test]
fn a_host_without_cuda_is_told_so() {
    // On a host with a driver the number is what does not exist; either way it is a failure in words.
    let failure = Device::open(4096).err().unwrap();
    assert!(failure.cause.contains("no CUDA driver") || failure.cause.contains("GPU"), "{failure}");
    assert!(failure.remedy.is_some(), "{failure}");
}
