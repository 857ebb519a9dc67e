// SPDX-License-Identifier: Apache-2.0
//! Function-level reset of one NIC of two, at many moments of live traffic and with commands under way. Nothing of the
//! old life is seen afterwards: no write into its memory, no interrupt, no frame of its queue pairs, no stale entry;
//! what the peer still sends to it meets nobody. New objects work at once, and what the reset took from the host is
//! given back.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use openrnic_driver::spec::{
    CmdHeader, CmdOpcode, CmdStatus, CounterId, EventType, FatalReason, Mtu, QpAttrBit, QpState, WcStatus, regs,
};
use openrnic_driver::{Bus, Device, Error, MemoryRegion, OpenParams, QpAttr, QueuePair, RecvWr, SendWr, attr};
use openrnic_sim::NicBus;
use openrnic_sim::pcie::regs as config;
use openrnic_sim::wire::Direction;
use openrnic_testbench::e2e::{End, Pair, PairParams, all_access};
use openrnic_testbench::flow::{Flow, pattern};

const BUDGET: u64 = 60_000;
const BIG: usize = 20_000;

fn seed() -> u64 {
    let seed = std::env::var("OPENRNIC_SEED").ok().and_then(|s| s.parse().ok());
    seed.unwrap_or(1)
}

fn pair(width: usize, log_event_queue: u32) -> Pair {
    println!("width {width}, OPENRNIC_SEED={}", seed());
    let mut params = PairParams::new(width, seed());
    params.open = OpenParams {
        dma_timeout_cycles: Some(4000),
        command_cycles: BUDGET,
        log_event_queue,
        ..OpenParams::default()
    };
    Pair::new(params).unwrap()
}

/// Destination QPNs of the RoCE frames that a NIC sent, taken from UDP frames to port 4791.
fn watch(pair: &Pair, nic: usize) -> Rc<RefCell<BTreeSet<u32>>> {
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let log = Rc::clone(&seen);
    pair.world.borrow_mut().wire().observe(move |event| {
        if event.nic == nic && event.direction == Direction::Out && event.frame.len() >= 54 {
            let qpn = event.frame[42 + 5..42 + 8]
                .iter()
                .fold(0, |n, b| n << 8 | u32::from(*b));
            log.borrow_mut().insert(qpn);
        }
    });
    seen
}

/// Traffic that is far from done when the reset comes: every QP has a receive, and long messages both ways.
struct Life {
    qps: Vec<[QueuePair<NicBus>; 2]>,
    regions: [MemoryRegion<NicBus>; 2],
}

impl Life {
    fn new(pair: &Pair) -> Self {
        let regions = [0, 1].map(|n: usize| pair.ends[n].region(2 * BIG, all_access(), pattern(n as u64)).unwrap());
        let qps = (0..4).map(|n| pair.connected(Mtu::Mtu1024, [n * 1000, n * 77]).unwrap());
        Self {
            qps: qps.collect(),
            regions,
        }
    }

    fn post(&self) {
        for n in 0..2 {
            for qps in &self.qps {
                let (own, other) = (&self.regions[n], &self.regions[1 - n]);
                let sges = vec![own.sge(BIG, BIG as u32)];
                qps[n].post_recv(&[RecvWr { wr_id: 1, sges }]).unwrap();
                let to = other.sge(BIG, 1).addr;
                let all = vec![own.sge(0, BIG as u32)];
                qps[n]
                    .post_send(&[
                        SendWr::write(2, all.clone(), to, other.rkey()),
                        SendWr::send(3, all),
                        SendWr::read(4, vec![own.sge(BIG, BIG as u32)], other.sge(0, 1).addr, other.rkey()),
                    ])
                    .unwrap();
            }
        }
    }

    /// Commands of every kind, submitted and not awaited.
    fn commands(&self, device: &Device<NicBus>) {
        let header = |opcode: CmdOpcode| CmdHeader::new().with_opcode(opcode.into()).0;
        for n in 0..12 {
            let command = match n % 3 {
                0 => header(CmdOpcode::CreatePd),
                1 => {
                    CmdHeader(header(CmdOpcode::DestroyMr))
                        .with_handle(self.regions[0].lkey().0)
                        .0
                }
                _ => header(CmdOpcode::ListQp),
            };
            let _ticket = device.submit(command).unwrap();
        }
    }
}

