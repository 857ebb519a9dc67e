// SPDX-License-Identifier: Apache-2.0
//! Shared receive queues at the responder: who takes which WQE, what becomes of it, limit and doorbells, at both widths.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use openrnic_testbench::recv_bench::{
    Cqe, Effect, MEM_BASE, MEM_SIZE, Manners, Qp, RecvBench, Region, Sge, Tx, event, seed, state,
};
use openrnic_testbench::recv_srq::{Look, Srq};

const ACK: u8 = 0x1f;
const RNR: u8 = 0x20 | 12;
const NAK_INV: u8 = 0x61;
const NAK_ACCESS: u8 = 0x62;
const NAK_OP: u8 = 0x63;
const LOC_LEN_ERR: u8 = 1;
const LOC_QP_OP_ERR: u8 = 2;
const LOC_PROT_ERR: u8 = 4;
const FLUSH: u8 = 5;
const LOC_ACCESS_ERR: u8 = 8;
const REM_INV_REQ: u8 = 9;
const RECV: u8 = 128;
const RECV_IMM: u8 = 129;
const DB_ACCEPTED: usize = 41;
const DB_DROP_QPN: usize = 42;
const DB_DROP_PAGE: usize = 43;
const DB_DROP_RANGE: usize = 44;

const RING: u64 = MEM_BASE + 0x2_0000;
const DATA: u64 = MEM_BASE + 0x4_0000;
const KEY: u32 = 0x511;
const VA_OFF: u64 = 0x7000_0000_0000;
const SRQ: u16 = 37;

fn all(test: impl Fn(&mut RecvBench)) {
    for width in [64, 512] {
        for manners in [Manners::PROMPT, Manners::BUSY] {
            println!("{width} bits, {manners:?}");
            let mut b = bench(width, 1);
            b.manners = manners;
            test(&mut b);
        }
    }
}

fn bench(width: usize, seed: u64) -> RecvBench {
    let mut b = RecvBench::new(width, seed);
    b.regions.push(Region {
        key: KEY,
        pd: 7,
        access: 0xf,
        va: DATA + VA_OFF,
        len: MEM_SIZE as u64 - 0x4_0000,
        addr: DATA,
    });
    b
}

fn create(b: &mut RecvBench, log_size: u8) -> Srq {
    let srq = Srq::new(SRQ, RING, log_size);
    b.srq_create(&srq);
    srq
}

fn connect(b: &mut RecvBench, idx: u16, change: impl FnOnce(&mut Qp)) {
    b.create(idx, |qp| {
        qp.has_srq = true;
        qp.srq = SRQ;
        // What would describe a receive ring of its own means nothing.
        qp.rq_base = 0xdead_0000_0000;
        change(qp);
    });
    b.run(4);
}

fn sge(addr: u64, len: u32) -> Sge {
    Sge {
        addr: addr + VA_OFF,
        len,
        lkey: KEY,
    }
}

fn aeth(idx: u16, psn: u32, syndrome: u8, msn: u32) -> Effect {
    Effect::Tx(Tx {
        idx,
        opcode: 0x11,
        psn: psn & 0xff_ffff,
        syndrome,
        msn,
        len: 0,
        pieces: vec![],
        value: 0,
    })
}

fn cqe(b: &RecvBench, idx: u16, slot: u16, byte_len: usize) -> Effect {
    Effect::Cqe(raw_cqe(b, idx, slot, byte_len))
}

fn raw_cqe(b: &RecvBench, idx: u16, slot: u16, byte_len: usize) -> Cqe {
    let qp = &b.qps[usize::from(idx)];
    Cqe {
        cqn: qp.recv_cq,
        idx,
        epoch: qp.epoch,
        qpn: b.qpn(idx),
        opcode: RECV,
        wqe_index: slot,
        byte_len: byte_len as u32,
        ..Cqe::default()
    }
}

fn failed(b: &RecvBench, idx: u16, slot: u16, status: u8, vendor_err: u8) -> Effect {
    Effect::Cqe(Cqe {
        status,
        vendor_err,
        solicited: true,
        ..raw_cqe(b, idx, slot, 0)
    })
}

