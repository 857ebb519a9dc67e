// SPDX-License-Identifier: Apache-2.0
//! Atomics between two whole NICs, at both widths: several QPs on the same words, on a sound wire and on a bad one; single
//! losses; the order with WRITEs and READs; what is refused, as both ends see it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use openrnic_driver::spec::{Access, CounterId, EventType, Mtu, QpAttrBit, QpState, WcOpcode, WcStatus};
use openrnic_driver::{Iova, MemoryRegion, MrInit, Pages, QpAttr, QueuePair, RKey, SendWr, WorkCompletion};
use openrnic_sim::NicBus;
use openrnic_sim::pcie::{CompletionFault, Which};
use openrnic_sim::wire::{Action, FaultRates, Rule, frame};
use openrnic_testbench::e2e::{Pair, all_access, each_width};

type Qp = QueuePair<NicBus>;
type Mr = MemoryRegion<NicBus>;

const BUDGET: u64 = 3_000_000;
const CMP_SWAP: u8 = 0x13;
const FETCH_ADD: u8 = 0x14;
const ATOMIC_ACK: u8 = 0x12;

fn atomic_access() -> Access {
    all_access() | Access::REMOTE_ATOMIC
}

/// A connected pair whose end 1 lets its peer do atomics; the first PSN leads over the wrap.
fn connected(pair: &Pair) -> [Qp; 2] {
    let [a, b] = pair.connected(Mtu::Mtu256, [0xff_fffe, 77]).unwrap();
    allow(&b, Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC);
    [a, b]
}

fn allow(qp: &Qp, access_flags: Access) {
    let attr = QpAttr {
        access_flags,
        ..QpAttr::default()
    };
    qp.modify(&attr, QpAttrBit::ACCESS_FLAGS).unwrap();
}

fn word(region: &Mr, at: usize) -> u64 {
    u64::from_le_bytes(region.read(at, 8).unwrap().try_into().unwrap())
}

fn at(region: &Mr, offset: u64) -> (Iova, RKey) {
    (region.iova().offset(offset), region.rkey())
}

fn add(wr_id: u64, result: &Mr, slot: usize, target: (Iova, RKey), n: u64) -> SendWr {
    SendWr::fetch_and_add(wr_id, result.sge(8 * slot, 8), target.0, target.1, n)
}

fn good(done: &[WorkCompletion], opcode: WcOpcode) {
    for wc in done {
        assert_eq!(
            (wc.status, wc.opcode, wc.byte_len),
            (WcStatus::Success, opcode, 8),
            "{wc:?}"
        );
    }
}

/// Loses (or doubles, ...) the n-th frame of an opcode that end `from` sends from now on.
fn disturb(pair: &Pair, from: usize, n: u64, opcode: u8, action: Action) {
    let rule = Rule::nth(n, from, action, move |f| {
        frame::bth(f).is_some_and(|b| b.opcode() == opcode)
    });
    pair.world.borrow_mut().wire().add_rule(rule);
}

/// QPs of both ends, and more than one of each, count one word up: no value is seen twice, none is left out.
fn count_up(pair: &Pair, rounds: usize) {
    const QPS: usize = 3;
    let counter = pair.ends[1].region(64, atomic_access(), |_| 0).unwrap();
    let results: Vec<Mr> = (0..QPS)
        .map(|_| pair.ends[0].region(8 * rounds, all_access(), |_| 0xee).unwrap())
        .collect();
    let qps: Vec<[Qp; 2]> = (0..QPS).map(|_| connected(pair)).collect();
    for round in 0..rounds {
        for (q, [a, _]) in qps.iter().enumerate() {
            a.post_send(&[add(round as u64, &results[q], round, at(&counter, 16), 1)])
                .unwrap();
        }
        // As many as a queue holds.
        if round % 16 == 15 {
            good(
                &pair.ends[0].send_cq.wait(QPS * 16, BUDGET).unwrap(),
                WcOpcode::FetchAdd,
            );
        }
    }
    assert_eq!(word(&counter, 16), (QPS * rounds) as u64);
    assert_eq!((word(&counter, 8), word(&counter, 24)), (0, 0));
    let mut seen: Vec<u64> = Vec::new();
    for r in &results {
        let mine: Vec<u64> = (0..rounds).map(|k| word(r, 8 * k)).collect();
        assert!(mine.is_sorted(), "a QP's own atomics are in order: {mine:?}");
        seen.extend(mine);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..(QPS * rounds) as u64).collect::<Vec<_>>());
}