/// The peer of a NIC that was reset: its old QPs fail by themselves when their retries are spent, and no byte of the
/// new life gets to them.
fn old_peers_end(pair: &Pair, life: &Life) {
    for qps in &life.qps {
        qps[1].to_err().unwrap();
    }
    pair.run(2000).unwrap();
    let mut statuses = BTreeSet::new();
    for cq in [&pair.ends[1].send_cq, &pair.ends[1].recv_cq] {
        statuses.extend(cq.poll(1000).unwrap().iter().map(|wc| wc.status.name()));
    }
    let allowed = [WcStatus::Success, WcStatus::WrFlushErr, WcStatus::RetryExcErr].map(WcStatus::name);
    assert!(statuses.iter().all(|s| allowed.contains(s)), "{statuses:?}");
    for qps in &life.qps {
        qps[1].destroy().unwrap();
    }
}

/// By the driver: bus mastering off, reset, everything anew. Its memory is freed at once, so that a late write would be
/// a violation.
#[test]
fn a_reset_by_the_driver_under_traffic_leaves_nothing_behind() {
    for width in [64, 512] {
        let mut pair = pair(width, 10);
        let sent = watch(&pair, 0);
        let mut old = BTreeSet::new();
        let mut free = None;
        // From the first doorbell's read to the middle of the messages.
        for (round, moment) in [0u64, 40, 150, 333, 700, 1301, 2600].into_iter().enumerate() {
            let life = Life::new(&pair);
            let stale = Flow::new(&pair, Mtu::Mtu512, 3).unwrap();
            old.extend(life.qps.iter().map(|qps| qps[1].qpn().0));
            old.insert(stale.qps[1].qpn().0);
            life.post();
            pair.run(moment).unwrap();
            let device = pair.ends[0].device.clone();
            if round % 2 == 1 {
                life.commands(&device);
            }
            device.reset().unwrap();
            sent.borrow_mut().clear();
            // Handles of the old life are stale, and say so.
            let gone = |e: Option<Error>| assert!(matches!(e, Some(Error::Stale { .. })), "{e:?}");
            gone(life.qps[0][0].query().err());
            gone(life.qps[0][0].post_send(&[SendWr::send(1, vec![])]).err());
            gone(life.regions[0].read(0, 1).err());
            gone(pair.ends[0].send_cq.poll(1).err());
            gone(pair.ends[0].pd.dealloc().err());
            assert_eq!(device.outstanding().unwrap(), 0);
            assert_eq!(device.get_async_event().unwrap(), None);

            pair.ends[0] = End::set_up(device, 0).unwrap();
            // What the peer still has in flight is for nobody here, whoever has the index now.
            let flow = Flow::new(&pair, Mtu::Mtu1024, 9).unwrap();
            flow.round(BUDGET).unwrap_or_else(|e| panic!("round {round}: {e}"));
            flow.round(BUDGET).unwrap_or_else(|e| panic!("round {round}: {e}"));
            let reached: Vec<_> = sent.borrow().intersection(&old).copied().collect();
            assert_eq!(reached, [0u32; 0], "round {round}: frames to QPs of an old life's peer");
            for cq in [&pair.ends[0].send_cq, &pair.ends[0].recv_cq] {
                assert_eq!(cq.poll(100).unwrap(), [], "round {round}");
            }
            assert_eq!(pair.ends[0].events().unwrap(), [], "round {round}");
            let counted = pair.ends[0].device.counters().unwrap();
            assert_eq!(counted.get(CounterId::DmaCplUnexpected), 0, "round {round}");
            assert_eq!(counted.get(CounterId::RxDropLength), 0, "round {round}");
            old_peers_end(&pair, &life);
            stale.qps[1].destroy().unwrap();
            // What one round leaves, the next one leaves: the host's memory does not leak away.
            for qp in &flow.qps {
                qp.destroy().unwrap();
            }
            let device = pair.ends[0].device.clone();
            device.reset().unwrap();
            let now = pair.world.borrow_mut().host(0).unwrap().memory.free_bytes();
            assert_eq!(*free.get_or_insert(now), now, "round {round}: free bytes");
            pair.ends[0] = End::set_up(device, 0).unwrap();
        }
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    }
}