fn happened(b: &RecvBench, idx: u16, event: u8) -> Effect {
    Effect::Event {
        event,
        number: b.qpn(idx),
    }
}

const LIMIT: Effect = Effect::Event {
    event: event::SRQ_LIMIT_REACHED,
    number: SRQ as u32,
};

fn err(b: &RecvBench, idx: u16) -> Effect {
    Effect::Err {
        idx,
        epoch: b.qps[usize::from(idx)].epoch,
    }
}

fn send(b: &mut RecvBench, idx: u16, psn: u32, data: &[u8]) {
    let packets = b.send_packets(idx, psn, data, None, false);
    b.receive(packets);
}

#[test]
fn messages_take_the_oldest_wqe_whoever_receives_them_and_slots_follow_the_links() {
    all(|b| {
        let mut srq = create(b, 2);
        connect(b, 4, |_| ());
        connect(b, 5, |_| ());
        let mut psn = [100; 2];
        let mut expected = b.mem.clone();
        let mut held: Vec<u16> = Vec::new();
        for n in 0..24u64 {
            while srq.free.len() > 1 {
                let slot = srq.free[0];
                let at = DATA + 0x1000 * u64::from(slot) + n;
                let posted = b.srq_post(&mut srq, &[sge(at, 300)]);
                let (from, to) = ((srq.slot(slot) - MEM_BASE) as usize, 32 << srq.log_stride);
                expected[from..from + to].copy_from_slice(&b.mem[from..from + to]);
                held.push(posted);
            }
            let qp = (n / 3 % 2) as usize;
            let data: Vec<u8> = (0..200).map(|i| (i + n) as u8).collect();
            let slot = held.remove(0);
            let at = (u64::from_le_bytes(b.bytes_at(srq.slot(slot) + 16, 8).try_into().unwrap()) - VA_OFF - MEM_BASE)
                as usize;
            expected[at..at + 200].copy_from_slice(&data);
            send(b, 4 + qp as u16, psn[qp], &data);
            let got = b.outcome();
            let idx = 4 + qp as u16;
            assert_eq!(
                got,
                [cqe(b, idx, slot, 200), aeth(idx, psn[qp], ACK, psn[qp] - 99)],
                "message {n}"
            );
            psn[qp] += 1;
            assert!(b.mem == expected, "message {n}");
            // Back in another order: each third one first.
            let at = if n % 3 == 0 { 0 } else { srq.free.len() };
            let last = srq.free.len() - 1;
            srq.free.insert(at.clamp(1, last + 1), slot);
        }
    });
}

#[test]
fn a_message_in_progress_keeps_its_wqe_while_others_overtake_it() {
    all(|b| {
        let mut srq = create(b, 3);
        connect(b, 4, |qp| qp.mtu = 1);
        connect(b, 5, |qp| qp.mtu = 1);
        for n in 0..3 {
            b.srq_post(&mut srq, &[sge(DATA + 0x1000 * n, 1000)]);
        }
        let long = b.send_packets(4, 100, &[0xaa; 600], None, false);
        b.receive([long[0].clone()]);
        b.settle();
        send(b, 5, 100, &[0xbb; 100]);
        assert_eq!(b.outcome(), [cqe(b, 5, 1, 100), aeth(5, 100, ACK, 1)]);
        // The slot of the one that overtook is used again at once, with other contents.
        srq.free.insert(0, 1);
        b.srq_write(&srq, 1, 4, 1, &[sge(DATA + 0x9000, 1000)]);
        b.receive(long[1..].to_vec());
        assert_eq!(b.outcome(), [cqe(b, 4, 0, 600), aeth(4, 102, ACK, 1)]);
        assert_eq!(b.bytes_at(DATA, 600), [0xaa; 600]);
        assert_eq!(b.bytes_at(DATA + 0x1000, 100), [0xbb; 100]);
        // Each WQE was read once.
        assert_eq!(b.wqe_reads.len(), 2);
    });
}

