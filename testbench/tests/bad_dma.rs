// SPDX-License-Identifier: Apache-2.0
//! Hosts that fail a DMA read: refused, aborted, poisoned, answered too late, in part or never. Whatever was being read
//! (a command, its records or list, a work request, payload), exactly that fails with its reason, the rest of the device
//! goes on, and what failed can be brought back.
#![allow(clippy::unwrap_used)]

use openrnic_driver::spec::{
    CmdFlag, CmdOpcode, CmdQp, CmdStatus, CounterId, EventType, FatalReason, Mtu, QpAttrBit, QpState, VendorErr,
    WcStatus,
};
use openrnic_driver::{
    BatchInit, Bus, Counters, DmaBuf, Error, OpenParams, QpAttr, Qpn, QueuePair, RecvWr, SendWr, WorkCompletion, attr,
};
use openrnic_sim::NicBus;
use openrnic_sim::pcie::{CompletionFault, Which};
use openrnic_testbench::e2e::{End, Pair, PairParams, all_access};
use openrnic_testbench::flow::{Flow, pattern};

/// Completion time-out of the devices: long beside the host's latency, short beside the transport's timer.
const TIMEOUT: u32 = 4000;
/// Cycles in which everything here must be over: a time-out, and what comes after it.
const BUDGET: u64 = 40_000;
const GUARD: u8 = 0x5a;

/// A way to fail, the reason that a completion gives, and the counter that counts it.
#[derive(Debug, Clone, Copy)]
struct Case {
    fault: CompletionFault,
    vendor: VendorErr,
    counter: CounterId,
}

const CASES: [Case; 6] = {
    use CompletionFault::{Abort, Delay, Drop, DropLast, Poison, Unsupported};
    [
        Case {
            fault: Unsupported,
            vendor: VendorErr::DmaAbort,
            counter: CounterId::DmaRdAbort,
        },
        Case {
            fault: Abort,
            vendor: VendorErr::DmaAbort,
            counter: CounterId::DmaRdAbort,
        },
        Case {
            fault: Poison,
            vendor: VendorErr::DmaPoison,
            counter: CounterId::DmaRdPoison,
        },
        Case {
            fault: Drop,
            vendor: VendorErr::DmaTimeout,
            counter: CounterId::DmaRdTimeout,
        },
        Case {
            fault: DropLast,
            vendor: VendorErr::DmaTimeout,
            counter: CounterId::DmaRdTimeout,
        },
        // Half a time-out after the time-out: `each` says how long that is.
        Case {
            fault: Delay(0),
            vendor: VendorErr::DmaTimeout,
            counter: CounterId::DmaRdTimeout,
        },
    ]
};

/// Two NICs with a victim pair and another pair whose traffic must go on.
struct Bench {
    pair: Pair,
    victims: [QueuePair<NicBus>; 2],
    other: Flow,
    before: [Counters; 2],
    what: String,
}

impl Bench {
    fn new(width: usize, what: String) -> Self {
        let mut params = PairParams::new(width, seed());
        params.open = OpenParams {
            dma_timeout_cycles: Some(TIMEOUT),
            command_cycles: BUDGET,
            ..OpenParams::default()
        };
        let pair = Pair::new(params).unwrap();
        let victims = pair.connected(Mtu::Mtu1024, [0xff_fffd, 77]).unwrap();
        let other = Flow::new(&pair, Mtu::Mtu512, 5).unwrap();
        for end in &pair.ends {
            end.events().unwrap();
        }
        let before = [0, 1].map(|n: usize| pair.ends[n].device.counters().unwrap());
        println!("{what}");
        Self {
            pair,
            victims,
            other,
            before,
            what,
        }
    }

    fn end(&self, n: usize) -> &End {
        &self.pair.ends[n]
    }

    /// Lets the next read of end `n` that touches these bytes fail.
    fn spoil(&self, n: usize, start: u64, len: u64, fault: CompletionFault) {
        let which = Which::Range { start, len, times: 1 };
        self.pair.world.borrow_mut().host(n).unwrap().inject_fault(which, fault);
    }

    fn counted(&self, n: usize) -> Counters {
        self.end(n).device.counters().unwrap().since(&self.before[n])
    }

