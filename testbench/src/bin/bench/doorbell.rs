// SPDX-License-Identifier: Apache-2.0
//! From a doorbell's last beat at the device to the first beat of the packet at the MAC.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::{Context, anyhow, ensure};
use openrnic_driver::spec::{Mtu, QpState, WcStatus};
use openrnic_driver::{BatchInit, QpAttr, QpCap, QpInit, SendWr, attr};
use openrnic_sim::device::{BadKeep, Device, MacBeat, TlpBeat, TlpIn, TlpOut};
use openrnic_sim::model::{ModelError, NicModel, NicSpec};
use openrnic_sim::pcie::HostParams;
use openrnic_sim::{World, WorldParams};
use openrnic_testbench::e2e::{Pair, all_access};

use crate::control::LOG_LARGE;
use crate::report::{Limit, Report};

const INLINE: usize = 16;
const SENDS: u64 = 8;

/// What a probe saw, in cycles since its NIC was made.
#[derive(Default)]
struct Seen {
    now: Cell<u64>,
    /// The last beat that the device took of the host's accesses before the frame.
    access: Cell<u64>,
    /// First `tvalid` since this was last emptied.
    frame: Cell<Option<u64>>,
}

/// A NIC whose pins are watched.
struct Probe {
    nic: NicModel,
    offers_last: bool,
    seen: Rc<Seen>,
}

impl Device for Probe {
    fn data_bytes(&self) -> usize {
        self.nic.data_bytes()
    }
    fn set_reset(&mut self, on: bool) {
        self.nic.set_reset(on);
    }
    fn set_bus_master(&mut self, on: bool) {
        self.nic.set_bus_master(on);
    }
    fn set_port_up(&mut self, up: bool) {
        self.nic.set_port_up(up);
    }
    fn set_tlp(&mut self, stream: TlpIn, beat: Option<TlpBeat<'_>>) {
        if stream == TlpIn::Cq {
            self.offers_last = beat.is_some_and(|b| b.last);
        }
        self.nic.set_tlp(stream, beat);
    }
    fn tlp_ready(&self, stream: TlpIn) -> bool {
        self.nic.tlp_ready(stream)
    }
    fn set_tlp_ready(&mut self, stream: TlpOut, ready: bool) {
        self.nic.set_tlp_ready(stream, ready);
    }
    fn tlp(&self, stream: TlpOut) -> Option<TlpBeat<'_>> {
        self.nic.tlp(stream)
    }
    fn set_mac_rx(&mut self, beat: Option<MacBeat<'_>>) {
        self.nic.set_mac_rx(beat);
    }
    fn mac_rx_ready(&self) -> bool {
        self.nic.mac_rx_ready()
    }
    fn set_mac_tx_ready(&mut self, ready: bool) {
        self.nic.set_mac_tx_ready(ready);
    }
    fn mac_tx(&self) -> Result<Option<MacBeat<'_>>, BadKeep> {
        self.nic.mac_tx()
    }

    fn settle(&mut self) -> Result<(), ModelError> {
        self.nic.settle()?;
        let now = self.seen.now.get() + 1;
        self.seen.now.set(now);
        if self.seen.frame.get().is_none() {
            if self.offers_last && self.nic.tlp_ready(TlpIn::Cq) {
                self.seen.access.set(now);
            }
            if matches!(self.nic.mac_tx(), Ok(Some(_))) {
                self.seen.frame.set(Some(now));
            }
        }
        Ok(())
    }

    fn edge(&mut self) -> Result<(), ModelError> {
        self.nic.edge()
    }
}

/// Inline WRITEs on an idle pair, one after the other; the slowest of them counts.
pub fn latency(report: &mut Report) -> anyhow::Result<()> {
    for (width, budget) in [(64, "doorbell_to_wire_64"), (512, "doorbell_to_wire_512")] {
        let cycles = slowest(width)?;
        report.measured(
            format!("doorbell's last beat to first tvalid, WRITE of {INLINE} bytes inline, {width} bits"),
            cycles as f64,
            "cycles",
            Limit::budget(budget)?,
        );
    }
    Ok(())
}

fn slowest(width: usize) -> anyhow::Result<u64> {
    let fail = |e: Box<dyn std::error::Error>| anyhow!("two watched NICs of {width} bits: {e}");
    let mut nic = NicSpec::new(width);
    nic.params.push(("QpIdxW".to_owned(), LOG_LARGE.to_string()));
    let seen = Rc::new(Seen::default());
    let probe = Probe {
        nic: NicModel::new(&nic, "nic0", 1, None)?,
        offers_last: false,
        seen: Rc::clone(&seen),
    };
    let peer = NicModel::new(&nic, "nic1", 2, None)?;
    let params = WorldParams {
        nic,
        host: HostParams::ideal(),
        ..WorldParams::default()
    };
    let world = World::with_devices(&params, vec![Box::new(probe), Box::new(peer)])?.shared();
    let pair = Pair::in_world(world).map_err(fail)?;
    let mut qps = Vec::new();
    for end in &pair.ends {
        let init = QpInit {
            cap: QpCap {
                max_inline_data: INLINE as u32,
                ..QpCap::default()
            },
            ..end.qp_init()
        };
        let attr = QpAttr {
            qp_state: QpState::Init,
            ..QpAttr::default()
        };
        let made = end
            .pd
            .install_qps(1, &init, &BatchInit::default(), &attr, attr::INIT_MASK)?;
        qps.extend(made.qps());
    }
    let [a, b] = [&qps[0], &qps[1]];
    pair.connect([a, b], Mtu::Mtu1024, [100, 200]).map_err(fail)?;
    let target = pair.ends[1].region(64, all_access(), |_| 0).map_err(fail)?;
    let to = target.sge(0, 1).addr;
    let mut slowest = 0;
    for n in 0..SENDS {
        // Whatever went before is over: acknowledges, completions, prefetching.
        pair.run(1000).map_err(fail)?;
        let data = vec![n as u8 + 1; INLINE];
        seen.frame.set(None);
        let wr = SendWr::write(n, Vec::new(), to, target.rkey()).with_inline(data.clone());
        a.post_send(&[wr])?;
        let completion = pair.ends[0].send_cq.wait(1, 100_000)?;
        ensure!(completion[0].status == WcStatus::Success, "{:?}", completion[0]);
        ensure!(target.read(0, INLINE)? == data, "the bytes of WRITE {n} are wrong");
        let frame = seen.frame.get().context("a WRITE completed without a frame")?;
        slowest = slowest.max(frame - seen.access.get());
    }
    Ok(slowest)
}