/// The harshest reset: without a word before, as firmware or a hypervisor may do, and with another driver after it. The
/// old driver's memory stays mapped: not a bit of it changes from that moment on.
#[test]
fn a_reset_without_warning_and_another_driver_after_it() {
    for width in [64, 512] {
        for moment in [60u64, 500, 1111] {
            let mut pair = pair(width, 10);
            let sent = watch(&pair, 0);
            let life = Life::new(&pair);
            life.post();
            pair.run(moment).unwrap();
            life.commands(&pair.ends[0].device);
            let snapshot = {
                let mut world = pair.world.borrow_mut();
                let control = world.host(0).unwrap().config_read(config::DEVICE_CONTROL);
                world
                    .config_write(0, config::DEVICE_CONTROL, control | config::DEVICE_CONTROL_FLR)
                    .unwrap();
                let host = world.host(0).unwrap();
                assert!(host.in_reset());
                let taken = std::iter::from_fn(|| host.take_interrupt()).count();
                assert_eq!(taken, 0, "interrupts that the reset has overtaken");
                host.memory.snapshot()
            };
            sent.borrow_mut().clear();
            // It comes back deaf and dumb: no bus mastering, no BAR, and nothing on the wire.
            pair.run(3000).unwrap();
            {
                let mut world = pair.world.borrow_mut();
                let host = world.host(0).unwrap();
                assert!(!host.in_reset() && !host.bar_mapped());
                assert_eq!(host.config_read(config::COMMAND) & config::COMMAND_BUS_MASTER, 0);
                assert!(host.take_interrupt().is_none());
            }
            assert_eq!(sent.borrow().len(), 0, "frames of a function that nobody has enabled");

            let open = OpenParams {
                command_cycles: BUDGET,
                ..OpenParams::default()
            };
            let device = Device::open(NicBus::new(&pair.world, 0).unwrap(), open).unwrap();
            let old_qpn = life.qps[0][0].qpn();
            pair.ends[0] = End::set_up(device, 0).unwrap();
            let flow = Flow::new(&pair, Mtu::Mtu1024, 9).unwrap();
            assert_ne!(flow.qps[0].qpn(), old_qpn, "a number that was in use before the reset");
            flow.round(BUDGET).unwrap();
            flow.round(BUDGET).unwrap();
            let old: Vec<u32> = life.qps.iter().map(|qps| qps[1].qpn().0).collect();
            assert!(
                sent.borrow().iter().all(|qpn| !old.contains(qpn)),
                "{:x?}",
                sent.borrow()
            );
            let mut world = pair.world.borrow_mut();
            let memory = &world.host(0).unwrap().memory;
            for (addr, bytes) in &snapshot {
                let now = memory.get(*addr, bytes.len()).unwrap();
                assert!(now == bytes, "a buffer of the old life at {addr:#x} was written");
            }
            assert!(world.take_violations().is_empty());
        }
    }
}

/// QPs of the peer that nobody answers give up by themselves, and what they sent to the reset NIC was for nobody.
#[test]
fn the_peer_of_a_reset_nic_gives_up_and_reaches_nobody() {
    for width in [64, 512] {
        let mut pair = pair(width, 10);
        let life = Life::new(&pair);
        pair.ends[0].device.reset().unwrap();
        let device = pair.ends[0].device.clone();
        pair.ends[0] = End::set_up(device, 0).unwrap();
        // The same indices live again.
        let flow = Flow::new(&pair, Mtu::Mtu1024, 9).unwrap();
        let again = pair.install(8).unwrap();
        assert_eq!(again[0].qpns().len(), 8);
        let before = pair.ends[0].device.counters().unwrap();
        let (own, other) = (&life.regions[1], &life.regions[0]);
        for qps in &life.qps {
            let to = other.sge(0, 1).addr;
            let write = SendWr::write(2, vec![own.sge(0, 3000)], to, other.rkey());
            qps[1].post_send(&[write]).unwrap();
        }
        flow.round(BUDGET).unwrap();
        // One timeout of 262 us and then some: every request was sent again at least once.
        pair.run(262_000_000 / if width == 64 { 8000 } else { 4000 } * 5 / 4)
            .unwrap();
        let counted = pair.ends[0].device.counters().unwrap().since(&before);
        assert!(
            counted.get(CounterId::RxDropQpn) >= 4 * 3 * 2,
            "{:?}",
            counted.get(CounterId::RxDropQpn)
        );
        assert!(pair.ends[1].device.counter(CounterId::Timeouts).unwrap() >= 4);
        flow.round(BUDGET).unwrap();
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    }
}

// ---------------------------------------------------------------------------------------------- fatal states