    /// End `n` counted this failed read and no other.
    fn counted_once(&self, n: usize, case: Case) {
        // A late answer comes in now.
        self.pair.run(20_000).unwrap();
        let counted = self.counted(n);
        for id in [
            CounterId::DmaRdAbort,
            CounterId::DmaRdPoison,
            CounterId::DmaRdTimeout,
            CounterId::DmaRdMalformed,
        ] {
            assert_eq!(counted.get(id), u64::from(id == case.counter), "{}: {id:?}", self.what);
        }
        let late = matches!(case.fault, CompletionFault::Delay(_));
        assert_eq!(counted.get(CounterId::DmaCplUnexpected) > 0, late, "{}", self.what);
        let faults = self.pair.world.borrow_mut().host(n).unwrap().stats().faults;
        assert_eq!(faults, 1, "{}: faults that happened", self.what);
        let none = self.counted(1 - n);
        assert_eq!(none.get(CounterId::DmaRdAbort) + none.get(CounterId::DmaRdTimeout), 0);
    }

    fn states(&self) -> [QpState; 2] {
        [0, 1].map(|n: usize| self.victims[n].query().unwrap().state)
    }

    fn events(&self, n: usize) -> Vec<(EventType, u32)> {
        self.end(n).events().unwrap()
    }

    fn sends(&self, n: usize, count: usize) -> Vec<WorkCompletion> {
        self.end(n)
            .send_cq
            .wait(count, BUDGET)
            .unwrap_or_else(|e| panic!("{}: {e}", self.what))
    }

    fn recvs(&self, n: usize, count: usize) -> Vec<WorkCompletion> {
        self.end(n)
            .recv_cq
            .wait(count, BUDGET)
            .unwrap_or_else(|e| panic!("{}: {e}", self.what))
    }

    /// The traffic that was posted before the fault is done, more of it works, commands work, nothing else completed.
    fn others_go_on(&self) {
        let ok = |r: Result<(), _>| r.unwrap_or_else(|e: openrnic_testbench::e2e::Fail| panic!("{}: {e}", self.what));
        ok(self.other.finish(BUDGET));
        ok(self.other.round(BUDGET));
        for end in &self.pair.ends {
            assert_eq!(end.send_cq.poll(16).unwrap(), [], "{}", self.what);
            assert_eq!(end.recv_cq.poll(16).unwrap(), [], "{}", self.what);
            assert_eq!(end.device.fatal_reason().unwrap(), None);
        }
        assert!(self.pair.world.borrow_mut().take_violations().is_empty());
    }

    /// The victims are reset, connected again, and carry messages.
    fn victims_come_back(&self) {
        for (n, qp) in self.victims.iter().enumerate() {
            qp.to_reset().unwrap();
            assert_eq!(self.end(n).send_cq.poll(16).unwrap(), []);
            assert_eq!(self.end(n).recv_cq.poll(16).unwrap(), []);
            let init = QpAttr {
                qp_state: QpState::Init,
                ..QpAttr::default()
            };
            qp.modify(&init, attr::INIT_MASK).unwrap();
        }
        let [a, b] = &self.victims;
        self.pair.connect([a, b], Mtu::Mtu1024, [5, 6]).unwrap();
        let src = self.end(0).region(4000, all_access(), pattern(9)).unwrap();
        let dst = self.end(1).region(4000, all_access(), |_| GUARD).unwrap();
        b.post_recv(&[RecvWr {
            wr_id: 2,
            sges: vec![dst.sge(0, 4000)],
        }])
        .unwrap();
        a.post_send(&[SendWr::send(1, vec![src.sge(0, 4000)])]).unwrap();
        assert_eq!(brief(&self.sends(0, 1)), [(1, WcStatus::Success, 0)], "{}", self.what);
        assert_eq!(brief(&self.recvs(1, 1)), [(2, WcStatus::Success, 0)], "{}", self.what);
        assert!(dst.read(0, 4000).unwrap() == src.read(0, 4000).unwrap());
    }
}

fn seed() -> u64 {
    let seed = std::env::var("OPENRNIC_SEED").ok().and_then(|s| s.parse().ok());
    seed.unwrap_or(1)
}

fn brief(done: &[WorkCompletion]) -> Vec<(u64, WcStatus, u8)> {
    done.iter().map(|wc| (wc.wr_id, wc.status, wc.vendor_err)).collect()
}