#[test]
fn an_empty_queue_tells_the_peer_to_wait_and_a_doorbell_ends_it() {
    all(|b| {
        let mut srq = create(b, 2);
        connect(b, 4, |_| ());
        send(b, 4, 100, &[1; 10]);
        assert_eq!(b.outcome(), [aeth(4, 100, RNR, 0)]);
        let slot = b.srq_post(&mut srq, &[sge(DATA, 10)]);
        send(b, 4, 100, &[1; 10]);
        assert_eq!(b.outcome(), [cqe(b, 4, slot, 10), aeth(4, 100, ACK, 1)]);
        // A WRITE needs none, one with immediate does.
        let packets = b.write_packets(4, 101, DATA + VA_OFF, KEY, &[2; 10], None);
        b.receive(packets);
        assert_eq!(b.outcome(), [aeth(4, 101, ACK, 2)]);
        let packets = b.write_packets(4, 102, DATA + VA_OFF, KEY, &[2; 10], Some(5));
        b.receive(packets);
        assert_eq!(b.outcome(), [aeth(4, 102, RNR, 2)]);
    });
}

#[test]
fn a_write_with_immediate_takes_a_wqe_and_its_link() {
    all(|b| {
        let mut srq = create(b, 2);
        connect(b, 4, |qp| qp.mtu = 1);
        for n in 0..3 {
            b.srq_post(&mut srq, &[sge(DATA + 0x1000 * n, 100)]);
        }
        // With payload over several packets, without any, and a SEND behind them.
        let packets = b.write_packets(4, 100, DATA + VA_OFF + 0x8000, KEY, &[7; 600], Some(0x1234));
        b.receive(packets);
        let packets = b.write_packets(4, 103, 0, 0, &[], Some(0x77));
        b.receive(packets);
        send(b, 4, 104, &[9; 50]);
        let imm = |slot, byte_len, imm| {
            Effect::Cqe(Cqe {
                opcode: RECV_IMM,
                with_imm: true,
                imm,
                ..raw_cqe(b, 4, slot, byte_len)
            })
        };
        let want = [
            imm(0, 600, 0x1234),
            aeth(4, 102, ACK, 1),
            imm(1, 0, 0x77),
            aeth(4, 103, ACK, 2),
            cqe(b, 4, 2, 50),
            aeth(4, 104, ACK, 3),
        ];
        assert_eq!(b.outcome(), want);
        assert_eq!(b.bytes_at(DATA + 0x2000, 50), [9; 50]);
    });
}

#[test]
fn links_lead_anywhere_in_the_ring_and_never_out_of_it() {
    all(|b| {
        let mut srq = create(b, 3);
        connect(b, 4, |_| ());
        srq.free = vec![0, 6, 2, 7, 1, 5, 3, 4];
        let slots: Vec<u16> = (0..7u64)
            .map(|n| b.srq_post(&mut srq, &[sge(DATA + 0x100 * n, 64)]))
            .collect();
        // Bits above the ring's size are not looked at.
        let link = b.bytes_at(srq.slot(2) + 2, 2).to_vec();
        assert_eq!(link, [7, 0]);
        let at = (srq.slot(2) + 3 - MEM_BASE) as usize;
        b.mem[at] = 0xff;
        for (n, slot) in (0..).zip(&slots) {
            send(b, 4, 100 + n, &[n as u8; 64]);
            assert_eq!(b.outcome(), [cqe(b, 4, *slot, 64), aeth(4, 100 + n, ACK, 1 + n)]);
            assert_eq!(b.bytes_at(DATA + 0x100 * u64::from(n), 64), [n as u8; 64]);
        }
    });
}

