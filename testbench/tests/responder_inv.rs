// SPDX-License-Identifier: Apache-2.0
//! `rnic_recv`: SEND with invalidate, one test per rule, at both data widths.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::recv_bench::{Cqe, Effect, MEM_BASE, MEM_SIZE, Manners, Packet, RecvBench, Region, Sge, Tx};

const LAST_INV: u8 = 0x16;
const ONLY_INV: u8 = 0x17;
const DATA: u64 = MEM_BASE + 0x4_0000;
const KEY: u32 = 0x0000_0511;
const GONE: u32 = 0x0000_0733;

/// Prompt and busy, at both widths; one QP, number 4, with two receives of 1000 bytes; the key `GONE` may be invalidated.
fn all(test: impl Fn(&mut RecvBench)) {
    for width in [64, 512] {
        for manners in [Manners::PROMPT, Manners::BUSY] {
            println!("{width} bits, {manners:?}");
            let mut b = RecvBench::new(width, 1);
            b.manners = manners;
            for key in [KEY, GONE] {
                b.regions.push(Region {
                    key,
                    pd: 7,
                    access: 0xf,
                    va: DATA,
                    len: MEM_SIZE as u64 - 0x4_0000,
                    addr: DATA,
                });
            }
            b.fast_reg = vec![GONE];
            connect(&mut b);
            test(&mut b);
        }
    }
}

/// Another QP, whose peer reads and writes.
const OTHER: u16 = 6;

fn connect(b: &mut RecvBench) {
    b.create(4, |qp| {
        qp.rq_base = MEM_BASE + 0x800 * 4;
        qp.mtu = 1;
    });
    for k in 0..2 {
        b.post(
            4,
            &[Sge {
                addr: DATA + 1000 * k,
                len: 1000,
                lkey: KEY,
            }],
        );
    }
    b.run(8);
}

/// The packets of a SEND whose last one invalidates `key`.
fn send_inv(b: &RecvBench, psn: u32, data: &[u8], key: u32) -> Vec<Packet> {
    let mut packets = b.send_packets(4, psn, data, None, true);
    let last = packets.last_mut().unwrap();
    last.opcode = if last.opcode == 0x04 { ONLY_INV } else { LAST_INV };
    last.rkey = key;
    packets
}

fn aeth(psn: u32, syndrome: u8, msn: u32) -> Effect {
    Effect::Tx(Tx {
        idx: 4,
        opcode: 0x11,
        psn,
        syndrome,
        msn,
        ..Tx::default()
    })
}

fn cqe(b: &RecvBench, wqe_index: u16, len: usize, key: u32) -> Cqe {
    Cqe {
        cqn: b.qps[4].recv_cq,
        idx: 4,
        epoch: b.qps[4].epoch,
        qpn: b.qpn(4),
        opcode: 128,
        wqe_index,
        byte_len: len as u32,
        solicited: true,
        with_inv: true,
        imm: key,
        ..Cqe::default()
    }
}

/// Writes of payload and the rest, in order; without consumer indices.
fn effects(b: &mut RecvBench) -> Vec<Effect> {
    b.settle();
    let mut all = b.take();
    all.retain(|e| !matches!(e, Effect::Cons { .. }));
    all
}

#[test]
fn the_key_goes_after_the_payload_and_before_the_completion_that_names_it() {
    all(|b| {
        for len in [0, 1, 256, 257, 700] {
            connect(b);
            if !b.regions.iter().any(|r| r.key == GONE) {
                let region = Region {
                    key: GONE,
                    ..b.regions[0].clone()
                };
                b.regions.push(region);
            }
            let data: Vec<u8> = (0..len).map(|i| i as u8 ^ 0x5a).collect();
            let packets = send_inv(b, 100, &data, GONE);
            let last = 99 + packets.len() as u32;
            b.take();
            b.receive(packets);
            let got = effects(b);
            let inv = got
                .iter()
                .position(|e| *e == Effect::Inv { key: GONE, err: 0 })
                .unwrap();
            let written: usize = got[..inv]
                .iter()
                .map(|e| match e {
                    Effect::Write { len, .. } => *len,
                    other => panic!("{other:?} before the invalidation"),
                })
                .sum();
            assert_eq!(written, len, "all of the payload first");
            assert_eq!(got[inv + 1..], [Effect::Cqe(cqe(b, 0, len, GONE)), aeth(last, 0x1f, 1)]);
            assert_eq!(b.bytes_at(DATA, len), data);
            // A duplicate is acknowledged; nothing is invalidated again.
            let again = send_inv(b, 100, &data, GONE).pop().unwrap();
            b.receive([again]);
            assert_eq!(effects(b), [aeth(last, 0x1f, 1)]);
        }
    });
}

#[test]
fn a_key_that_cannot_be_invalidated_is_a_remote_access_error() {
    all(|b| {
        b.regions.push(Region {
            key: 0x900,
            pd: 8,
            ..b.regions[0].clone()
        });
        b.fast_reg.push(0x900);
        for (key, why) in [(0x0000_0644, 1), (0x900, 2), (KEY, 3)] {
            connect(b);
            let packets = send_inv(b, 100, &[7; 300], key);
            b.receive(packets);
            let mut got = effects(b);
            got.retain(|e| !matches!(e, Effect::Write { .. }));
            let failed = Cqe {
                status: 8,
                vendor_err: 0x10 | why,
                with_inv: false,
                imm: 0,
                ..cqe(b, 0, 0, 0)
            };
            let want = [
                Effect::Inv { key, err: why },
                Effect::Cqe(failed),
                aeth(101, 0x62, 0),
                Effect::Err {
                    idx: 4,
                    epoch: b.qps[4].epoch,
                },
            ];
            assert_eq!(got[..4], want, "{key:#x}");
            assert_eq!(b.regions.len(), 3);
            // The other receive is flushed when the QP is in ERR.
        }
    });
}