fn each(what: &str, test: impl Fn(Bench, Case)) {
    each_of(&CASES, what, test);
}

fn each_of(cases: &[Case], what: &str, test: impl Fn(Bench, Case)) {
    for (width, clk_ns) in [(64, 8), (512, 4)] {
        for case in cases {
            let mut case = *case;
            if let CompletionFault::Delay(ns) = &mut case.fault {
                *ns = clk_ns * u64::from(TIMEOUT) * 3 / 2;
            }
            let what = format!("{what}, {:?}, width {width}, OPENRNIC_SEED={}", case.fault, seed());
            test(Bench::new(width, what), case);
        }
    }
}

// ---------------------------------------------------------------------------------------------- work requests

#[test]
fn a_send_request_that_cannot_be_read_fails_alone() {
    each("send WQE", |b, case| {
        let a = &b.victims[0];
        let src = b.end(0).region(8000, all_access(), pattern(3)).unwrap();
        let dst = b.end(1).region(8000, all_access(), |_| GUARD).unwrap();
        let base = a.query().unwrap().init.sq_base();
        // A WQE takes 128 bytes: 32 and four elements of 16.
        b.spoil(0, base + 2 * 128, 128, case.fault);
        b.other.post().unwrap();
        let at = |i: usize| dst.sge(i * 2000, 1).addr;
        let write = |i: usize| SendWr::write(i as u64, vec![src.sge(i * 2000, 2000)], at(i), dst.rkey());
        a.post_send(&[write(0), write(1), write(2), write(3)]).unwrap();
        let want = [
            (0, WcStatus::Success, 0),
            (1, WcStatus::Success, 0),
            (2, WcStatus::LocQpOpErr, case.vendor as u8),
            (3, WcStatus::WrFlushErr, 0),
        ];
        assert_eq!(brief(&b.sends(0, 4)), want, "{}", b.what);
        assert_eq!(b.states(), [QpState::Err, QpState::Rts], "{}", b.what);
        // What is posted now is flushed.
        a.post_send(&[write(0)]).unwrap();
        assert_eq!(brief(&b.sends(0, 1)), [(0, WcStatus::WrFlushErr, 0)], "{}", b.what);
        b.others_go_on();
        let (got, sent) = (dst.read(0, 8000).unwrap(), src.read(0, 8000).unwrap());
        assert!(got[..4000] == sent[..4000], "{}", b.what);
        assert!(got[4000..].iter().all(|byte| *byte == GUARD), "{}", b.what);
        assert_eq!((b.events(0), b.events(1)), (vec![], vec![]), "{}", b.what);
        b.counted_once(0, case);
        b.victims_come_back();
    });
}

#[test]
fn a_receive_request_that_cannot_be_read_fails_both_ends() {
    each("receive WQE", |b, case| {
        let [a, z] = &b.victims;
        let src = b.end(0).region(6000, all_access(), pattern(3)).unwrap();
        let dst = b.end(1).region(6000, all_access(), |_| GUARD).unwrap();
        let base = z.query().unwrap().init.rq_base();
        // A WQE takes 128 bytes: 16 and four elements of 16, rounded up.
        b.spoil(1, base + 128, 128, case.fault);
        b.other.post().unwrap();
        for i in 0..3 {
            let sges = vec![dst.sge(i * 2000, 2000)];
            z.post_recv(&[RecvWr { wr_id: i as u64, sges }]).unwrap();
        }
        let send = |i: usize| SendWr::send(i as u64, vec![src.sge(i * 2000, 2000)]);
        a.post_send(&[send(0), send(1), send(2)]).unwrap();
        let want = [
            (0, WcStatus::Success, 0),
            (1, WcStatus::RemOpErr, 0),
            (2, WcStatus::WrFlushErr, 0),
        ];
        assert_eq!(brief(&b.sends(0, 3)), want, "{}", b.what);
        let want = [
            (0, WcStatus::Success, 0),
            (1, WcStatus::LocQpOpErr, case.vendor as u8),
            (2, WcStatus::WrFlushErr, 0),
        ];
        assert_eq!(brief(&b.recvs(1, 3)), want, "{}", b.what);
        assert_eq!(b.states(), [QpState::Err, QpState::Err], "{}", b.what);
        b.others_go_on();
        let (got, sent) = (dst.read(0, 6000).unwrap(), src.read(0, 6000).unwrap());
        assert!(got[..2000] == sent[..2000], "{}", b.what);
        assert!(got[2000..].iter().all(|byte| *byte == GUARD), "{}", b.what);
        assert_eq!(b.counted(1).get(CounterId::TxNakRemOp), 1, "{}", b.what);
        assert_eq!(b.counted(0).get(CounterId::RxNakRemOp), 1, "{}", b.what);
        // The completions tell of it, so no event does.
        assert_eq!((b.events(0), b.events(1)), (vec![], vec![]), "{}", b.what);
        b.counted_once(1, case);
        b.victims_come_back();
    });
}