#[test]
fn a_slot_used_again_by_the_same_qp_is_read_again() {
    all(|b| {
        let mut srq = create(b, 1);
        connect(b, 4, |_| ());
        connect(b, 5, |_| ());
        // A packet that is placed and not committed leaves its WQE in the cache.
        b.srq_post(&mut srq, &[sge(DATA, 100)]);
        // The acknowledge of another QP keeps it from its commit.
        connect(b, 6, |_| ());
        b.stall_tx = true;
        let other = b.write_packets(6, 100, sge(DATA + 0x8000, 10).addr, KEY, &[9; 10], None);
        b.receive(other);
        send(b, 4, 100, &[1; 100]);
        b.run(400);
        b.change(4, |qp| qp.state = state::INIT);
        b.stall_tx = false;
        assert_eq!(b.outcome(), [aeth(6, 100, ACK, 1)]);
        b.change(4, |qp| qp.state = state::RTS);
        send(b, 5, 100, &[2; 100]);
        assert_eq!(b.outcome(), [cqe(b, 5, 0, 100), aeth(5, 100, ACK, 1)]);
        // Slot 1 comes next, then slot 0 again: elsewhere.
        srq.free.push(0);
        b.srq_post(&mut srq, &[sge(DATA + 0x1000, 100)]);
        send(b, 5, 101, &[3; 100]);
        assert_eq!(b.outcome(), [cqe(b, 5, 1, 100), aeth(5, 101, ACK, 2)]);
        srq.free.push(1);
        b.srq_post(&mut srq, &[sge(DATA + 0x2000, 100)]);
        send(b, 4, 100, &[4; 100]);
        assert_eq!(b.outcome(), [cqe(b, 4, 0, 100), aeth(4, 100, ACK, 1)]);
        assert_eq!(b.bytes_at(DATA + 0x2000, 100), [4; 100]);
    });
}

#[test]
fn local_keys_are_judged_by_the_queues_pd_and_remote_ones_by_the_qps() {
    all(|b| {
        let mut srq = Srq {
            pd: 9,
            ..Srq::new(SRQ, RING, 2)
        };
        b.srq_create(&srq);
        assert_eq!(b.srq_look(SRQ).pd, 9);
        b.regions.push(Region {
            key: 0x999,
            pd: 9,
            ..b.regions[0].clone()
        });
        connect(b, 4, |_| ());
        let other = Sge {
            lkey: 0x999,
            ..sge(DATA, 50)
        };
        b.srq_post(&mut srq, &[other]);
        b.srq_post(&mut srq, &[sge(DATA, 50)]);
        send(b, 4, 100, &[1; 50]);
        assert_eq!(b.outcome(), [cqe(b, 4, 0, 50), aeth(4, 100, ACK, 1)]);
        let packets = b.write_packets(4, 101, DATA + VA_OFF, KEY, &[2; 10], None);
        b.receive(packets);
        assert_eq!(b.outcome(), [aeth(4, 101, ACK, 2)]);
        send(b, 4, 102, &[1; 50]);
        let want = [failed(b, 4, 1, LOC_PROT_ERR, 0x12), aeth(4, 102, NAK_OP, 2), err(b, 4)];
        assert_eq!(b.outcome()[..3], want);
    });
}

#[test]
fn a_receive_that_fails_is_completed_by_its_qp_and_the_queue_goes_on() {
    all(|b| {
        let mut srq = create(b, 4);
        for idx in 4..9 {
            connect(b, idx, |_| ());
        }
        b.srq_post(&mut srq, &[sge(DATA, 10)]); // too short
        b.srq_post_raw(&mut srq, 9, &[sge(DATA, 10)]); // malformed, but its link is good
        b.srq_post(&mut srq, &[sge(DATA, 10)]); // for a WRITE with a bad key
        b.srq_post(&mut srq, &[sge(DATA, 1000)]); // its SEND is broken off
        b.srq_post(&mut srq, &[sge(DATA, 10)]); // good
        let last = |b: &RecvBench, idx| happened(b, idx, event::QP_LAST_WQE_REACHED);
        send(b, 4, 100, &[1; 11]);
        let want = [
            failed(b, 4, 0, LOC_LEN_ERR, 0),
            aeth(4, 100, NAK_INV, 0),
            err(b, 4),
            last(b, 4),
        ];
        assert_eq!(b.outcome(), want);
        send(b, 5, 100, &[1; 11]);
        let want = [
            failed(b, 5, 1, LOC_QP_OP_ERR, 0),
            aeth(5, 100, NAK_OP, 0),
            err(b, 5),
            last(b, 5),
        ];
        assert_eq!(b.outcome(), want);
        let packets = b.write_packets(6, 100, DATA + VA_OFF, 0x666, &[1; 11], Some(1));
        b.receive(packets);
        let Effect::Cqe(mut bad_key) = failed(b, 6, 2, LOC_ACCESS_ERR, 0x11) else {
            unreachable!()
        };
        bad_key.opcode = RECV_IMM;
        let want = [Effect::Cqe(bad_key), aeth(6, 100, NAK_ACCESS, 0), err(b, 6), last(b, 6)];
        assert_eq!(b.outcome(), want);
        let mut packets = b.send_packets(7, 100, &[1; 600], None, false);
        packets[1].opcode = 0x0a;
        b.receive(packets[..2].to_vec());
        let want = [
            failed(b, 7, 3, REM_INV_REQ, 0),
            aeth(7, 101, NAK_INV, 0),
            err(b, 7),
            last(b, 7),
        ];
        assert_eq!(b.outcome(), want);
        send(b, 8, 100, &[1; 10]);
        assert_eq!(b.outcome(), [cqe(b, 8, 4, 10), aeth(8, 100, ACK, 1)]);
    });
}