#[test]
fn nothing_is_invalidated_by_a_send_that_is_not_accepted() {
    all(|b| {
        // Longer than the receive; ahead of its turn; without a receive; of another life.
        let packets = send_inv(b, 100, &vec![1; 1100], GONE);
        b.receive(packets);
        assert!(!effects(b).iter().any(|e| matches!(e, Effect::Inv { .. })));
        connect(b);
        let packets = send_inv(b, 105, &[1; 10], GONE);
        b.receive(packets);
        assert_eq!(effects(b), [aeth(100, 0x60, 0)]);
        for psn in 100..102 {
            let packets = b.send_packets(4, psn, &[1; 10], None, false);
            b.receive(packets);
        }
        effects(b);
        let packets = send_inv(b, 102, &[1; 10], GONE);
        b.receive(packets);
        let got = effects(b);
        assert!(
            matches!(
                got[..],
                [Effect::Tx(Tx {
                    syndrome: 0x20..=0x3f,
                    ..
                })]
            ),
            "{got:?}"
        );
        assert!(b.regions.iter().any(|r| r.key == GONE));
    });
}

/// READ responses that were handed over.
fn responses(b: &RecvBench) -> usize {
    b.effects
        .iter()
        .filter(|(_, e)| matches!(e, Effect::Tx(t) if t.len > 0))
        .count()
}

fn completions(b: &RecvBench) -> usize {
    b.effects.iter().filter(|(_, e)| matches!(e, Effect::Cqe(_))).count()
}

fn written(b: &RecvBench) -> usize {
    b.effects
        .iter()
        .filter(|(_, e)| matches!(e, Effect::Write { .. }))
        .count()
}

#[test]
fn a_send_that_invalidates_completes_when_the_reads_through_its_key_have_read() {
    all(|b| {
        b.create(OTHER, |qp| qp.mtu = 1);
        b.hold_tx = true;
        // Responses through the key are on their way to the wire, others behind them.
        let reads = [
            b.read_packet(OTHER, 100, DATA, GONE, 700),
            b.read_packet(OTHER, 103, DATA, KEY, 512),
        ];
        b.receive(reads);
        b.run_until("responses", |b| responses(b) == 5);
        let packets = send_inv(b, 100, &[3; 10], GONE);
        b.receive(packets);
        b.run_until("the invalidation", |b| {
            b.effects.iter().any(|(_, e)| matches!(e, Effect::Inv { .. }))
        });
        b.run(400);
        assert_eq!(completions(b), 0);
        // Two frames are out, then the third.
        b.hold_tx = false;
        b.run_until("completion", |b| completions(b) == 1);
        b.settle();
        // Those through another key do not matter.
        let region = Region {
            key: GONE,
            ..b.regions[0].clone()
        };
        b.regions.push(region);
        b.take();
        b.hold_tx = true;
        let read = b.read_packet(OTHER, 105, DATA, KEY, 700);
        b.receive([read]);
        b.run_until("responses", |b| responses(b) == 3);
        let packets = send_inv(b, 101, &[3; 10], GONE);
        b.receive(packets);
        b.run_until("completion", |b| completions(b) == 1);
        b.hold_tx = false;
        b.settle();
    });
}

#[test]
fn the_barrier_waits_for_what_was_judged_before_it_and_for_nothing_else() {
    all(|b| {
        b.create(OTHER, |qp| qp.mtu = 1);
        b.mark();
        assert!(!b.barrier_open(), "nothing is under way");
        // A WRITE whose payload is on its way while the next packet is judged: both count.
        b.stall_writes = true;
        let packets = b.write_packets(OTHER, 100, DATA, GONE, &[1; 700], None);
        b.receive(packets);
        b.run(300);
        b.mark();
        b.run(300);
        assert!(b.barrier_open());
        // What comes later does not.
        let later = b.write_packets(OTHER, 103, DATA, KEY, &[2; 20 * 256], None);
        b.receive(later);
        b.stall_writes = false;
        b.run_until("the first payload", |b| written(b) > 0);
        b.run_until("the barrier", |b| !b.barrier_open());
        assert!(written(b) >= 2, "two packets were under way");
        assert!(b.waiting() > 10, "the barrier did not wait for all");
        b.settle();
        // Frames of READ responses.
        b.take();
        b.hold_tx = true;
        let read = b.read_packet(OTHER, 123, DATA, GONE, 700);
        b.receive([read]);
        b.run_until("responses", |b| responses(b) == 3);
        b.mark();
        b.run(300);
        assert!(b.barrier_open());
        let read = b.read_packet(OTHER, 126, DATA, KEY, 10 * 256);
        b.receive([read]);
        b.run(300);
        let before = b.dut.cycles();
        b.hold_tx = false;
        b.run_until("the barrier", |b| !b.barrier_open());
        // All frames of that moment and none of the ten behind them.
        let rest = b.dut.cycles() - before;
        assert!((3..=3 * (2 + b.manners.latency)).contains(&rest), "{rest} cycles");
        b.settle();
        // The visit of the READ engine that looks up its key counts, too, and the frame that it leads to.
        b.take();
        b.stall_tx = true;
        let read = b.read_packet(OTHER, 136, DATA, GONE, 100);
        b.receive([read]);
        b.run(300);
        b.mark();
        b.stall_tx = false;
        b.hold_tx = true;
        b.run(400);
        assert_eq!(responses(b), 1);
        assert!(b.barrier_open());
        b.hold_tx = false;
        b.run_until("the barrier", |b| !b.barrier_open());
        b.settle();
    });
}
