// SPDX-License-Identifier: Apache-2.0
//! `rnic_send` when a QP's life ends in the middle of a visit: the gate makes the new life visible at any moment and
//! only then asks for the barrier. Whatever the visit was doing, records of the old life come back exactly once, nothing
//! of it is handed over any more, and the new life starts from nothing.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::send_bench::{POOL, PSN_MASK, SendBench, Sge, Wqe, state, status, wr};

const WIDTHS: [usize; 2] = [64, 512];
/// Buffers lie above the rings.
const BUF: u64 = 512 * 1024;
const QP: u16 = 5;

fn wqe(b: &SendBench, opcode: u8, len: u32) -> Wqe {
    Wqe {
        opcode,
        signaled: true,
        sges: vec![Sge {
            va: BUF,
            len,
            lkey: b.key(QP),
        }],
        remote_va: 0x7000_0000_1234,
        rkey: 0xabcd_ef01,
        ..Wqe::default()
    }
}

/// The first PSN of a life: far from those of the lives before and after it.
fn first_psn(life: u32) -> u32 {
    (life * 0x1_2345) & PSN_MASK
}

/// Work of a life: messages that are sent, acknowledged, completed and begun anew all the time.
fn work(b: &mut SendBench) {
    for n in 0..10 {
        let opcode = [wr::WRITE, wr::READ, wr::SEND][n % 3];
        let w = wqe(b, opcode, [100, 600, 256][n % 3]);
        b.post(QP, &w);
    }
}

#[test]
fn a_life_that_ends_in_the_middle_of_a_visit_loses_no_record_and_gives_none_back_twice() {
    for width in WIDTHS {
        let mut b = SendBench::new(width, 1);
        for life in 1..240u32 {
            b.install(QP, |q| q.sq_psn = first_psn(life));
            work(&mut b);
            // A moment later each time: by and by every one of a visit.
            b.run(60 + u64::from(life) * 3);
            // ->RESET: visible first, then the barrier.
            b.qps[usize::from(QP)].epoch += 1;
            b.set_state(QP, state::RESET);
            b.dut.set("drain_req_i", 1);
            b.until("the barrier", 4000, |b| b.dut.get("drain_ack_o") == 1);
            let (sent, completed) = (b.sent(QP).len(), b.cqes(QP).len());
            b.dut.set("drain_req_i", 0);
            b.run(300);
            assert_eq!(b.free_records(), POOL, "width {width}, life {life}");
            assert_eq!(
                b.sent(QP).len(),
                sent,
                "width {width}, life {life}: packets after the barrier"
            );
            assert_eq!(
                b.cqes(QP).len(),
                completed,
                "width {width}, life {life}: completions after the barrier"
            );
            b.effects.clear();
        }
        // No record is in two places: as many as there are can be in use at once, and all complete.
        b.install(QP, |q| q.sq_psn = 0x40);
        for round in 0..40 {
            work(&mut b);
            b.settle(&[QP], 20_000);
            let done = b.cqes(QP);
            assert_eq!(done.len(), 10 * (round + 1));
            assert!(done.iter().all(|c| c.status == status::SUCCESS));
        }
    }
}

#[test]
fn a_packet_is_not_handed_over_when_its_life_ends_while_it_is_made() {
    for width in WIDTHS {
        for reborn in [false, true] {
            let mut b = SendBench::new(width, 1);
            b.install(QP, |q| {
                q.stride = 2;
                q.log_sq = 4;
            });
            // Many elements, so that it takes a while.
            let element = Sge {
                va: BUF,
                len: 5,
                lkey: b.key(QP),
            };
            let w = Wqe {
                sges: vec![element; 12],
                ..wqe(&b, wr::WRITE, 1)
            };
            b.post(QP, &w);
            b.until("half of its elements", 2000, |b| b.lookups.len() == 6);
            if reborn {
                // The next life is in RTS already: only its epoch tells it from the one before.
                b.install(QP, |_| ());
            } else {
                b.qps[usize::from(QP)].epoch += 1;
                b.set_state(QP, state::RESET);
            }
            b.run(1000);
            assert!(b.lookups.len() >= 6);
            assert_eq!(b.sent(QP), [], "width {width}, reborn {reborn}");
            assert_eq!(b.free_records(), POOL, "width {width}, reborn {reborn}");
        }
    }
}