// ---------------------------------------------------------------------------------------------- payload

#[test]
fn payload_that_cannot_be_read_ends_its_message_there() {
    for write in [false, true] {
        each(
            if write {
                "payload of a WRITE"
            } else {
                "payload of a SEND"
            },
            |b, case| {
                let [a, z] = &b.victims;
                let src = b.end(0).region(10_240, all_access(), pattern(3)).unwrap();
                let dst = b.end(1).region(10_240, all_access(), |_| GUARD).unwrap();
                z.post_recv(&[RecvWr {
                    wr_id: 7,
                    sges: vec![dst.sge(0, 10_240)],
                }])
                .unwrap();
                // In the fifth packet of ten.
                b.spoil(0, src.sge(4500, 1).addr.0, 1, case.fault);
                b.other.post().unwrap();
                let wr = |id| {
                    let sges = vec![src.sge(0, 10_240)];
                    if write {
                        SendWr::write(id, sges, dst.sge(0, 1).addr, dst.rkey())
                    } else {
                        SendWr::send(id, sges)
                    }
                };
                a.post_send(&[wr(1), wr(2)]).unwrap();
                let want = [
                    (1, WcStatus::LocProtErr, case.vendor as u8),
                    (2, WcStatus::WrFlushErr, 0),
                ];
                assert_eq!(brief(&b.sends(0, 2)), want, "{}", b.what);
                // The peer knows nothing of it: its message stays unfinished.
                assert_eq!(b.states(), [QpState::Err, QpState::Rts], "{}", b.what);
                b.others_go_on();
                let (got, sent) = (dst.read(0, 10_240).unwrap(), src.read(0, 10_240).unwrap());
                assert!(got[..4096] == sent[..4096], "{}", b.what);
                assert!(got[4096..].iter().all(|byte| *byte == GUARD), "{}", b.what);
                assert_eq!((b.events(0), b.events(1)), (vec![], vec![]), "{}", b.what);
                b.counted_once(0, case);
                z.to_err().unwrap();
                assert_eq!(brief(&b.recvs(1, 1)), [(7, WcStatus::WrFlushErr, 0)], "{}", b.what);
                b.victims_come_back();
            },
        );
    }
}

#[test]
fn payload_of_a_read_response_that_cannot_be_read_fails_both_ends() {
    each("payload of a READ response", |b, case| {
        let [a, z] = &b.victims;
        let src = b.end(1).region(10_240, all_access(), pattern(3)).unwrap();
        let dst = b.end(0).region(10_240, all_access(), |_| GUARD).unwrap();
        z.post_recv(&[RecvWr {
            wr_id: 7,
            sges: vec![src.sge(0, 100)],
        }])
        .unwrap();
        b.spoil(1, src.sge(4500, 1).addr.0, 1, case.fault);
        b.other.post().unwrap();
        let from = src.sge(0, 1).addr;
        let read = |id| SendWr::read(id, vec![dst.sge(0, 10_240)], from, src.rkey());
        a.post_send(&[read(1), read(2)]).unwrap();
        let want = [(1, WcStatus::RemOpErr, 0), (2, WcStatus::WrFlushErr, 0)];
        assert_eq!(brief(&b.sends(0, 2)), want, "{}", b.what);
        assert_eq!(brief(&b.recvs(1, 1)), [(7, WcStatus::WrFlushErr, 0)], "{}", b.what);
        assert_eq!(b.states(), [QpState::Err, QpState::Err], "{}", b.what);
        b.others_go_on();
        let (got, sent) = (dst.read(0, 10_240).unwrap(), src.read(0, 10_240).unwrap());
        assert!(got[..4096] == sent[..4096], "{}", b.what);
        assert!(got[4096..].iter().all(|byte| *byte == GUARD), "{}", b.what);
        let fatal = vec![(EventType::QpFatal, z.qpn().0)];
        assert_eq!((b.events(0), b.events(1)), (vec![], fatal), "{}", b.what);
        assert_eq!(b.counted(1).get(CounterId::TxNakRemOp), 1, "{}", b.what);
        b.counted_once(1, case);
        b.victims_come_back();
    });
}