#[test]
fn a_wqe_that_cannot_be_read_fails_the_qp_and_stays_in_the_queue() {
    all(|b| {
        let mut srq = create(b, 2);
        for idx in 4..7 {
            connect(b, idx, |_| ());
        }
        b.srq_post(&mut srq, &[sge(DATA, 50)]);
        b.bad_reads.push((RING..RING + 8, 3));
        for idx in [4, 5] {
            if idx == 4 {
                send(b, 4, 100, &[1; 50]);
            } else {
                let packets = b.write_packets(5, 100, DATA + VA_OFF, KEY, &[1; 11], Some(1));
                b.receive(packets);
            }
            let want = [
                happened(b, idx, event::QP_FATAL),
                aeth(idx, 100, NAK_OP, 0),
                err(b, idx),
                happened(b, idx, event::QP_LAST_WQE_REACHED),
            ];
            assert_eq!(b.outcome(), want);
        }
        assert_eq!(b.srq_look(SRQ).left, 1);
        b.bad_reads.clear();
        send(b, 6, 100, &[3; 50]);
        assert_eq!(b.outcome(), [cqe(b, 6, 0, 50), aeth(6, 100, ACK, 1)]);
        assert_eq!(b.bytes_at(DATA, 50), [3; 50]);
    });
}

#[test]
fn a_qp_in_err_flushes_what_it_took_and_tells_once_that_nothing_follows() {
    all(|b| {
        let mut srq = create(b, 2);
        connect(b, 4, |qp| qp.mtu = 1);
        connect(b, 5, |_| ());
        for n in 0..3 {
            b.srq_post(&mut srq, &[sge(DATA + 0x1000 * n, 1000)]);
        }
        let long = b.send_packets(4, 100, &[0xaa; 600], None, false);
        b.receive([long[0].clone()]);
        b.settle();
        // What is written before must be there before the event.
        b.dut.set("cq_idle_i", 0);
        b.change(4, |qp| qp.state = state::ERR);
        b.change(5, |qp| qp.state = state::ERR);
        let idle = [
            happened(b, 4, event::QP_LAST_WQE_REACHED),
            happened(b, 5, event::QP_LAST_WQE_REACHED),
        ];
        b.run(500);
        assert!(
            b.take().iter().all(|e| !idle.contains(e)),
            "an event before its completion"
        );
        b.dut.set("cq_idle_i", 1);
        b.settle();
        b.take();
        // Told once, whatever happens to them in ERR.
        b.change(4, |qp| qp.state = state::ERR);
        b.ring(4, 1);
        assert_eq!(b.outcome(), []);
        // The two that nobody took are still there.
        assert_eq!(b.srq_look(SRQ).left, 2);
        connect(b, 6, |_| ());
        send(b, 6, 100, &[3; 50]);
        assert_eq!(b.outcome(), [cqe(b, 6, 1, 50), aeth(6, 100, ACK, 1)]);
    });
}

