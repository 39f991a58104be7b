//! The thread's work, with a double of NVML.

use std::{sync::mpsc::channel, time::Duration};

use railgauge_wire::{GpuReading, Hold, gpu_state::counter};

use super::*;
use crate::gpu::vendor::Vendor;

const A: &str = "0000:1b:00.0";
const B: &str = "0000:43:00.0";

#[derive(Default)]
struct Double {
    replays: u64,
    held: Vec<Hold>,
    xids: Vec<u32>,
    gone: Option<&'static str>,
    reads: u64,
    reader: Option<Sender<u64>>,
}

impl Double {
    fn known(&self, pci: &str) -> Result<(), Unread> {
        let is_gone = self.gone == Some(pci);
        if is_gone {
            Err(Unread::Gpu { of: Vendor::Nvidia, pci: pci.to_owned(), why: "not found".into() })
        } else {
            Ok(())
        }
    }
}

impl Cards for Double {
    fn read(&mut self, pci: &str) -> Result<GpuReading, Unread> {
        self.known(pci).map_err(|_| Unread::Lost(pci.to_owned()))?;
        self.reads += 1;
        self.reader.iter().for_each(|reader| reader.send(self.reads).unwrap());
        let held = Some(self.held.iter().copied().collect());
        Ok(GpuReading { at: clock::now(), sm_mhz: Some(1980), held, ..GpuReading::default() })
    }

    fn counters(&mut self, pci: &str) -> Result<Values, Unread> {
        self.known(pci)?;
        Ok([(counter::PCIE_REPLAYS.to_owned(), self.replays), (counter::ECC_UNCORRECTED.to_owned(), 2)].into())
    }

    fn lasting(&mut self, pci: &str) -> Result<Lasting, Unread> {
        self.known(pci)?;
        Ok(Lasting { index: Some(u32::from(pci == B)), ..Lasting::default() })
    }

    fn xids(&mut self, pci: &str) -> Result<Option<Vec<u32>>, Unread> {
        // Those of a GPU that is lost are reported once more.
        Ok(Some(if pci == A { std::mem::take(&mut self.xids) } else { Vec::new() }))
    }
}

fn begin(sampler: &mut Sampler<Double>, span: u64, gpus: &[&str], every: Nanoseconds) {
    sampler.obey(Order::Begin {
        span,
        gpus: gpus.iter().map(|pci| (*pci).to_owned()).collect(),
        every,
        asked: clock::now(),
    });
}

fn end(sampler: &mut Sampler<Double>, span: u64) -> BTreeMap<String, OfGpu> {
    let (answer, read) = channel();
    sampler.obey(Order::End { span, answer, asked: clock::now() });
    read.recv().unwrap()
}

const SECOND: Nanoseconds = Nanoseconds::from_secs(1);

#[test]
fn a_case_learns_what_rose_and_what_was_told_between_its_ends() {
    let mut sampler = Sampler::new(Box::new(Double { replays: 5, xids: vec![31], ..Double::default() }));
    begin(&mut sampler, 1, &[A, B], SECOND);
    sampler.round();
    (sampler.source.replays, sampler.source.xids) = (12, vec![79]);
    let read = end(&mut sampler, 1);
    let of = &read[A];
    assert_eq!(of.counted, [(counter::PCIE_REPLAYS.to_owned(), 7), (counter::ECC_UNCORRECTED.to_owned(), 0)].into());
    assert_eq!((of.readings.len(), of.xids.as_deref(), &of.failure), (3, Some(&[79][..]), &None));
    assert_eq!((read[B].xids.as_deref(), read[B].lasting.index), (Some(&[][..]), Some(1)));
    assert!(sampler.read.is_empty() && sampler.due().is_none());
}

#[test]
fn cases_at_the_same_time_share_readings_and_not_counts() {
    let mut sampler = Sampler::new(Box::new(Double::default()));
    begin(&mut sampler, 1, &[A], SECOND);
    sampler.source.replays = 3;
    begin(&mut sampler, 2, &[A], SECOND / 4);
    assert_eq!(sampler.due().unwrap().saturating_sub(sampler.last.0), SECOND / 4);
    sampler.source.xids = vec![48];
    let (second, first) = (end(&mut sampler, 2), end(&mut sampler, 1));
    assert_eq!((second[A].counted[counter::PCIE_REPLAYS], first[A].counted[counter::PCIE_REPLAYS]), (0, 3));
    // An Xid is reported once by the driver, and meets both.
    assert_eq!((second[A].xids.as_deref(), first[A].xids.as_deref()), (Some(&[48][..]), Some(&[48][..])));
    assert_eq!((second[A].readings.len(), first[A].readings.len()), (3, 4));
}