// ---------------------------------------------------------------------------------------------- commands

fn alloc(b: &Bench, data: &[u8]) -> DmaBuf {
    let filled = |bus: &mut NicBus| {
        let buf = bus.dma_alloc(data.len(), 64)?;
        bus.dma_write(buf.addr, data)?;
        Ok::<_, openrnic_driver::BusError>(buf)
    };
    b.end(0).device.with_bus(filled).unwrap().unwrap()
}

fn list(qpns: &[Qpn]) -> Vec<u8> {
    qpns.iter().flat_map(|qpn| qpn.0.to_le_bytes()).collect()
}

/// The attribute record of RESET→INIT.
fn init_record() -> Vec<u8> {
    let attr = QpAttr {
        qp_state: QpState::Init,
        ..QpAttr::default()
    };
    attr.record(attr::INIT_MASK).unwrap().as_bytes().to_vec()
}

fn status(result: Result<openrnic_driver::CmdResult, Error>) -> CmdStatus {
    match result {
        Ok(_) => CmdStatus::Ok,
        Err(e) => e.status().unwrap_or_else(|| panic!("{e}")),
    }
}

#[test]
fn inputs_of_a_command_that_cannot_be_read_change_nothing() {
    const COUNT: usize = 130;
    each("records and lists", |b, case| {
        let device = &b.end(0).device;
        let batch = b
            .end(0)
            .pd
            .create_qps(COUNT as u32, &b.end(0).qp_init(), &BatchInit::default())
            .unwrap();
        let all = alloc(&b, &list(batch.qpns()));
        let record = alloc(&b, &init_record());
        let records = alloc(&b, &init_record().repeat(64));
        let command = |opcode: CmdOpcode, flags: CmdFlag, count: usize| {
            let command = CmdQp::new()
                .with_opcode(opcode.into())
                .with_flags((flags | CmdFlag::LIST).0 as u8)
                .with_count(count as u32)
                .with_list_addr(all.addr);
            match opcode {
                CmdOpcode::DestroyQp => command.0,
                _ if flags.contains(CmdFlag::RECORDS) => command.with_attr_addr(records.addr).0,
                _ => command.with_attr_addr(record.addr).0,
            }
        };
        use CmdOpcode::{DestroyQp, ModifyQp};
        let modify = command(ModifyQp, CmdFlag::EMPTY, COUNT);
        let each = command(ModifyQp, CmdFlag::RECORDS, 64);
        let destroy = command(DestroyQp, CmdFlag::EMPTY, COUNT);
        for (what, command, spoiled) in [
            ("its record", modify, record.addr),
            ("first part of its list", modify, all.addr),
            ("last part of its list", modify, all.addr + 4 * (COUNT as u64 - 1)),
            ("first record", each, records.addr),
            ("last record", each, records.addr + 64 * 63),
            ("list of a DESTROY", destroy, all.addr + 4 * (COUNT as u64 - 1)),
        ] {
            let what = format!("{}, {what}", b.what);
            b.spoil(0, spoiled, 4, case.fault);
            b.other.post().unwrap();
            let start = device.now_cycles().unwrap();
            assert_eq!(status(device.command(command)), CmdStatus::DmaError, "{what}");
            let cycles = device.now_cycles().unwrap() - start;
            assert!(cycles < 2 * u64::from(TIMEOUT), "{what}: {cycles} cycles");
            for qp in [0, 1, 63, 64, COUNT - 1] {
                let state = batch.qps()[qp].query().unwrap().state;
                assert_eq!(state, QpState::Reset, "{what}");
            }
            b.other.finish(BUDGET).unwrap_or_else(|e| panic!("{what}: {e}"));
        }
        // A record of an INSTALL: no QP is made, none is lost.
        let install = install_one(&b, record.addr);
        for _ in 0..3 {
            b.spoil(0, record.addr, 4, case.fault);
            assert_eq!(status(device.command(install)), CmdStatus::DmaError, "{}", b.what);
        }
        // The same commands work when the host answers.
        assert_eq!(device.command(modify).unwrap().count, COUNT as u32);
        assert_eq!(batch.qps()[COUNT - 1].query().unwrap().state, QpState::Init);
        assert_eq!(batch.destroy().unwrap().count, COUNT as u32);
        // Two indices are reserved, two QPs of this end are in use.
        let rest = (1 << device.caps().unwrap().log_qp) - 4;
        let rest = b
            .end(0)
            .pd
            .create_qps(rest, &b.end(0).qp_init(), &BatchInit::default())
            .unwrap();
        rest.destroy().unwrap();
        let counted = b.counted(0);
        assert_eq!(counted.get(case.counter), 9, "{}", b.what);
        b.other.round(BUDGET).unwrap();
        assert_eq!((b.events(0), b.events(1)), (vec![], vec![]), "{}", b.what);
    });
}

