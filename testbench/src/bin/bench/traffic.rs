// SPDX-License-Identifier: Apache-2.0
//! The data path: goodput of large WRITEs against what the wire can carry, and the pace of small ones.

use anyhow::{anyhow, bail, ensure};
use openrnic_driver::spec::{CounterId, Mtu, WcStatus};
use openrnic_driver::{MemoryRegion, QueuePair, SendWr};
use openrnic_sim::NicBus;
use openrnic_sim::wire::FRAME_OVERHEAD;
use openrnic_testbench::e2e::{Pair, all_access};

use crate::control::{LOG_LARGE, ideal};
use crate::report::Report;

/// Bytes of a large WRITE.
pub const WRITE_BYTES: u32 = 64 << 10;
/// WRITEs that a flow keeps in the send queue.
const DEPTH: u64 = 8;
const MTU: usize = 1024;
/// Ethernet, IPv4, UDP, BTH, ICRC.
pub const HEADERS: usize = 14 + 20 + 8 + 12 + 4;
const RETH: usize = 16;
const AETH: usize = 4;

/// WRITEs from one end to the other, back to back, on a QP of their own.
pub struct Flow<'a> {
    pair: &'a Pair,
    from: usize,
    qp: QueuePair<NicBus>,
    bytes: u32,
    src: MemoryRegion<NicBus>,
    dst: MemoryRegion<NicBus>,
    posted: u64,
    /// WRITEs that completed.
    pub done: u64,
}

impl<'a> Flow<'a> {
    /// Connects a pair of QPs and fills the send queue.
    pub fn new(pair: &'a Pair, from: usize, bytes: u32) -> anyhow::Result<Self> {
        Self::with_mtu(pair, from, bytes, Mtu::Mtu1024)
    }

    /// As [`new`](Self::new), with packets of another size.
    pub fn with_mtu(pair: &'a Pair, from: usize, bytes: u32, mtu: Mtu) -> anyhow::Result<Self> {
        let fail = |e: Box<dyn std::error::Error>| anyhow!("setting up WRITEs: {e}");
        let [a, b] = pair.connected(mtu, [100, 200]).map_err(fail)?;
        let region = |end: usize, fill: u8| pair.ends[end].region(bytes as usize, all_access(), |i| i as u8 ^ fill);
        let mut flow = Self {
            pair,
            from,
            qp: if from == 0 { a } else { b },
            bytes,
            src: region(from, 0xa5).map_err(fail)?,
            dst: region(1 - from, 0).map_err(fail)?,
            posted: 0,
            done: 0,
        };
        flow.top_up()?;
        Ok(flow)
    }

    /// Takes completions and posts as many WRITEs.
    pub fn top_up(&mut self) -> anyhow::Result<()> {
        for completion in self.pair.ends[self.from].send_cq.poll(64)? {
            ensure!(
                completion.status == WcStatus::Success,
                "WRITE {} of NIC {} ended with {:?}",
                completion.wr_id,
                self.from,
                completion.status
            );
            self.done += 1;
        }
        while self.posted < self.done + DEPTH {
            let to = self.dst.sge(0, self.bytes);
            let wr = SendWr::write(self.posted, vec![self.src.sge(0, self.bytes)], to.addr, self.dst.rkey());
            self.qp.post_send(&[wr])?;
            self.posted += 1;
        }
        Ok(())
    }

    /// Whether the last message stands where it belongs.
    fn arrived(&self) -> anyhow::Result<bool> {
        let len = self.bytes as usize;
        Ok(self.dst.read(0, len)? == self.src.read(0, len)?)
    }
}