#[test]
fn a_gpu_that_is_lost_is_told_and_the_other_is_read() {
    let mut sampler = Sampler::new(Box::new(Double::default()));
    begin(&mut sampler, 1, &[A, B], SECOND);
    sampler.source.gone = Some(B);
    sampler.round();
    let read = end(&mut sampler, 1);
    // What follows from the loss does not hide it, and the GPU is still called what it was called at the start.
    assert_eq!((&read[B].failure, read[B].lasting.index), (&Some(Unread::Lost(B.to_owned())), Some(1)));
    assert!(read[B].counted.is_empty() && read[A].failure.is_none() && read[A].readings.len() == 3);
}

#[test]
fn what_nobody_asks_for_is_forgotten() {
    let mut sampler = Sampler::new(Box::new(Double::default()));
    begin(&mut sampler, 1, &[A], SECOND);
    sampler.obey(Order::Forget { span: 1 });
    assert!(sampler.read.is_empty() && sampler.open.is_empty());
    assert!(end(&mut sampler, 1).is_empty());
}

#[test]
fn readings_that_cost_too_much_are_made_less_often() {
    let mut sampler = Sampler::new(Box::new(Double::default()));
    begin(&mut sampler, 1, &[A], Nanoseconds::from_millis(100));
    sampler.last = (SECOND, Nanoseconds::from_millis(20));
    assert_eq!(sampler.due(), Some(SECOND * 2));
}

#[test]
fn the_thread_reads_again_and_again_until_the_case_ends() {
    let ((to, orders), (reader, reads)) = (channel(), channel());
    let double = Double { reader: Some(reader), ..Double::default() };
    let thread = std::thread::spawn(move || Sampler::new(Box::new(double)).run(&orders));
    to.send(Order::Begin {
        span: 1,
        gpus: vec![A.to_owned()],
        every: Nanoseconds::from_millis(20),
        asked: clock::now(),
    })
    .unwrap();
    while reads.recv_timeout(Duration::from_secs(60)).unwrap() < 4 {}
    let (answer, read) = channel();
    to.send(Order::End { span: 1, answer, asked: clock::now() }).unwrap();
    assert!(read.recv().unwrap()[A].readings.len() >= 4);
    drop(to);
    thread.join().unwrap();
}

/// A library may take a tenth of a second for each reading, and a NIC may take thirty flows of one GPU.
#[test]
fn cases_that_begin_and_end_together_are_served_by_one_reading() {
    let mut sampler = Sampler::new(Box::new(Double::default()));
    let asked = clock::now();
    for span in 0..30 {
        sampler.obey(Order::Begin { span, gpus: vec![A.to_owned()], every: SECOND, asked });
    }
    assert_eq!(sampler.source.reads, 1);
    sampler.source.replays = 2;
    let asked = clock::now();
    let ended: Vec<_> = (0..30)
        .map(|span| {
            let (answer, read) = channel();
            sampler.obey(Order::End { span, answer, asked });
            read.recv().unwrap()
        })
        .collect();
    assert_eq!(sampler.source.reads, 2);
    for read in ended {
        assert_eq!((read[A].readings.len(), read[A].counted[counter::PCIE_REPLAYS]), (2, 2));
    }
}

/// The thread was busy when a short case began: what it reads then is not a reading of the end.
#[test]
fn a_begin_that_is_late_is_not_taken_for_the_end() {
    let mut sampler = Sampler::new(Box::new(Double::default()));
    let asked = clock::now();
    sampler.obey(Order::Begin { span: 1, gpus: vec![A.to_owned()], every: SECOND, asked });
    sampler.source.replays = 1;
    let (answer, read) = channel();
    sampler.obey(Order::End { span: 1, answer, asked });
    assert_eq!(read.recv().unwrap()[A].counted[counter::PCIE_REPLAYS], 1);
}
