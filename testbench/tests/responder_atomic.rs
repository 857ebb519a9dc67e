// SPDX-License-Identifier: Apache-2.0
//! `rnic_recv`: atomics of the responder, one test per rule, at both data widths.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::recv_bench::{
    Effect, MAX_RD, MEM_BASE, MEM_SIZE, Manners, Packet, Qp, RecvBench, Region, Tx, counter, event,
};

const CMP_SWAP: u8 = 0x13;
const FETCH_ADD: u8 = 0x14;
const DATA: u64 = MEM_BASE + 0x4_0000;
const KEY: u32 = 0x0000_0511;
const VA_OFF: u64 = 0x7000_0000_0000;

/// Prompt and busy, at both widths; one QP, number 4.
fn all(test: impl Fn(&mut RecvBench)) {
    for width in [64, 512] {
        for manners in [Manners::PROMPT, Manners::BUSY] {
            println!("{width} bits, {manners:?}");
            let mut b = RecvBench::new(width, 1);
            b.manners = manners;
            b.regions.push(Region {
                key: KEY,
                pd: 7,
                access: 0xf,
                va: DATA + VA_OFF,
                len: MEM_SIZE as u64 - 0x4_0000,
                addr: DATA,
            });
            connect(&mut b, |_| ());
            test(&mut b);
        }
    }
}

fn connect(b: &mut RecvBench, change: impl FnOnce(&mut Qp)) {
    b.create(4, |qp| {
        qp.rq_base = MEM_BASE + 0x800 * 4;
        qp.mtu = 1;
        qp.access = 0xe;
        change(qp);
    });
    b.run(4);
}

fn atomic(b: &RecvBench, opcode: u8, psn: u32, addr: u64, swap_add: u64, compare: u64) -> Packet {
    Packet {
        va: addr + VA_OFF,
        rkey: KEY,
        swap_add,
        compare,
        ..b.packet(4, opcode, psn)
    }
}