#[test]
fn the_flushed_wqe_comes_before_last_wqe_reached() {
    all(|b| {
        let mut srq = create(b, 2);
        connect(b, 4, |qp| qp.mtu = 1);
        b.srq_post(&mut srq, &[sge(DATA, 1000)]);
        let long = b.send_packets(4, 100, &[0xaa; 600], None, false);
        b.receive(long[..2].to_vec());
        b.settle();
        b.take();
        b.change(4, |qp| qp.state = state::ERR);
        let want = [failed(b, 4, 0, FLUSH, 0), happened(b, 4, event::QP_LAST_WQE_REACHED)];
        assert_eq!(b.outcome(), want);
        // A new life may tell again.
        b.change(4, |qp| {
            qp.epoch += 1;
            qp.state = state::RTS;
        });
        b.srq_post(&mut srq, &[sge(DATA, 1000)]);
        send(b, 4, 100, &[1; 20]);
        assert_eq!(b.outcome(), [cqe(b, 4, 1, 20), aeth(4, 100, ACK, 1)]);
        b.change(4, |qp| qp.state = state::ERR);
        assert_eq!(b.outcome(), [happened(b, 4, event::QP_LAST_WQE_REACHED)]);
    });
}

#[test]
fn a_qp_that_leaves_for_reset_gives_its_slot_back_before_the_barrier_is_answered() {
    all(|b| {
        let mut srq = create(b, 3);
        for idx in 4..12 {
            connect(b, idx, |qp| qp.mtu = 1);
        }
        // Half of them are in the middle of a message.
        for idx in [4, 5, 6, 7] {
            let slot = b.srq_post(&mut srq, &[sge(DATA, 1000)]);
            let long = b.send_packets(idx, 100, &[0xaa; 600], None, false);
            b.receive([long[0].clone()]);
            b.settle();
            assert_eq!(slot, idx - 4);
        }
        b.take();
        let want: Vec<Effect> = (4..8).map(|idx| failed(b, idx, idx - 4, FLUSH, 0)).collect();
        for idx in 4..12 {
            b.change(idx, |qp| {
                qp.epoch += 1;
                qp.state = state::RESET;
                // Half of them are destroyed.
                qp.valid = idx % 2 == 0;
            });
        }
        b.run(8);
        b.stall_cqe = true;
        b.dut.set("drain_req_i", 1);
        b.run(400);
        assert_eq!(b.dut.get("drain_ack_o"), 0, "completions are not handed over yet");
        b.stall_cqe = false;
        b.run_until("the barrier", |b| b.dut.get("drain_ack_o") == 1);
        assert_eq!(b.take(), want);
        b.run(200);
        b.dut.set("drain_req_i", 0);
        assert_eq!(b.outcome(), [], "nothing is flushed twice");
        // A life that ends without a message in progress gives nothing back, whatever the section still holds.
        connect(b, 4, |_| ());
        b.change(4, |qp| qp.epoch += 1);
        assert_eq!(b.outcome(), []);
    });
}

#[test]
fn the_limit_event_comes_once_when_fewer_wqes_wait() {
    all(|b| {
        let mut srq = create(b, 3);
        connect(b, 4, |_| ());
        for n in 0..5 {
            b.srq_post(&mut srq, &[sge(DATA + 0x100 * n, 100)]);
        }
        let mut psn = 100;
        let mut one = |b: &mut RecvBench| {
            send(b, 4, psn, &[1; 20]);
            psn += 1;
            let mut all = b.outcome();
            all.retain(|e| matches!(e, Effect::Event { .. }));
            all
        };
        b.srq_limit(SRQ, 4);
        assert_eq!(
            b.srq_look(SRQ),
            Look {
                pd: 7,
                limit: 4,
                left: 5
            }
        );
        assert_eq!(one(b), []);
        assert_eq!(
            b.srq_look(SRQ),
            Look {
                pd: 7,
                limit: 4,
                left: 4
            }
        );
        assert_eq!(one(b), [LIMIT]);
        // It is over with that.
        assert_eq!(
            b.srq_look(SRQ),
            Look {
                pd: 7,
                limit: 0,
                left: 3
            }
        );
        assert_eq!(one(b), []);
        // A limit that is not met when it is set is told at once.
        b.srq_limit(SRQ, 2);
        assert_eq!(b.outcome(), []);
        b.srq_limit(SRQ, 3);
        assert_eq!(b.outcome(), [LIMIT]);
        assert_eq!(b.srq_look(SRQ).limit, 0);
        // 0 takes it back.
        b.srq_limit(SRQ, 2);
        b.srq_limit(SRQ, 0);
        assert_eq!(one(b), []);
    });
}