/// For information: the budgets of the data path are those of a later slice.
pub fn traffic(report: &mut Report) -> anyhow::Result<()> {
    for width in [64, 512] {
        let pair = ideal(width, LOG_LARGE)?;
        let lanes = width as f64 / 8.0;
        for (way, from) in [("one way", &[0][..]), ("both ways, each", &[0, 1])] {
            let before = again_and_lost(&pair)?;
            let pace = bytes_per_cycle(&pair, from, WRITE_BYTES, 16)?;
            let after = again_and_lost(&pair)?;
            let name = format!("64 KiB WRITEs {way}, {width} bits");
            report.info(
                format!("goodput of {name}"),
                100.0 * pace / (lanes * share(from.len() > 1)),
                "% of the wire's bound",
            );
            // A receiver that is slower than the wire shows here: it drops, and the other end sends again.
            report.info(format!("{name}: sent again"), (after.0 - before.0) as f64, "packets");
            report.info(
                format!("{name}: dropped for want of room"),
                (after.1 - before.1) as f64,
                "packets",
            );
        }
        let small = bytes_per_cycle(&pair, &[0], 64, 256)?;
        report.info(format!("64-byte WRITE, one QP, {width} bits"), 64.0 / small, "cycles");
    }
    Ok(())
}

/// The share of the line that payload can have: data at PMTU, an acknowledge per 16 packets in the other direction.
fn share(acks_too: bool) -> f64 {
    let packets = WRITE_BYTES as usize / MTU;
    let data = packets * (MTU + HEADERS + FRAME_OVERHEAD) + RETH;
    let acks = packets.div_ceil(16) * (60.max(HEADERS + AETH) + FRAME_OVERHEAD);
    f64::from(WRITE_BYTES) / (data + if acks_too { acks } else { 0 }) as f64
}

/// Payload bytes per cycle and direction, once the flows run.
fn bytes_per_cycle(pair: &Pair, from: &[usize], bytes: u32, messages: u64) -> anyhow::Result<f64> {
    let mut flows = from
        .iter()
        .map(|from| Flow::new(pair, *from, bytes))
        .collect::<anyhow::Result<Vec<_>>>()?;
    run_until(pair, &mut flows, DEPTH)?;
    let start = pair.world.borrow().cycle();
    let before: u64 = flows.iter().map(|f| f.done).sum();
    run_until(pair, &mut flows, DEPTH + messages)?;
    let cycles = pair.world.borrow().cycle() - start;
    let done: u64 = flows.iter().map(|f| f.done).sum::<u64>() - before;
    // Let what is under way end, so that the next measurement finds a quiet pair.
    for flow in &mut flows {
        let rest = (flow.posted - flow.done) as usize;
        for completion in pair.ends[flow.from].send_cq.wait(rest, 1_000_000)? {
            ensure!(completion.status == WcStatus::Success, "{completion:?}");
        }
        ensure!(flow.arrived()?, "the bytes of a WRITE from NIC {} are wrong", flow.from);
    }
    Ok((done * u64::from(bytes)) as f64 / cycles as f64 / from.len() as f64)
}

fn run_until(pair: &Pair, flows: &mut [Flow<'_>], done: u64) -> anyhow::Result<()> {
    let start = pair.world.borrow().cycle();
    while flows.iter().any(|f| f.done < done) {
        let waited = pair.world.borrow().cycle() - start;
        if waited >= 2_000_000 {
            let came: Vec<u64> = flows.iter().map(|f| f.done).collect();
            bail!(
                "after {waited} cycles only {came:?} WRITEs completed of {done} each; counters: {}",
                counters(pair)?
            );
        }
        pair.world.borrow_mut().run(16)?;
        flows.iter_mut().try_for_each(Flow::top_up)?;
    }
    Ok(())
}

/// Packets that both devices sent again, and that they dropped because their buffers were full.
fn again_and_lost(pair: &Pair) -> anyhow::Result<(u64, u64)> {
    let (mut again, mut lost) = (0, 0);
    for end in &pair.ends {
        for (id, value) in end.device.counters()?.iter() {
            match id {
                CounterId::Retransmissions => again += value,
                CounterId::RxDropOverflow => lost += value,
                _ => {}
            }
        }
    }
    Ok((again, lost))
}

/// What the devices counted: tells why traffic stands still.
fn counters(pair: &Pair) -> anyhow::Result<String> {
    let mut text = Vec::new();
    for (n, end) in pair.ends.iter().enumerate() {
        for (id, value) in end.device.counters()?.iter().filter(|(_, value)| *value > 0) {
            text.push(format!("NIC {n} {id:?} {value}"));
        }
    }
    Ok(text.join(", "))
}