#[test]
fn many_qps_count_one_word_up_without_losing_a_step() {
    each_width(|pair, _| {
        count_up(&pair, 32);
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

#[test]
fn on_a_bad_wire_each_atomic_is_still_executed_exactly_once() {
    each_width(|pair, _| {
        let rates = FaultRates {
            loss: 0.06,
            duplicate: 0.06,
            reorder: 0.04,
            reorder_ns: 3000,
            ..FaultRates::default()
        };
        for n in 0..2 {
            pair.world.borrow_mut().wire().set_faults(n, rates.clone()).unwrap();
        }
        count_up(&pair, 32);
        let stats = [0, 1].map(|n| pair.world.borrow_mut().wire().stats(n));
        assert!(stats.iter().all(|s| s.dropped > 0 && s.duplicated > 0), "{stats:?}");
        let b = pair.ends[1].device.counters().unwrap();
        assert!(b.get(CounterId::RxDuplicates) > 0);
    });
}

#[test]
fn compare_and_swap_changes_the_word_when_it_compares_and_tells_what_was_there() {
    each_width(|pair, _| {
        let [a, _b] = connected(&pair);
        let target = pair.ends[1].region(64, atomic_access(), |_| 0x11).unwrap();
        let result = pair.ends[0].region(64, all_access(), |_| 0xee).unwrap();
        let was = 0x1111_1111_1111_1111;
        let (addr, rkey) = at(&target, 8);
        let cas = |id: u64, compare, swap| {
            SendWr::compare_and_swap(id, result.sge(8 * id as usize, 8), addr, rkey, compare, swap)
        };
        a.post_send(&[
            cas(0, was, 0x0123_4567_89ab_cdef),
            cas(1, was, 1),
            cas(2, 0x0123_4567_89ab_cdef, 7),
        ])
        .unwrap();
        good(&pair.ends[0].send_cq.wait(3, BUDGET).unwrap(), WcOpcode::CompSwap);
        let results: Vec<u64> = (0..4).map(|k| word(&result, 8 * k)).collect();
        assert_eq!(
            results,
            [was, 0x0123_4567_89ab_cdef, 0x0123_4567_89ab_cdef, 0xeeee_eeee_eeee_eeee]
        );
        let words: Vec<u64> = (0..3).map(|k| word(&target, 8 * k)).collect();
        assert_eq!(words, [was, 7, was]);
    });
}

#[test]
fn what_is_lost_is_repaired_without_a_second_execution() {
    each_width(|pair, _| {
        for (from, opcode) in [(0, FETCH_ADD), (0, CMP_SWAP), (1, ATOMIC_ACK)] {
            for action in [|| Action::Drop, || Action::Duplicate, || Action::Delay(400_000)] {
                let [a, b] = connected(&pair);
                let target = pair.ends[1].region(64, atomic_access(), |_| 0).unwrap();
                let result = pair.ends[0].region(64, all_access(), |_| 0xee).unwrap();
                let n = if opcode == CMP_SWAP { 0 } else { 1 };
                disturb(&pair, from, n, opcode, action());
                let (addr, rkey) = at(&target, 0);
                let cas = SendWr::compare_and_swap(2, result.sge(16, 8), addr, rkey, 5, 50);
                a.post_send(&[
                    add(0, &result, 0, (addr, rkey), 2),
                    add(1, &result, 1, (addr, rkey), 3),
                    cas,
                    add(3, &result, 3, (addr, rkey), 1),
                ])
                .unwrap();
                let done = pair.ends[0].send_cq.wait(4, BUDGET).unwrap();
                let ids: Vec<_> = done.iter().map(|wc| (wc.wr_id, wc.status)).collect();
                assert_eq!(ids, [0, 1, 2, 3].map(|i| (i, WcStatus::Success)));
                // What comes late changes nothing.
                pair.run(100_000).unwrap();
                let results: Vec<u64> = (0..4).map(|k| word(&result, 8 * k)).collect();
                assert_eq!(results, [0, 2, 5, 50]);
                assert_eq!(word(&target, 0), 51);
                for qp in [&a, &b] {
                    assert_eq!(qp.query().unwrap().state, QpState::Rts);
                }
            }
        }
    });
}

#[test]
fn atomics_keep_their_place_among_writes_and_reads() {
    each_width(|pair, _| {
        let [a, _b] = connected(&pair);
        let target = pair.ends[1].region(4096, atomic_access(), |_| 0).unwrap();
        let source = pair.ends[0].region(4096, all_access(), |i| i as u8).unwrap();
        let result = pair.ends[0].region(4096, all_access(), |_| 0xee).unwrap();
        let last = u64::from_le_bytes(std::array::from_fn(|k| (3992 + k) as u8));
        let (addr, rkey) = at(&target, 3992);
        for round in 0..4u64 {
            // The atomic finds the last bytes of a long WRITE, and a READ behind it finds its sum.
            a.post_send(&[
                SendWr::write(0, vec![source.sge(0, 4000)], target.iova(), rkey),
                add(1, &result, 0, (addr, rkey), round + 1),
                SendWr::read(2, vec![result.sge(8, 4000)], target.iova(), rkey),
                add(3, &result, 501, (addr, rkey), 9).fenced(),
            ])
            .unwrap();
            let done = pair.ends[0].send_cq.wait(4, BUDGET).unwrap();
            assert!(done.iter().all(|wc| wc.status == WcStatus::Success), "{done:?}");
            assert_eq!(word(&result, 0), last);
            assert_eq!(word(&result, 8 + 3992), last.wrapping_add(round + 1));
            assert_eq!(word(&result, 8 * 501), last.wrapping_add(round + 1));
            assert_eq!(word(&target, 3992), last.wrapping_add(round + 10));
        }
    });
}

#[test]
fn both_ends_see_why_an_atomic_was_refused() {
    struct Case {
        what: &'static str,
        qp_access: Access,
        region_access: Access,
        offset: u64,
        spoil: bool,
        status: WcStatus,
        event: EventType,
        nak: CounterId,
    }
    let right = Access::REMOTE_ATOMIC;
    let case = |what, status, event, nak| Case {
        what,
        qp_access: right,
        region_access: atomic_access(),
        offset: 8,
        spoil: false,
        status,
        event,
        nak,
    };
    let invalid = |what| {
        case(
            what,
            WcStatus::RemInvReqErr,
            EventType::QpReqErr,
            CounterId::TxNakInvReq,
        )
    };
    let access = |what| {
        case(
            what,
            WcStatus::RemAccessErr,
            EventType::QpAccessErr,
            CounterId::TxNakRemAccess,
        )
    };
    let cases = [
        Case {
            offset: 12,
            ..invalid("not aligned")
        },
        Case {
            qp_access: all_access(),
            ..invalid("not enabled on the QP")
        },
        Case {
            region_access: all_access(),
            ..access("no right on the region")
        },
        Case {
            offset: 64,
            ..access("beyond the region")
        },
        Case {
            spoil: true,
            ..case(
                "the host does not deliver the word",
                WcStatus::RemOpErr,
                EventType::QpFatal,
                CounterId::TxNakRemOp,
            )
        },
    ];
    each_width(|pair, _| {
        let result = pair.ends[0].region(64, all_access(), |_| 0xee).unwrap();
        for c in &cases {
            let what = c.what;
            let [a, b] = connected(&pair);
            allow(&b, c.qp_access);
            let target = pair.ends[1].region(64, c.region_access, |_| 0x22).unwrap();
            pair.ends[1].events().unwrap();
            let before = pair.ends[1].device.counters().unwrap();
            if c.spoil {
                let which = Which::Range {
                    start: target.bus_addr(8).unwrap(),
                    len: 8,
                    times: 1,
                };
                pair.world
                    .borrow_mut()
                    .host(1)
                    .unwrap()
                    .inject_fault(which, CompletionFault::Poison);
            }
            a.post_send(&[
                add(7, &result, 0, at(&target, c.offset), 1),
                add(8, &result, 1, at(&target, 0), 1),
            ])
            .unwrap();
            let done = pair.ends[0].send_cq.wait(2, BUDGET).unwrap();
            let got: Vec<_> = done.iter().map(|wc| (wc.wr_id, wc.status)).collect();
            assert_eq!(got, [(7, c.status), (8, WcStatus::WrFlushErr)], "{what}");
            pair.run(4000).unwrap();
            for qp in [&a, &b] {
                assert_eq!(qp.query().unwrap().state, QpState::Err, "{what}");
            }
            let events: Vec<_> = pair.ends[1].events().unwrap();
            let events: Vec<_> = events.into_iter().filter(|e| e.0 != EventType::CommEst).collect();
            assert_eq!(events, [(c.event, b.qpn().0)], "{what}");
            assert_eq!(pair.ends[1].device.counters().unwrap().since(&before).get(c.nak), 1);
            assert_eq!(target.read(0, 64).unwrap(), [0x22; 64], "{what}");
            assert_eq!(result.read(0, 64).unwrap(), [0xee; 64], "{what}");
        }
    });
}

#[test]
fn an_atomic_across_the_end_of_a_page_is_a_remote_access_error() {
    each_width(|pair, _| {
        let result = pair.ends[0].region(64, all_access(), |_| 0xee).unwrap();
        // The region begins 4 bytes into its first page, so that an aligned address may lie across a page's end.
        let pages = Pages {
            offset: 4,
            scatter: 5,
            ..Pages::default()
        };
        let target = pair.ends[1]
            .pd
            .register(&MrInit {
                pages: Some(pages),
                iova: Some(Iova(0)),
                ..MrInit::new(9000, atomic_access())
            })
            .unwrap();
        target.write(0, &[0x22; 9000]).unwrap();
        for (offset, across) in [(4080, false), (4088, true), (4096, false), (8184, true)] {
            let [a, b] = connected(&pair);
            allow(&b, Access::REMOTE_ATOMIC);
            pair.ends[1].events().unwrap();
            let before = pair.ends[1].device.counters().unwrap();
            let was = target.read(0, 9000).unwrap();
            a.post_send(&[
                add(7, &result, 0, (Iova(offset), target.rkey()), 1),
                add(8, &result, 1, (Iova(16), target.rkey()), 0),
            ])
            .unwrap();
            let done = pair.ends[0].send_cq.wait(2, BUDGET).unwrap();
            let got: Vec<_> = done.iter().map(|wc| (wc.wr_id, wc.status)).collect();
            pair.run(4000).unwrap();
            let mut events = pair.ends[1].events().unwrap();
            events.retain(|e| e.0 != EventType::CommEst);
            let naks = pair.ends[1]
                .device
                .counters()
                .unwrap()
                .since(&before)
                .get(CounterId::TxNakRemAccess);
            let mut now = target.read(0, 9000).unwrap();
            if across {
                assert_eq!(
                    got,
                    [(7, WcStatus::RemAccessErr), (8, WcStatus::WrFlushErr)],
                    "{offset}"
                );
                assert_eq!(
                    (events, naks),
                    (vec![(EventType::QpAccessErr, b.qpn().0)], 1),
                    "{offset}"
                );
            } else {
                assert_eq!(got, [(7, WcStatus::Success), (8, WcStatus::Success)], "{offset}");
                assert_eq!((events, naks), (vec![], 0), "{offset}");
                assert_eq!(now[offset as usize], was[offset as usize] + 1);
                now[offset as usize] -= 1;
            }
            assert!(now == was, "{offset}");
            let state = if across { QpState::Err } else { QpState::Rts };
            for qp in [a, b] {
                assert_eq!(qp.query().unwrap().state, state, "{offset}");
                qp.destroy().unwrap();
            }
        }
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}