fn answer(psn: u32, msn: u32, value: u64) -> Effect {
    Effect::Tx(Tx {
        idx: 4,
        opcode: 0x12,
        psn: psn & 0xff_ffff,
        syndrome: 0x1f,
        msn,
        value,
        ..Tx::default()
    })
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

fn failed(b: &RecvBench, event: u8, psn: u32, syndrome: u8, msn: u32) -> Vec<Effect> {
    vec![
        Effect::Event {
            event,
            number: b.qpn(4),
        },
        aeth(psn, syndrome, msn),
        Effect::Err {
            idx: 4,
            epoch: b.qps[4].epoch,
        },
    ]
}

fn put(b: &mut RecvBench, addr: u64, value: u64) {
    let at = (addr - MEM_BASE) as usize;
    b.mem[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn word(b: &RecvBench, addr: u64) -> u64 {
    u64::from_le_bytes(b.bytes_at(addr, 8).try_into().unwrap())
}

#[test]
fn an_atomic_answers_with_what_was_there_and_changes_its_eight_bytes_only() {
    all(|b| {
        put(b, DATA + 8, 0x1122_3344_5566_7788);
        let mut expected = b.mem.clone();
        let mut expect = |b: &RecvBench, value: u64| {
            let at = (DATA + 8 - MEM_BASE) as usize;
            expected[at..at + 8].copy_from_slice(&value.to_le_bytes());
            assert!(b.mem == expected);
        };
        let p = atomic(b, FETCH_ADD, 100, DATA + 8, 0xff, 0xdead);
        b.receive([p]);
        assert_eq!(b.outcome(), [answer(100, 1, 0x1122_3344_5566_7788)]);
        expect(b, 0x1122_3344_5566_7887);
        // The sum wraps.
        let p = atomic(b, FETCH_ADD, 101, DATA + 8, u64::MAX, 0);
        b.receive([p]);
        assert_eq!(b.outcome(), [answer(101, 2, 0x1122_3344_5566_7887)]);
        expect(b, 0x1122_3344_5566_7886);
        // Compared and not equal, by one bit: answered, not written at all.
        b.take();
        let p = atomic(b, CMP_SWAP, 102, DATA + 8, 5, 0x9122_3344_5566_7886);
        b.receive([p]);
        b.settle();
        assert_eq!(b.take(), [answer(102, 3, 0x1122_3344_5566_7886)]);
        expect(b, 0x1122_3344_5566_7886);
        let p = atomic(b, CMP_SWAP, 103, DATA + 8, 5, 0x1122_3344_5566_7886);
        b.receive([p]);
        assert_eq!(b.outcome(), [answer(103, 4, 0x1122_3344_5566_7886)]);
        expect(b, 5);
        assert!(b.lookups.iter().all(|l| (l.2, l.3) == (DATA + 8 + VA_OFF, 8)));
    });
}

#[test]
fn atomics_come_after_the_writes_and_before_the_reads_of_their_order() {
    all(|b| {
        // The payload of the WRITE is still on its way when the atomic is judged.
        let big: Vec<u8> = (0..256).map(|i| i as u8).collect();
        let write = b.write_packets(4, 100, DATA + VA_OFF, KEY, &big, None);
        let add = atomic(b, FETCH_ADD, 101, DATA + 0xf8, 1, 0);
        let read = b.read_packet(4, 102, DATA + VA_OFF, KEY, 256);
        let mut packets = write;
        packets.extend([add, read]);
        b.stall_writes = true;
        b.receive(packets);
        b.run(500);
        b.stall_writes = false;
        let was = u64::from_le_bytes(big[0xf8..].try_into().unwrap());
        let got = b.outcome();
        assert_eq!(got[..2], [aeth(100, 0x1f, 1), answer(101, 2, was)]);
        assert_eq!(word(b, DATA + 0xf8), was + 1);
        let Effect::Tx(r) = &got[2] else { panic!("{got:?}") };
        assert_eq!((r.opcode, r.psn, r.msn), (0x10, 102, 3));
    });
}

#[test]
fn results_keep_their_place_among_read_responses_and_acks() {
    all(|b| {
        put(b, DATA, 40);
        b.stall_tx = true;
        let mut packets = vec![b.read_packet(4, 100, DATA + VA_OFF, KEY, 600)];
        packets.push(atomic(b, FETCH_ADD, 103, DATA, 2, 0));
        packets.extend(b.write_packets(4, 104, DATA + 4096 + VA_OFF, KEY, &[1; 9], None));
        packets.push(atomic(b, FETCH_ADD, 105, DATA, 2, 0));
        b.receive(packets);
        b.run(900);
        b.stall_tx = false;
        let seen: Vec<_> = b
            .outcome()
            .into_iter()
            .map(|e| match e {
                Effect::Tx(t) => (t.opcode, t.psn, t.value),
                other => panic!("{other:?}"),
            })
            .collect();
        let ack = (0x11, 105, 0);
        let want = [
            (0x0d, 100, 0),
            (0x0e, 101, 0),
            (0x0f, 102, 0),
            (0x12, 103, 40),
            (0x12, 105, 42),
        ];
        assert_eq!(seen.iter().filter(|s| s.0 != 0x11).copied().collect::<Vec<_>>(), want);
        // The ACK of the WRITE may wait for all of them, and must not come before the atomic in front of it.
        let at = seen.iter().position(|s| s.0 == 0x11).unwrap();
        assert!(at > 3 && seen[at].1 >= 104 && seen[at].1 <= ack.1, "{seen:?}");
        assert_eq!(word(b, DATA), 44);
    });
}

#[test]
fn a_duplicate_is_answered_from_what_is_remembered_and_never_executed_again() {
    all(|b| {
        connect(b, |qp| {
            qp.max_dest_rd_atomic = MAX_RD as u8;
            qp.rq_psn = 0xff_fffe;
        });
        // More than are remembered, across the wrap, mixed with READs and WRITEs.
        let mut psn = 0xff_fffe;
        let mut done = Vec::new();
        put(b, DATA, 1000);
        let mut value = 1000u64;
        for k in 0..MAX_RD as u64 + 3 {
            let p = if k % 2 == 0 {
                atomic(b, FETCH_ADD, psn, DATA, k + 1, 0)
            } else {
                atomic(b, CMP_SWAP, psn, DATA, value + k + 1, value)
            };
            done.push((p.clone(), value));
            value += k + 1;
            b.receive([p]);
            psn = (psn + 1) & 0xff_ffff;
            b.outcome();
        }
        let msn = MAX_RD as u32 + 3;
        assert_eq!(word(b, DATA), value);
        let memory = b.mem.clone();
        let (old, known) = done.split_at(3);
        for round in 0..3 {
            for (p, was) in known {
                // Operands that would change something if anything were executed.
                let p = Packet {
                    swap_add: 77 + round,
                    compare: value,
                    ..p.clone()
                };
                b.receive([p.clone()]);
                b.settle();
                assert_eq!(b.take(), [answer(p.psn, msn, *was)], "round {round}");
            }
            // Twice in a row, and out of order.
            let (p, was) = &known[1];
            b.receive([p.clone(), p.clone(), known[0].0.clone()]);
            b.settle();
            let again = answer(p.psn, msn, *was);
            assert_eq!(
                b.take(),
                [again.clone(), again, answer(known[0].0.psn, msn, known[0].1)]
            );
        }
        // Older than all that is remembered: silence.
        for (p, _) in old {
            b.receive([p.clone()]);
            b.settle();
            assert_eq!(b.take(), []);
        }
        assert!(b.mem == memory);
        assert_eq!(b.counters[counter::RX_DUPLICATES], 3 * (MAX_RD as u64 + 3) + 3);
        // The stream goes on; a new life remembers nothing.
        let p = atomic(b, FETCH_ADD, psn, DATA, 1, 0);
        b.receive([p.clone()]);
        assert_eq!(b.outcome(), [answer(psn, msn + 1, value)]);
        let after = (psn + 1) & 0xff_ffff;
        connect(b, |qp| qp.rq_psn = after);
        b.receive([Packet {
            dest_qpn: b.qpn(4),
            ..p
        }]);
        assert_eq!(b.outcome(), []);
        assert_eq!(word(b, DATA), value + 1);
    });
}

#[test]
fn an_atomic_that_is_not_aligned_or_not_allowed_is_an_invalid_request() {
    all(|b| {
        let memory = b.mem.clone();
        for off in [1, 2, 4, 7] {
            let p = atomic(b, FETCH_ADD, 100, DATA + off, 1, 0);
            b.receive([p]);
            assert_eq!(b.outcome(), failed(b, event::QP_REQ_ERR, 100, 0x61, 0), "offset {off}");
            connect(b, |_| ());
        }
        connect(b, |qp| qp.access = 6);
        let p = atomic(b, CMP_SWAP, 100, DATA, 1, 0);
        b.receive([p]);
        assert_eq!(b.outcome(), failed(b, event::QP_REQ_ERR, 100, 0x61, 0));
        // Within a message of several packets.
        connect(b, |_| ());
        let mut packets = b.write_packets(4, 100, DATA + 0x1_0000 + VA_OFF, KEY, &[0; 300], None);
        packets.truncate(1);
        packets.push(atomic(b, FETCH_ADD, 101, DATA, 1, 0));
        b.receive(packets);
        assert_eq!(b.outcome(), failed(b, event::QP_REQ_ERR, 101, 0x61, 0));
        let at = (DATA - MEM_BASE) as usize;
        assert_eq!(b.mem[at..at + 4096], memory[at..at + 4096]);
    });
}

#[test]
fn an_atomic_needs_a_key_with_remote_atomic_rights_for_all_its_bytes() {
    all(|b| {
        let at = DATA + 0x1_0000;
        let region = |key, pd, access, len| Region {
            key,
            pd,
            access,
            va: at,
            len,
            addr: at,
        };
        b.regions.push(region(0x700, 8, 0xf, 64));
        b.regions.push(region(0x800, 7, 0x7, 64));
        b.regions.push(region(0x900, 7, 0x8, 12));
        for (key, va) in [(0x600, at), (0x700, at), (0x800, at), (0x900, at + 8), (0x900, at - 8)] {
            connect(b, |_| ());
            let memory = b.mem.clone();
            let p = Packet {
                va,
                rkey: key,
                ..atomic(b, FETCH_ADD, 100, DATA, 1, 0)
            };
            b.receive([p]);
            assert_eq!(b.outcome(), failed(b, event::QP_ACCESS_ERR, 100, 0x62, 0), "{key:#x}");
            assert!(b.mem == memory);
        }
        // That right alone is enough.
        connect(b, |_| ());
        put(b, at, 9);
        let p = Packet {
            va: at,
            rkey: 0x900,
            ..atomic(b, FETCH_ADD, 100, DATA, 1, 0)
        };
        b.receive([p]);
        assert_eq!(b.outcome(), [answer(100, 1, 9)]);
        assert_eq!(word(b, at), 10);
    });
}

#[test]
fn memory_that_the_host_does_not_deliver_fails_the_atomic_and_is_not_written() {
    all(|b| {
        for err in [1, 2, 3] {
            connect(b, |_| ());
            let memory = b.mem.clone();
            b.bad_reads = vec![(DATA..DATA + 8, err)];
            let p = atomic(b, FETCH_ADD, 100, DATA, 1, 0);
            b.receive([p]);
            assert_eq!(b.outcome(), failed(b, event::QP_FATAL, 100, 0x63, 0));
            assert!(b.mem == memory);
            b.bad_reads.clear();
        }
    });
}

#[test]
fn reads_and_atomics_share_max_dest_rd_atomic() {
    all(|b| {
        connect(b, |qp| qp.max_dest_rd_atomic = 2);
        put(b, DATA, 3);
        b.stall_tx = true;
        let packets = [
            b.read_packet(4, 100, DATA + VA_OFF, KEY, 8),
            atomic(b, FETCH_ADD, 101, DATA, 1, 0),
            atomic(b, FETCH_ADD, 102, DATA, 1, 0),
        ];
        b.receive(packets);
        b.run(600);
        b.stall_tx = false;
        let got = b.outcome();
        let at = got.iter().position(|e| *e == answer(101, 2, 3)).unwrap();
        let nak = got.iter().position(|e| *e == aeth(102, 0x61, 2)).unwrap();
        assert!(at < nak);
        assert_eq!(word(b, DATA), 4);
    });
}