fn works_again(pair: &mut Pair, n: usize) {
    let device = pair.ends[n].device.clone();
    device.reset().unwrap();
    assert_eq!(device.fatal_reason().unwrap(), None);
    pair.ends[n] = End::set_up(device, n).unwrap();
    let flow = Flow::new(pair, Mtu::Mtu1024, 9).unwrap();
    flow.round(BUDGET).unwrap();
    flow.round(BUDGET).unwrap();
    assert_eq!(pair.ends[n].events().unwrap(), []);
    assert!(pair.world.borrow_mut().take_violations().is_empty());
}

/// End 1 gets a packet on `count` QPs in RTR: as many COMM_EST events.
fn events(pair: &Pair, count: u32) {
    let [a, b] = pair.install(count).unwrap();
    let src = pair.ends[0].region(64, all_access(), pattern(1)).unwrap();
    let dst = pair.ends[1].region(64, all_access(), |_| 0).unwrap();
    for (a, b) in a.qps().iter().zip(b.qps()) {
        let (rtr, rts) = pair.connect_attrs(0, &b, Mtu::Mtu1024, [1, 2]);
        a.modify(&rtr, attr::RTR_MASK).unwrap();
        a.modify(&rts, attr::RTS_MASK).unwrap();
        let (rtr, _) = pair.connect_attrs(1, a, Mtu::Mtu1024, [1, 2]);
        b.modify(&rtr, attr::RTR_MASK).unwrap();
    }
    for a in a.qps() {
        let to = dst.sge(0, 1).addr;
        a.post_send(&[SendWr::write(1, vec![src.sge(0, 64)], to, dst.rkey())])
            .unwrap();
    }
    // Nobody looks after the event queue meanwhile.
    pair.run(10_000).unwrap();
}

#[test]
fn an_event_queue_that_nobody_empties_stops_the_device_until_it_is_reset() {
    for width in [64, 512] {
        let mut pair = pair(width, 2);
        pair.ends[1].events().unwrap();
        // As many as the queue takes: all is well.
        events(&pair, 4);
        let got = pair.ends[1].events().unwrap();
        assert_eq!(got.len(), 4);
        assert!(got.iter().all(|e| e.0 == EventType::CommEst), "{got:?}");
        assert_eq!(pair.ends[1].device.fatal_reason().unwrap(), None);
        // One more: it is lost, and the device says so.
        events(&pair, 5);
        let device = pair.ends[1].device.clone();
        assert_eq!(device.fatal_reason().unwrap(), Some(FatalReason::EqOverrun));
        assert_eq!(device.counter(CounterId::EqOverrun).unwrap(), 1);
        // The four before it are there; commands complete, with that status.
        assert_eq!(pair.ends[1].events().unwrap().len(), 4);
        let refused = device.alloc_pd().err().and_then(|e| e.status());
        assert_eq!(refused, Some(CmdStatus::Fatal));
        works_again(&mut pair, 1);
    }
}

#[test]
fn a_device_that_was_made_fatal_under_traffic_stops_and_works_after_a_reset() {
    for width in [64, 512] {
        let mut pair = pair(width, 10);
        let life = Life::new(&pair);
        life.post();
        pair.run(400).unwrap();
        let device = pair.ends[0].device.clone();
        let force = |bus: &mut NicBus| bus.mmio_write32(u64::from(regs::CTRL_FORCE_FATAL), 0x4641_5441);
        device.with_bus(force).unwrap().unwrap();
        assert_eq!(device.fatal_reason().unwrap(), Some(FatalReason::HostRequest));
        // What was under way comes to its end, then nothing is sent any more.
        pair.run(6000).unwrap();
        let frames = |pair: &Pair| pair.world.borrow_mut().wire().stats(0).sent;
        let sent = frames(&pair);
        pair.run(20_000).unwrap();
        assert_eq!(frames(&pair), sent);
        let got = pair.ends[0].events().unwrap();
        assert_eq!(got.last().map(|e| e.0), Some(EventType::DeviceFatal), "{got:?}");
        assert_eq!(device.alloc_pd().err().and_then(|e| e.status()), Some(CmdStatus::Fatal));
        works_again(&mut pair, 0);
        let state = life.qps[0][1].query().unwrap().state;
        assert!(matches!(state, QpState::Rts | QpState::Err));
        let to_err = QpAttr {
            qp_state: QpState::Err,
            ..QpAttr::default()
        };
        life.qps[0][1].modify(&to_err, QpAttrBit::STATE).unwrap();
    }
}