#[test]
fn doorbells_are_checked_and_counted() {
    all(|b| {
        let mut srq = create(b, 2);
        b.srq_post(&mut srq, &[sge(DATA, 100)]);
        b.run(4);
        let before = b.counters.clone();
        let ring = |b: &mut RecvBench, uar, number, producer| {
            b.srq_doorbell(uar, number, producer);
            b.srq_look(SRQ).left
        };
        let n = u32::from(SRQ);
        assert_eq!(ring(b, 4, n, 2), 1, "another page");
        assert_eq!(ring(b, 3, n + 1, 2), 1, "no such queue");
        assert_eq!(ring(b, 3, n + 64, 2), 1, "no such queue");
        assert_eq!(ring(b, 3, n | 1 << 20, 2), 1, "no such queue");
        assert_eq!(ring(b, 3, n, 4), 1, "one slot stays free");
        assert_eq!(ring(b, 3, n, 0), 1, "backwards");
        assert_eq!(ring(b, 3, n, 3), 3);
        b.run(4);
        let counts: Vec<u64> = [DB_ACCEPTED, DB_DROP_QPN, DB_DROP_PAGE, DB_DROP_RANGE]
            .iter()
            .map(|c| b.counters[*c] - before[*c])
            .collect();
        assert_eq!(counts, [1, 3, 1, 2]);
        // A queue that is destroyed knows no doorbells, and one made in its place starts from nothing.
        b.srq_limit(SRQ, 3);
        b.srq_destroy(SRQ);
        assert_eq!(ring(b, 3, n, 3), 3);
        b.srq_create(&Srq {
            uar: 5,
            ..Srq::new(SRQ, RING, 4)
        });
        assert_eq!(
            b.srq_look(SRQ),
            Look {
                pd: 7,
                limit: 0,
                left: 0
            }
        );
        assert_eq!(ring(b, 5, n, 15), 15);
    });
}

#[test]
fn a_build_without_shared_receive_queues_serves_receive_queues_and_counts_their_doorbells() {
    let mut b = RecvBench::with(64, 1, Some(0));
    b.regions = bench(64, 1).regions;
    b.create(4, |qp| qp.rq_base = MEM_BASE);
    b.run(4);
    b.post(4, &[sge(DATA, 300)]);
    b.run(4);
    let data: Vec<u8> = (0..200).map(|i| i as u8).collect();
    send(&mut b, 4, 100, &data);
    assert_eq!(b.outcome(), [cqe(&b, 4, 0, 200), aeth(4, 100, ACK, 1)]);
    assert_eq!(b.bytes_at(DATA, 200), data);
    for number in [0, u32::from(SRQ)] {
        b.srq_doorbell(3, number, 1);
        assert_eq!(b.dut.sampled("srq_valid_o"), 0);
    }
    b.run(4);
    assert_eq!(b.counters[DB_DROP_QPN], 2);
}