/// INSTALL of one QP with no work.
fn install_one(b: &Bench, record: u64) -> [u8; 64] {
    let init = b.end(0).qp_init();
    CmdQp::new()
        .with_opcode(CmdOpcode::InstallQp.into())
        .with_count(1)
        .with_qp_type(init.qp_type.into())
        .with_pd(b.end(0).pd.handle().0)
        .with_send_cq(init.send_cq.0)
        .with_recv_cq(init.recv_cq.0)
        .with_sq_base(record)
        .with_rq_base(record)
        .with_attr_addr(record)
        .0
}

#[test]
fn a_command_ring_that_cannot_be_read_stops_the_device_until_it_is_reset() {
    each("command ring", |mut b, case| {
        let reg = |name: &str| {
            let all = b.end(0).device.registers().unwrap();
            let found = all.iter().find(|(n, _)| n.ends_with(name));
            found.unwrap_or_else(|| panic!("{name} in {all:?}")).1
        };
        let (base, log) = (reg("RING_BASE"), reg("CMD.LOG_SIZE"));
        b.spoil(0, base, 64 << log, case.fault);
        b.other.post().unwrap();
        let device = b.end(0).device.clone();
        let want = Error::Fatal {
            reason: FatalReason::CmdRingDma,
        };
        let start = device.now_cycles().unwrap();
        assert_eq!(device.alloc_pd().err(), Some(want.clone()), "{}", b.what);
        // As soon as the device knows it, not after the driver's patience.
        let cycles = device.now_cycles().unwrap() - start;
        assert!(cycles < u64::from(TIMEOUT) + 2000, "{}: {cycles} cycles", b.what);
        assert_eq!(device.fatal_reason().unwrap(), Some(FatalReason::CmdRingDma));
        let fatal = vec![(EventType::DeviceFatal, FatalReason::CmdRingDma as u32)];
        assert_eq!(b.events(0), fatal, "{}", b.what);
        // It stays so.
        assert_eq!(device.alloc_pd().err(), Some(want), "{}", b.what);
        // A device that is fatal sends nothing.
        let sent = b.pair.world.borrow_mut().wire().stats(0).sent;
        b.victims[0].post_send(&[SendWr::send(1, vec![])]).unwrap();
        b.pair.run(3000).unwrap();
        assert_eq!(b.pair.world.borrow_mut().wire().stats(0).sent, sent, "{}", b.what);

        device.reset().unwrap();
        assert_eq!(device.fatal_reason().unwrap(), None);
        b.pair.ends[0] = End::set_up(device, 0).unwrap();
        let flow = Flow::new(&b.pair, Mtu::Mtu1024, 20).unwrap();
        flow.round(BUDGET).unwrap_or_else(|e| panic!("{}: {e}", b.what));
        flow.round(BUDGET).unwrap_or_else(|e| panic!("{}: {e}", b.what));
        assert_eq!(b.events(0), [], "{}", b.what);
        assert!(b.pair.world.borrow_mut().take_violations().is_empty());
        let mask = QpAttrBit::STATE;
        let err = QpAttr {
            qp_state: QpState::Err,
            ..QpAttr::default()
        };
        // The peer's end of the old connections is there still, and its own to end.
        b.victims[1].modify(&err, mask).unwrap();
        b.victims[1].destroy().unwrap();
    });
}