#[test]
fn random_traffic_over_two_queues_moves_every_byte_and_loses_no_slot() {
    let seed = seed();
    for width in [64, 512] {
        let mut b = bench(width, seed);
        let mut srqs = [Srq::new(3, RING, 3), Srq::new(60, RING + 0x8000, 4)];
        srqs[1].log_stride = 2;
        for srq in &srqs {
            b.srq_create(srq);
        }
        // Data of a slot: 2 KiB of its own.
        let place = |which: usize, slot: u16| DATA + 0x2_0000 * which as u64 + 0x800 * u64::from(slot);
        let mut posted: [std::collections::VecDeque<u16>; 2] = Default::default();
        for idx in 1..9u16 {
            connect(&mut b, idx, |qp| {
                qp.srq = if idx % 2 == 0 { 3 } else { 60 };
                qp.mtu = 1;
            });
        }
        let mut psn = [100u32; 9];
        let mut msn = [0u32; 9];
        let mut expected = b.mem.clone();
        for round in 0..120 {
            b.manners = if round % 2 == 0 { Manners::BUSY } else { Manners::PROMPT };
            for which in 0..2 {
                while srqs[which].free.len() > 1 && b.rng.chance(0.8) {
                    let slot = srqs[which].free[0];
                    let at = place(which, slot);
                    let cut = b.rng.below(300) as u32;
                    b.srq_post(
                        &mut srqs[which],
                        &[sge(at + 8, cut), sge(at + 16 + u64::from(cut), 700)],
                    );
                    posted[which].push_back(slot);
                    let (from, n) = (
                        (srqs[which].slot(slot) - MEM_BASE) as usize,
                        32 << srqs[which].log_stride,
                    );
                    expected[from..from + n].copy_from_slice(&b.mem[from..from + n]);
                }
            }
            // Some messages, packet by packet mixed; each takes its WQE with its first packet.
            let mut streams = Vec::new();
            let mut want = Vec::new();
            let mut taken: Vec<(usize, u16)> = Vec::new();
            let mut mixed = Vec::new();
            let mut open: Vec<u16> = (1..9).collect();
            for _ in 0..1 + b.rng.below(6) {
                let idx = open.remove(b.rng.below(open.len() as u64) as usize);
                let len = b.rng.below(700) as usize;
                let data: Vec<u8> = (0..len).map(|_| b.rng.bits() as u8).collect();
                let packets = b.send_packets(idx, psn[usize::from(idx)], &data, None, false);
                streams.push((idx, data, std::collections::VecDeque::from(packets), None, 0u32));
            }
            while !streams.is_empty() {
                let at = b.rng.below(streams.len() as u64) as usize;
                let (idx, data, packets, slot, done) = &mut streams[at];
                let which = usize::from(*idx % 2);
                let q = usize::from(*idx);
                mixed.push(packets.pop_front().unwrap());
                if slot.is_none() {
                    *slot = posted[which].pop_front();
                    if slot.is_none() {
                        // Nothing waits: RNR NAK, and the rest is out of sequence.
                        want.push(aeth(*idx, psn[q], RNR, msn[q]));
                        streams.remove(at);
                        continue;
                    }
                }
                *done += 1;
                if packets.is_empty() {
                    let slot = slot.unwrap();
                    let wqe = srqs[which].slot(slot);
                    let at0 = (place(which, slot) + 8 - MEM_BASE) as usize;
                    let cut = u32::from_le_bytes(b.bytes_at(wqe + 24, 4).try_into().unwrap()) as usize;
                    let n = data.len().min(cut);
                    expected[at0..at0 + n].copy_from_slice(&data[..n]);
                    expected[at0 + 8 + cut..at0 + 8 + cut + data.len() - n].copy_from_slice(&data[n..]);
                    want.push(cqe(&b, *idx, slot, data.len()));
                    psn[q] += *done;
                    msn[q] += 1;
                    want.push(aeth(*idx, psn[q] - 1, ACK, msn[q]));
                    taken.push((which, slot));
                    streams.remove(at);
                }
            }
            b.receive(mixed);
            assert_eq!(b.outcome(), want, "round {round} of seed {seed}");
            assert!(b.mem == expected, "round {round} of seed {seed}");
            // Slots come back in another order.
            while !taken.is_empty() {
                let (which, slot) = taken.remove(b.rng.below(taken.len() as u64) as usize);
                srqs[which].free.push(slot);
            }
        }
        assert!(msn.iter().sum::<u32>() > 200, "{msn:?}");
    }
}
