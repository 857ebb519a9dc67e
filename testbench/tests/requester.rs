// SPDX-License-Identifier: Apache-2.0
//! `rnic_send`: what the requester must do, one test per rule; then random traffic of many QPs.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use openrnic_driver::spec::QpLive;
use openrnic_testbench::ctrl_bench::KeyOp;
use openrnic_testbench::send_bench::{
    CAP, Effect, MEM_BASE, Manners, Message, POOL, PSN_MASK, Region, SendBench, Sge, Wqe, counter, op, remote_byte,
    state, status, wr,
};

const WIDTHS: [usize; 2] = [64, 512];
/// Buffers lie above the rings.
const BUF: u64 = 512 * 1024;

fn seed() -> u64 {
    openrnic_testbench::seed(1)
}

fn sge(b: &SendBench, idx: u16, va: u64, len: u32) -> Sge {
    Sge {
        va,
        len,
        lkey: b.key(idx),
    }
}

fn wqe(b: &SendBench, idx: u16, opcode: u8, va: u64, len: u32) -> Wqe {
    Wqe {
        opcode,
        signaled: true,
        sges: if len == 0 {
            Vec::new()
        } else {
            vec![sge(b, idx, va, len)]
        },
        imm: 0x4433_2211,
        remote_va: 0x7000_0000_1234,
        rkey: 0xabcd_ef01,
        ..Wqe::default()
    }
}

fn wc_opcode(opcode: u8) -> u8 {
    match opcode {
        wr::SEND | wr::SEND_IMM | wr::SEND_INV => 0,
        wr::WRITE | wr::WRITE_IMM => 1,
        wr::READ => 2,
        wr::CMP_SWAP => 3,
        _ => 4,
    }
}

/// Status and post number of each completion.
fn statuses(b: &SendBench, idx: u16) -> Vec<(u16, u8)> {
    b.cqes(idx).iter().map(|c| (c.wqe_index, c.status)).collect()
}

fn success(indices: impl IntoIterator<Item = u16>) -> Vec<(u16, u8)> {
    indices.into_iter().map(|i| (i, status::SUCCESS)).collect()
}

fn remote(va: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| remote_byte(va + i)).collect()
}

fn bench(width: usize) -> SendBench {
    let mut b = SendBench::new(width, 1);
    b.install(5, |_| ());
    b
}

/// Six words of a QP as the requester shows them.
fn look(b: &mut SendBench, idx: u16) -> QpLive {
    let mut live = QpLive::new();
    for word in 0..6 {
        let seen = b.looks.count();
        b.looks.ask(b.qpn(idx), word);
        b.until("a look", 500, |b| b.looks.count() > seen);
        live.0[8 * word as usize..][..8].copy_from_slice(&b.looks.word.to_le_bytes());
    }
    live
}

#[test]
fn a_look_shows_the_section_and_wakes_nothing() {
    for width in WIDTHS {
        let mut b = bench(width);
        let w = wqe(&b, 5, wr::SEND, BUF, 300);
        b.post(5, &w);
        b.settle(&[5], 5000);
        let sent = b.sent(5).len();
        let psn = (b.qps[5].sq_psn + sent as u32) & PSN_MASK;
        // Two work requests without a doorbell: a visit would send them.
        b.put_wqe(5, &w);
        b.put_wqe(5, &w);
        for _ in 0..3 {
            let l = look(&mut b, 5);
            assert_eq!(
                (l.qpn(), l.state(), l.valid(), l.live()),
                (b.qpn(5), state::RTS, true, true)
            );
            assert_eq!((l.sq_prod(), l.sq_cons(), l.sq_fresh(), l.snd_wqe()), (3, 1, 1, 1));
            assert_eq!((l.next_psn(), l.una_psn(), l.top_psn()), (psn, psn, psn));
            assert_eq!((l.records(), l.rd_count(), l.timer_on()), (0, 0, false));
            assert_eq!(
                (l.retry_cnt(), l.rnr_retry(), l.max_rd_atomic(), l.timeout()),
                (7, 7, 4, 0)
            );
            b.run(500);
            assert_eq!(b.sent(5).len(), sent, "a look woke the QP");
        }
        // Of a QP that does not exist.
        let l = look(&mut b, 9);
        assert!(!l.valid() && !l.live());
        b.kick(5);
        b.settle(&[5], 5000);
        assert_eq!(b.sent(5).len(), 3 * sent);
    }
}

// ---------------------------------------------------------------------------------------------- messages

#[test]
fn every_opcode_and_length_arrives_as_its_packets() {
    for width in WIDTHS {
        for mtu in 1..=5u8 {
            let mut b = SendBench::new(width, 1);
            b.install(5, |q| q.mtu = mtu);
            let m = 128u32 << mtu;
            let mut expected = Vec::new();
            let mut cqes = Vec::new();
            let mut psn = b.qps[5].sq_psn;
            for len in [0, 1, m - 1, m, m + 1, 2 * m, 3 * m + 5] {
                for opcode in [wr::SEND, wr::SEND_IMM, wr::SEND_INV, wr::WRITE, wr::WRITE_IMM, wr::READ] {
                    b.until("room", 20_000, |b| b.room(5) > 0);
                    let w = wqe(&b, 5, opcode, BUF + 3, len);
                    expected.push(b.message(&w));
                    b.post(5, &w);
                    let index = cqes.len() as u16;
                    cqes.push((index, wc_opcode(opcode), len));
                    psn = (psn + len.div_ceil(m).max(1)) & PSN_MASK;
                    if opcode == wr::READ {
                        b.settle(&[5], 20_000);
                        let at = (BUF + 3) as usize;
                        assert_eq!(b.mem[at..at + len as usize], remote(w.remote_va, len as usize)[..]);
                    }
                }
            }
            b.settle(&[5], 20_000);
            assert_eq!(b.peers[5].messages, expected);
            assert_eq!(b.peers[5].epsn, psn);
            let got: Vec<_> = b.cqes(5).iter().map(|c| (c.wqe_index, c.opcode, c.byte_len)).collect();
            assert_eq!(got, cqes);
            assert!(b.cqes(5).iter().all(|c| c.status == status::SUCCESS && !c.solicited));
            assert_eq!(b.counters[counter::RETRANSMISSIONS], 0);
        }
    }
}

#[test]
fn packets_carry_the_opcodes_of_their_place_and_ask_for_acks() {
    let mut b = bench(64);
    let w = wqe(&b, 5, wr::SEND_IMM, BUF, 20 * 256);
    b.post(5, &w);
    b.settle(&[5], 5000);
    let sent = b.sent(5);
    let opcodes: Vec<u8> = sent.iter().map(|p| p.opcode).collect();
    let mut expected = vec![op::SEND_MIDDLE; 20];
    expected[0] = op::SEND_FIRST;
    expected[19] = op::SEND_LAST_IMM;
    assert_eq!(opcodes, expected);
    for p in &sent {
        assert_eq!(
            p.ack_req,
            p.psn & 15 == 15 || p.opcode == op::SEND_LAST_IMM,
            "PSN {:#x}",
            p.psn
        );
    }
}

#[test]
fn a_write_names_address_key_and_whole_length_in_its_first_packet() {
    let mut b = bench(64);
    let w = wqe(&b, 5, wr::WRITE, BUF, 700);
    b.post(5, &w);
    b.settle(&[5], 5000);
    let p = &b.sent(5)[0];
    assert_eq!((p.va, p.rkey, p.dma_len), (w.remote_va, w.rkey, 700));
}

#[test]
fn a_read_request_takes_the_psns_of_its_responses() {
    let mut b = bench(64);
    let first = b.qps[5].sq_psn;
    let w = wqe(&b, 5, wr::READ, BUF, 5 * 256 + 1);
    b.post(5, &w);
    let w2 = wqe(&b, 5, wr::SEND, BUF, 1);
    b.post(5, &w2);
    b.settle(&[5], 5000);
    let sent = b.sent(5);
    assert_eq!(sent.len(), 2);
    assert_eq!(
        (sent[0].psn, sent[0].dma_len, sent[0].payload.len()),
        (first, 5 * 256 + 1, 0)
    );
    assert_eq!(sent[1].psn, (first + 6) & PSN_MASK);
}

#[test]
fn a_message_may_have_two_gibibytes_and_no_more() {
    for opcode in [wr::SEND, wr::WRITE, wr::READ] {
        let mut b = bench(64);
        b.peers[5].deaf = true;
        // A region that pretends to be that large.
        b.regions.push(Region {
            key: 0x900,
            pd: 7,
            access: 1,
            va: 0,
            len: 1 << 33,
            addr: MEM_BASE,
        });
        let mut w = wqe(&b, 5, opcode, 0, 1);
        w.sges = vec![
            Sge {
                va: 0,
                len: 0x7fff_ff00,
                lkey: 0x900,
            },
            Sge {
                va: 0,
                len: 0x100,
                lkey: 0x900,
            },
        ];
        b.post(5, &w);
        b.until("first packets", 4000, |b| {
            b.sent(5).len() >= if opcode == wr::READ { 1 } else { 4 }
        });
        let p = &b.sent(5)[0];
        if opcode != wr::SEND {
            assert_eq!(p.dma_len, 1 << 31);
        }
        assert!(b.cqes(5).is_empty());

        let mut b = bench(64);
        b.regions.push(Region {
            key: 0x900,
            pd: 7,
            access: 1,
            va: 0,
            len: 1 << 33,
            addr: MEM_BASE,
        });
        w.sges[1].len = 0x101;
        b.post(5, &w);
        b.settle(&[5], 4000);
        assert_eq!(statuses(&b, 5), [(0, status::LOC_LEN_ERR)]);
        assert!(b.sent(5).is_empty());
        // 16 elements: more than 32 bits.
        let mut b = SendBench::new(64, 1);
        b.install(5, |q| {
            q.stride = 3;
            q.log_sq = 3;
        });
        w.sges = vec![
            Sge {
                va: 0,
                len: 0x1000_0001,
                lkey: 0x900
            };
            16
        ];
        b.post(5, &w);
        b.settle(&[5], 4000);
        assert_eq!(statuses(&b, 5), [(0, status::LOC_LEN_ERR)]);
    }
}

#[test]
fn a_two_gibibyte_read_takes_half_the_psns() {
    let mut b = bench(64);
    b.peers[5].deaf = true;
    b.regions.push(Region {
        key: 0x900,
        pd: 7,
        access: 1,
        va: 0,
        len: 1 << 33,
        addr: MEM_BASE,
    });
    let first = b.qps[5].sq_psn;
    let mut w = wqe(&b, 5, wr::READ, 0, 1);
    w.sges = vec![Sge {
        va: 0,
        len: 1 << 31,
        lkey: 0x900,
    }];
    b.post(5, &w);
    let tail = wqe(&b, 5, wr::SEND, BUF, 1);
    b.post(5, &tail);
    b.until("the READ", 2000, |b| b.sent(5).len() == 1);
    b.run(500);
    assert_eq!(b.sent(5).len(), 1, "such a message stands alone");
    // Its error answer clears the way: PSN in the middle of the range is inside the window.
    b.nak(5, first + 0x40_0000, 0x60);
    b.run(300);
    assert_eq!(b.counters[counter::RX_GHOST_RESPONSES], 0);
    b.ack(5, first.wrapping_add(0x80_0000));
    b.run(300);
    assert_eq!(b.counters[counter::RX_GHOST_RESPONSES], 1);
}

#[test]
fn sges_of_any_alignment_and_length_are_gathered_in_order() {
    gather(false);
}

#[test]
fn payload_is_gathered_and_scattered_over_pages_at_any_alignment() {
    gather(true);
    scatter_reads(true);
}

fn gather(paged: bool) {
    let seed = seed();
    for width in WIDTHS {
        let mut b = SendBench::new(width, seed);
        b.manners = Manners::BUSY;
        b.paged = paged;
        b.install(5, |q| {
            q.stride = 3;
            q.log_sq = 4;
            q.mtu = 2;
        });
        let mut expected = Vec::new();
        for _ in 0..40 {
            b.until("room", 40_000, |b| b.room(5) > 0);
            let n = 1 + b.rng.below(16) as usize;
            let mut w = wqe(&b, 5, wr::SEND, 0, 0);
            w.sges = (0..n)
                .map(|_| {
                    let len = [0, 1, 7, 64, 130, 600][b.rng.below(6) as usize];
                    let mut va = BUF + b.rng.below(100_000);
                    if paged && b.rng.chance(0.7) {
                        // Around the end of a page.
                        va = (va | 0xfff) - b.rng.below(u64::from(len) + 2);
                    }
                    sge(&b, 5, va, len)
                })
                .collect();
            expected.push(b.message(&w));
            b.post(5, &w);
        }
        b.settle(&[5], 100_000);
        assert_eq!(b.peers[5].messages, expected);
        // An empty element is no piece and is never looked up.
        assert!(b.lookups.iter().all(|l| l.2 > 0));
    }
}

#[test]
fn inline_data_needs_no_memory_key() {
    for width in WIDTHS {
        let mut b = SendBench::new(width, 1);
        b.install(5, |q| {
            q.stride = 3;
            q.log_sq = 4;
        });
        let mut expected = Vec::new();
        for len in [0usize, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 255, 256, 257, 300, 479, 480] {
            for opcode in [wr::SEND, wr::WRITE_IMM] {
                b.until("room", 40_000, |b| b.room(5) > 0);
                let mut w = wqe(&b, 5, opcode, 0, 0);
                w.inline = Some((0..len).map(|_| b.rng.bits() as u8).collect());
                w.num_sge = Some(255); // means nothing beside inline data
                expected.push(b.message(&w));
                b.post(5, &w);
            }
        }
        b.settle(&[5], 40_000);
        assert_eq!(b.peers[5].messages, expected);
        assert!(b.lookups.is_empty());
    }
}

#[test]
fn only_signaled_requests_complete_with_a_cqe_unless_all_do() {
    for sig_all in [false, true] {
        let mut b = SendBench::new(64, 1);
        b.install(5, |q| q.sig_all = sig_all);
        for i in 0..6 {
            let mut w = wqe(&b, 5, wr::SEND, BUF, 10);
            w.signaled = i % 3 == 2;
            b.post(5, &w);
        }
        b.settle(&[5], 5000);
        let expected = if sig_all { success(0..6) } else { success([2, 5]) };
        assert_eq!(statuses(&b, 5), expected);
        assert_eq!(b.cons[5], 6, "slots of silent requests are free as well");
    }
}

#[test]
fn solicited_stands_in_the_last_packet_of_sends_and_writes_with_immediate() {
    let mut b = bench(64);
    for opcode in [wr::SEND, wr::SEND_IMM, wr::SEND_INV, wr::WRITE, wr::WRITE_IMM, wr::READ] {
        let mut w = wqe(&b, 5, opcode, BUF, 300);
        w.solicited = true;
        b.post(5, &w);
    }
    b.settle(&[5], 5000);
    let se: Vec<bool> = b.peers[5].messages.iter().map(|m| m.se).collect();
    assert_eq!(se, [true, true, true, false, true, false]);
}

// ---------------------------------------------------------------------------------------------- order and limits

#[test]
fn a_fenced_request_waits_for_all_reads_before_it() {
    let mut b = bench(64);
    b.peers[5].deaf = true;
    let first = b.qps[5].sq_psn;
    let r = wqe(&b, 5, wr::READ, BUF, 10);
    b.post(5, &r);
    b.post(5, &r);
    let mut w = wqe(&b, 5, wr::SEND, BUF + 100, 10);
    b.post(5, &w);
    w.fence = true;
    b.post(5, &w);
    b.run(600);
    assert_eq!(b.sent(5).len(), 3, "the SEND without fence passes");
    let data = remote(0, 10);
    for k in 0..2 {
        assert_eq!(b.sent(5).len(), 3);
        let x = b.response(5, op::READ_ONLY, first + k, 0x1f, data.clone());
        b.respond(x);
        b.run(300);
    }
    assert_eq!(b.sent(5).len(), 4);
    b.ack(5, first + 3);
    b.settle(&[5], 1000);
    assert_eq!(statuses(&b, 5), success(0..4));
}

#[test]
fn outstanding_reads_stay_within_max_rd_atomic() {
    let mut b = SendBench::new(64, 1);
    b.install(5, |q| q.max_rd_atomic = 2);
    b.peers[5].deaf = true;
    let first = b.qps[5].sq_psn;
    let r = wqe(&b, 5, wr::READ, BUF, 10);
    for _ in 0..5 {
        b.post(5, &r);
    }
    for k in 0..5u32 {
        b.run(400);
        assert_eq!(b.sent(5).len(), (k as usize + 2).min(5));
        let x = b.response(5, op::READ_ONLY, first + k, 0x1f, remote(0, 10));
        b.respond(x);
    }
    b.settle(&[5], 1000);
    assert_eq!(statuses(&b, 5), success(0..5));
}

#[test]
fn a_qp_has_no_more_requests_in_flight_than_its_cap() {
    let mut b = bench(64);
    b.peers[5].deaf = true;
    for _ in 0..CAP + 4 {
        let w = wqe(&b, 5, wr::SEND, BUF, 4);
        b.post(5, &w);
    }
    b.run(2000);
    assert_eq!(b.sent(5).len(), CAP);
    let psn = b.qps[5].sq_psn + 1;
    b.ack(5, psn);
    b.run(500);
    assert_eq!(b.sent(5).len(), CAP + 2);
    assert_eq!(b.free_records(), POOL - CAP as u64);
}

#[test]
fn an_empty_pool_stalls_without_deadlock() {
    let mut b = SendBench::new(64, 1);
    let qps: Vec<u16> = (1..=10).collect();
    for q in &qps {
        b.install(*q, |_| ());
        b.peers[usize::from(*q)].deaf = true;
        for _ in 0..12 {
            let w = wqe(&b, *q, wr::SEND, BUF, 4);
            b.post(*q, &w);
        }
    }
    b.run(12_000);
    let sent: usize = qps.iter().map(|q| b.sent(*q).len()).sum();
    assert!(qps.iter().all(|q| b.sent(*q).len() <= CAP));
    assert_eq!(sent as u64, POOL, "the pool is in use to the last record");
    assert_eq!(b.free_records(), 0);
    // Everybody gets on as acknowledges come.
    for _ in 0..400 {
        if b.all_done(&qps) {
            break;
        }
        for q in &qps {
            let n = b.sent(*q).len() as u32;
            if n > 0 && n > u32::from(b.cons[usize::from(*q)]) {
                let psn = b.qps[usize::from(*q)].sq_psn + n - 1;
                b.ack(*q, psn);
            }
        }
        b.run(300);
    }
    b.settle(&qps, 1);
    for q in qps {
        assert_eq!(statuses(&b, q), success(0..12));
    }
}

#[test]
fn one_packet_of_each_qp_in_turn() {
    let mut b = SendBench::new(64, 1);
    for q in [3u16, 4] {
        b.install(q, |_| ());
    }
    for q in [3u16, 4] {
        let w = wqe(&b, q, wr::WRITE, BUF, 64 * 256);
        b.post(q, &w);
    }
    b.settle(&[3, 4], 30_000);
    let order: Vec<u16> = b
        .effects
        .iter()
        .filter_map(|(_, e)| match e {
            Effect::Tx(p) => Some(p.idx),
            _ => None,
        })
        .collect();
    let longest = order[8..120].chunk_by(|a, b| a == b).map(<[u16]>::len).max().unwrap();
    assert!(
        longest <= 2,
        "{longest} packets of one QP in a row while the other had work"
    );
}

#[test]
fn a_slow_wqe_read_stops_its_own_qp_only() {
    let mut b = SendBench::new(64, 1);
    for q in [3u16, 4] {
        b.install(q, |_| ());
    }
    let long = wqe(&b, 3, wr::WRITE, BUF, 60 * 256);
    b.post(3, &long);
    b.until("QP 3 sends", 2000, |b| b.sent(3).len() > 2);
    b.slow_reads = 1500;
    let w = wqe(&b, 4, wr::SEND, BUF, 10);
    b.post(4, &w);
    let before = b.sent(3).len();
    b.run(1400);
    assert!(
        b.sent(4).is_empty() && b.sent(3).len() > before + 15,
        "{} packets",
        b.sent(3).len() - before
    );
    b.settle(&[3, 4], 20_000);
}

#[test]
fn the_next_request_is_read_while_this_one_is_sent() {
    let mut b = bench(64);
    for _ in 0..3 {
        let w = wqe(&b, 5, wr::WRITE, BUF, 20 * 256);
        b.put_wqe(5, &w);
    }
    b.kick(5);
    b.slow_reads = 100;
    b.settle(&[5], 20_000);
    let gaps: Vec<u64> = b
        .effects
        .iter()
        .filter_map(|(t, e)| matches!(e, Effect::Tx(_)).then_some(*t))
        .collect::<Vec<_>>()
        .windows(2)
        .map(|w| w[1] - w[0])
        .collect();
    assert!(
        gaps.iter().all(|g| *g < 100),
        "a packet waited for its work request: {gaps:?}"
    );
    assert_eq!(b.reads.len(), 3);
}

#[test]
fn responses_are_handled_while_the_transmitter_takes_nothing() {
    let mut b = bench(64);
    b.install(6, |_| ());
    b.peers[5].deaf = true;
    let first = b.qps[5].sq_psn;
    let r = wqe(&b, 5, wr::READ, BUF, 256);
    b.post(5, &r);
    b.until("the READ", 1000, |b| b.sent(5).len() == 1);
    b.stall_tx = true;
    let w = wqe(&b, 6, wr::WRITE, BUF, 200 * 256);
    b.post(6, &w);
    b.run(1000);
    let x = b.response(5, op::READ_ONLY, first, 0x1f, remote(r.remote_va, 256));
    b.respond(x);
    b.until("the READ completes", 500, |b| b.cqes(5).len() == 1);
    b.stall_tx = false;
    b.settle(&[5, 6], 30_000);
}

#[test]
fn a_read_completes_only_after_its_data_is_written() {
    for width in WIDTHS {
        let mut b = bench(width);
        b.stall_writes = true;
        let r = wqe(&b, 5, wr::READ, BUF + 1, 1000);
        b.post(5, &r);
        b.run(1500);
        assert!(b.cqes(5).is_empty());
        b.stall_writes = false;
        b.settle(&[5], 1000);
        let last_write = b
            .effects
            .iter()
            .rposition(|(_, e)| matches!(e, Effect::Write { .. }))
            .unwrap();
        let cqe = b.effects.iter().position(|(_, e)| matches!(e, Effect::Cqe(_))).unwrap();
        assert!(last_write < cqe);
    }
}

// ---------------------------------------------------------------------------------------------- READ data

#[test]
fn read_data_is_scattered_over_the_sges_and_nowhere_else() {
    scatter_reads(false);
}

fn scatter_reads(paged: bool) {
    let seed = seed();
    for width in WIDTHS {
        let mut b = SendBench::new(width, seed);
        b.manners = Manners::BUSY;
        b.paged = paged;
        b.install(5, |q| {
            q.stride = 3;
            q.log_sq = 3;
        });
        for _ in 0..30 {
            let n = 1 + b.rng.below(16) as usize;
            let mut w = wqe(&b, 5, wr::READ, 0, 0);
            let mut at = BUF;
            for _ in 0..n {
                let len = [0, 1, 7, 63, 64, 65, 300, 700][b.rng.below(8) as usize];
                at += b.rng.below(80);
                w.sges.push(sge(&b, 5, at, len));
                at += u64::from(len);
            }
            w.remote_va = b.rng.bits() >> 8;
            b.install_guard();
            let mut expected = b.mem.clone();
            let mut va = w.remote_va;
            for s in &w.sges {
                for k in 0..s.len as usize {
                    expected[s.va as usize + k] = remote_byte(va);
                    va += 1;
                }
            }
            b.post(5, &w);
            b.settle(&[5], 20_000);
            let buf = BUF as usize;
            assert!(b.mem[buf..] == expected[buf..], "what the READ left behind");
        }
        assert!(b.cqes(5).iter().all(|c| c.status == status::SUCCESS));
    }
}

#[test]
fn a_read_whose_wqe_left_the_cache_is_placed_as_well() {
    let mut b = SendBench::new(64, 1);
    b.install(5, |_| ());
    b.peers[5].deaf = true;
    let first = b.qps[5].sq_psn;
    let r = wqe(&b, 5, wr::READ, BUF, 600);
    b.post(5, &r);
    b.until("the READ", 1000, |b| b.sent(5).len() == 1);
    // Many others use all lines of the send side.
    let others: Vec<u16> = (10..50).collect();
    for q in &others {
        b.install(*q, |_| ());
        for _ in 0..4 {
            let w = wqe(&b, *q, wr::SEND, BUF + 4096, 10);
            b.post(*q, &w);
        }
    }
    b.settle_others(&others, 60_000);
    let reads = b.reads.len();
    for (k, (opcode, n)) in [(op::READ_FIRST, 256), (op::READ_MIDDLE, 256), (op::READ_LAST, 88)]
        .iter()
        .enumerate()
    {
        let x = b.response(
            5,
            *opcode,
            first + k as u32,
            0x1f,
            remote(r.remote_va + 256 * k as u64, *n),
        );
        b.respond(x);
    }
    b.settle(&[5], 2000);
    assert_eq!(b.reads.len(), reads + 1, "read again once");
    assert_eq!(b.mem[BUF as usize..BUF as usize + 600], remote(r.remote_va, 600)[..]);
    assert_eq!(statuses(&b, 5), success([0]));
}

#[test]
fn a_response_out_of_place_or_of_a_wrong_length_is_a_bad_response() {
    let cases: [(&str, Vec<(u8, usize)>); 8] = [
        ("ONLY where FIRST is due", vec![(op::READ_ONLY, 256)]),
        ("LAST where FIRST is due", vec![(op::READ_LAST, 88)]),
        ("MIDDLE where FIRST is due", vec![(op::READ_MIDDLE, 256)]),
        ("short FIRST", vec![(op::READ_FIRST, 255)]),
        ("FIRST again", vec![(op::READ_FIRST, 256), (op::READ_FIRST, 256)]),
        ("LAST too early", vec![(op::READ_FIRST, 256), (op::READ_LAST, 256)]),
        (
            "MIDDLE where LAST is due",
            vec![(op::READ_FIRST, 256), (op::READ_MIDDLE, 256), (op::READ_MIDDLE, 256)],
        ),
        (
            "LAST with a byte too many",
            vec![(op::READ_FIRST, 256), (op::READ_MIDDLE, 256), (op::READ_LAST, 89)],
        ),
    ];
    for (what, packets) in cases {
        let mut b = bench(64);
        b.peers[5].deaf = true;
        let first = b.qps[5].sq_psn;
        let w = wqe(&b, 5, wr::SEND, BUF, 600);
        b.post(5, &w);
        let r = wqe(&b, 5, wr::READ, BUF, 600);
        b.post(5, &r);
        b.post(5, &w);
        b.run(700);
        let before = b.mem.clone();
        for (k, (opcode, n)) in packets.iter().enumerate() {
            let x = b.response(
                5,
                *opcode,
                first + 3 + k as u32,
                0x1f,
                remote(r.remote_va + 256 * k as u64, *n),
            );
            b.respond(x);
        }
        b.settle(&[5], 2000);
        assert_eq!(
            statuses(&b, 5),
            [
                (0, status::SUCCESS),
                (1, status::BAD_RESP_ERR),
                (2, status::WR_FLUSH_ERR)
            ],
            "{what}"
        );
        let good = 256 * (packets.len() - 1);
        assert!(
            b.mem[BUF as usize + good..] == before[BUF as usize + good..],
            "{what}: bytes of the bad one"
        );
    }
}

#[test]
fn a_bad_sink_is_found_before_a_byte_is_written() {
    let mut b = bench(64);
    b.peers[5].deaf = true;
    let first = b.qps[5].sq_psn;
    let r = wqe(&b, 5, wr::READ, BUF, 256);
    b.post(5, &r);
    b.run(400);
    assert_eq!(b.sent(5).len(), 1);
    b.regions.retain(|x| x.key != 0x105);
    let before = b.mem.clone();
    let x = b.response(5, op::READ_ONLY, first, 0x1f, remote(r.remote_va, 256));
    b.respond(x);
    b.settle(&[5], 2000);
    assert_eq!(statuses(&b, 5), [(0, status::LOC_PROT_ERR)]);
    assert_eq!(b.cqes(5)[0].vendor_err, 0x11);
    assert!(b.mem == before);
}

// ---------------------------------------------------------------------------------------------- local errors

/// Posts a good request, the bad one, a good one: statuses of all three, in order, once each; nothing of the bad one is sent.
fn fails(what: &str, bad: impl Fn(&mut SendBench) -> Wqe, expected: u8, vendor: u8) {
    for width in WIDTHS {
        let mut b = bench(width);
        let mut good = wqe(&b, 5, wr::SEND, BUF, 10);
        good.signaled = false;
        let bad = bad(&mut b);
        b.put_wqe(5, &good);
        b.put_wqe(5, &bad);
        b.put_wqe(5, &good);
        b.kick(5);
        b.settle(&[5], 3000);
        assert_eq!(statuses(&b, 5), [(1, expected), (2, status::WR_FLUSH_ERR)], "{what}");
        assert_eq!(b.cqes(5)[0].vendor_err, vendor, "{what}");
        assert!(b.cqes(5).iter().all(|c| c.solicited));
        assert_eq!(b.sent(5).len(), 1, "{what}");
        assert_eq!(b.peers[5].messages.len(), 1);
        let errs = b
            .effects
            .iter()
            .filter(|(_, e)| {
                matches!(
                    e,
                    Effect::Err {
                        idx: 5,
                        epoch: 1,
                        to_sqe: false
                    }
                )
            })
            .count();
        assert_eq!(errs, 1, "{what}");
    }
}

#[test]
fn a_malformed_request_fails_in_its_turn_and_the_rest_is_flushed() {
    // TSO is 10, FLUSH 14, ATOMIC_WRITE 15; operations on keys have no SGEs.
    for opcode in [7u8, 8, 10, 11, 14, 15, 0x20, 255] {
        fails(
            "unknown opcode",
            |b| wqe(b, 5, opcode, BUF, 8),
            status::LOC_QP_OP_ERR,
            0,
        );
    }
    let sges = |n: u8| {
        move |b: &mut SendBench| Wqe {
            num_sge: Some(n),
            signaled: false,
            ..wqe(b, 5, wr::SEND, BUF, 1)
        }
    };
    fails("too many SGEs", sges(7), status::LOC_QP_OP_ERR, 0);
    fails("far too many SGEs", sges(255), status::LOC_QP_OP_ERR, 0);
    let inline = |opcode, len| {
        move |b: &mut SendBench| Wqe {
            inline: Some(vec![1; 96]),
            inline_length: Some(len),
            ..wqe(b, 5, opcode, BUF, 1)
        }
    };
    fails("inline too long", inline(wr::SEND, 97), status::LOC_QP_OP_ERR, 0);
    fails(
        "inline far too long",
        inline(wr::WRITE, 0x8000_0000),
        status::LOC_QP_OP_ERR,
        0,
    );
    fails("inline READ", inline(wr::READ, 8), status::LOC_QP_OP_ERR, 0);
}

#[test]
fn a_bad_key_fails_the_request_before_its_packet_is_handed_over() {
    let with_key = |key: u32, va: u64, len: u32, opcode: u8| {
        move |b: &mut SendBench| {
            b.regions.push(Region {
                key: 0x901,
                pd: 8,
                access: 1,
                va: 0,
                len: 1 << 20,
                addr: MEM_BASE,
            });
            b.regions.push(Region {
                key: 0x902,
                pd: 7,
                access: 0,
                va: 0,
                len: 1 << 20,
                addr: MEM_BASE,
            });
            b.regions.push(Region {
                key: 0x903,
                pd: 7,
                access: 1,
                va: 0x1000,
                len: 0x1000,
                addr: MEM_BASE,
            });
            let mut w = wqe(b, 5, opcode, BUF, 20);
            w.signaled = false;
            w.sges.push(Sge { va, len, lkey: key });
            w
        }
    };
    for opcode in [wr::SEND, wr::WRITE, wr::READ] {
        fails("no such key", with_key(0x999, 0, 8, opcode), status::LOC_PROT_ERR, 0x11);
        fails("another PD", with_key(0x901, 0, 8, opcode), status::LOC_PROT_ERR, 0x12);
        fails(
            "beyond the end",
            with_key(0x903, 0x1fff, 2, opcode),
            status::LOC_PROT_ERR,
            0x14,
        );
        fails(
            "before the start",
            with_key(0x903, 0xfff, 2, opcode),
            status::LOC_PROT_ERR,
            0x14,
        );
    }
    fails(
        "READ into a region without LOCAL_WRITE",
        with_key(0x902, 0, 8, wr::READ),
        status::LOC_PROT_ERR,
        0x13,
    );
}

#[test]
fn a_region_without_local_write_may_be_sent_from() {
    let mut b = bench(64);
    b.regions.push(Region {
        key: 0x902,
        pd: 7,
        access: 0,
        va: 0,
        len: 1 << 20,
        addr: MEM_BASE,
    });
    let mut w = wqe(&b, 5, wr::SEND, BUF, 20);
    w.sges[0].lkey = 0x902;
    b.post(5, &w);
    b.settle(&[5], 1000);
    assert_eq!(statuses(&b, 5), success([0]));
}

#[test]
fn a_key_that_fails_in_a_later_packet_ends_the_message_there() {
    let mut b = bench(64);
    let mut w = wqe(&b, 5, wr::SEND, BUF, 600);
    w.sges.push(Sge {
        va: 0,
        len: 500,
        lkey: 0x999,
    });
    b.post(5, &w);
    b.post(5, &w);
    b.settle(&[5], 3000);
    assert_eq!(b.sent(5).len(), 2);
    assert_eq!(statuses(&b, 5), [(0, status::LOC_PROT_ERR), (1, status::WR_FLUSH_ERR)]);
}

#[test]
fn a_request_that_cannot_be_read_fails_with_the_reason() {
    fails(
        "WQE read aborted",
        |b| {
            let at = b.qps[5].sq_base + 128;
            b.bad_reads.push((at..at + 1, 1));
            wqe(b, 5, wr::SEND, BUF, 8)
        },
        status::LOC_QP_OP_ERR,
        1,
    );
}

#[test]
fn payload_that_cannot_be_read_fails_the_request_of_that_psn() {
    for width in WIDTHS {
        let mut b = bench(width);
        let first = b.qps[5].sq_psn;
        for _ in 0..3 {
            let w = wqe(&b, 5, wr::WRITE, BUF, 600);
            b.post(5, &w);
        }
        b.bad_tx.push((5, (first + 4) & PSN_MASK));
        b.settle(&[5], 4000);
        assert_eq!(
            statuses(&b, 5),
            [
                (0, status::SUCCESS),
                (1, status::LOC_PROT_ERR),
                (2, status::WR_FLUSH_ERR)
            ]
        );
        assert_eq!(b.cqes(5)[1].vendor_err, 3);
    }
}

// ---------------------------------------------------------------------------------------------- responses

#[test]
fn an_ack_completes_everything_up_to_its_psn_and_no_more() {
    let mut b = bench(64);
    b.peers[5].deaf = true;
    let first = b.qps[5].sq_psn;
    for _ in 0..5 {
        let w = wqe(&b, 5, wr::SEND, BUF, 300); // two packets each
        b.post(5, &w);
    }
    b.run(1000);
    assert_eq!(b.sent(5).len(), 10);
    b.ack(5, first + 4); // the first packet of the third
    b.run(200);
    assert_eq!(statuses(&b, 5), success(0..2));
    b.ack(5, first + 5);
    b.run(200);
    assert_eq!(statuses(&b, 5), success(0..3));
    b.ack(5, first + 9);
    b.settle(&[5], 300);
    assert_eq!(statuses(&b, 5), success(0..5));
    assert_eq!(b.counters[counter::RX_ACKS], 3);
    assert_eq!(b.counters[counter::RX_GHOST_RESPONSES], 0);
}

#[test]
fn responses_that_nothing_waits_for_are_counted_and_change_nothing() {
    let mut b = bench(64);
    b.peers[5].deaf = true;
    let first = b.qps[5].sq_psn;
    for _ in 0..3 {
        let w = wqe(&b, 5, wr::SEND, BUF, 3);
        b.post(5, &w);
    }
    b.run(400);
    b.ack(5, first + 3); // not sent yet
    b.ack(5, first.wrapping_sub(1)); // before the first
    b.ack(5, first + 0x80_0000);
    b.nak(5, first + 3, 0x61);
    b.nak(5, first, 0x64); // reserved codes
    b.nak(5, first, 0x41);
    b.nak(5, first, 0x80);
    let x = b.response(5, op::READ_ONLY, first, 0x1f, vec![1; 100]);
    b.respond(x);
    let x = b.response(5, op::ATOMIC_ACK, first, 0x1f, Vec::new());
    b.respond(x);
    b.run(500);
    assert_eq!(b.counters[counter::RX_GHOST_RESPONSES], 9);
    assert!(b.cqes(5).is_empty() && b.cons[5] == 0);
    assert_eq!(b.sent(5).len(), 3);
    b.ack(5, first + 2);
    b.settle(&[5], 300);
    assert_eq!(statuses(&b, 5), success(0..3));
}

#[test]
fn responses_that_are_not_for_the_qp_are_refused_with_their_counter() {
    let mut b = bench(64);
    b.install(6, |q| q.qp_type = 3);
    b.install(7, |q| q.state = state::RTR);
    b.install(8, |q| q.pkey_index = 2);
    for q in [5u16, 6, 7, 8] {
        b.peers[usize::from(q)].deaf = true;
    }
    let w = wqe(&b, 5, wr::SEND, BUF, 3);
    b.post(5, &w);
    b.run(300);
    let good = b.response(5, op::ACK, b.qps[5].sq_psn, 0x1f, Vec::new());
    let qpn = good.qpn;
    let mut cases = Vec::new();
    for wrong in [qpn ^ 0x80, qpn + 1000, 9, 0] {
        let mut r = good.clone();
        r.qpn = wrong;
        cases.push((r, counter::RX_DROP_QPN));
    }
    let mut r = good.clone();
    r.qpn = b.qpn(6);
    cases.push((r, counter::RX_DROP_QP_TYPE));
    let mut r = good.clone();
    r.opcode = 0xb1;
    cases.push((r, counter::RX_DROP_QP_TYPE));
    let mut r = good.clone();
    r.qpn = b.qpn(7);
    cases.push((r, counter::RX_DROP_QP_STATE));
    for bit in 0..128 {
        let mut r = good.clone();
        r.sgid[bit / 8] ^= 1 << (bit % 8);
        cases.push((r, counter::RX_DROP_ADDR));
    }
    for hit in [0, !good.gid_hit] {
        let mut r = good.clone();
        r.gid_hit = hit;
        cases.push((r, counter::RX_DROP_ADDR));
    }
    for pkey in [0xfffe, 0x0000, 0x8000] {
        let mut r = good.clone();
        r.pkey = pkey;
        cases.push((r, counter::RX_DROP_PKEY));
    }
    for pkey in [0x1234, 0x9235] {
        // The QP is a limited member: another limited member is no match.
        let mut r = good.clone();
        r.qpn = b.qpn(8);
        r.pkey = pkey;
        cases.push((r, counter::RX_DROP_PKEY));
    }
    for (r, c) in cases {
        for payload in [0, 77] {
            let before = b.counters.clone();
            let mut r = r.clone();
            r.payload = vec![9; payload];
            if payload != 0 {
                r.opcode = (r.opcode & 0xe0) | op::READ_ONLY;
            }
            b.respond(r.clone());
            b.run(120);
            let mut expected = before;
            expected[c] += 1;
            assert_eq!(b.counters, expected, "{r:?}");
        }
    }
    assert_eq!(b.cons[5], 0);
    // A full member may answer a limited one.
    let mut r = good.clone();
    r.pkey = 0x7fff;
    b.respond(r);
    b.settle(&[5], 500);
    assert_eq!(statuses(&b, 5), success([0]));
}

#[test]
fn a_nak_fails_the_request_of_its_psn_after_completing_those_before() {
    for (syndrome, expected, count) in [
        (0x61, status::REM_INV_REQ_ERR, counter::RX_NAK_INV_REQ),
        (0x62, status::REM_ACCESS_ERR, counter::RX_NAK_REM_ACCESS),
        (0x63, status::REM_OP_ERR, counter::RX_NAK_REM_OP),
    ] {
        let mut b = bench(64);
        b.peers[5].deaf = true;
        let first = b.qps[5].sq_psn;
        for _ in 0..4 {
            let w = wqe(&b, 5, wr::WRITE, BUF, 600);
            b.post(5, &w);
        }
        b.run(1200);
        b.nak(5, first + 7, syndrome); // in the middle of the third
        b.settle(&[5], 1000);
        assert_eq!(
            statuses(&b, 5),
            [
                (0, status::SUCCESS),
                (1, status::SUCCESS),
                (2, expected),
                (3, status::WR_FLUSH_ERR)
            ]
        );
        assert_eq!(b.counters[count], 1);
        assert_eq!(b.counters[counter::RX_ACKS], 0);
    }
}

#[test]
fn a_nak_in_place_of_a_read_response_fails_the_read() {
    let mut b = bench(64);
    b.peers[5].deaf = true;
    let first = b.qps[5].sq_psn;
    let r = wqe(&b, 5, wr::READ, BUF, 600);
    b.post(5, &r);
    b.run(400);
    let x = b.response(5, op::READ_FIRST, first, 0x1f, remote(r.remote_va, 256));
    b.respond(x);
    b.nak(5, first + 1, 0x62);
    b.settle(&[5], 1000);
    assert_eq!(statuses(&b, 5), [(0, status::REM_ACCESS_ERR)]);
}

// ---------------------------------------------------------------------------------------------- flush, lives, SQD, barrier

#[test]
fn in_error_every_request_completes_flushed_exactly_once() {
    for width in WIDTHS {
        let mut b = bench(width);
        b.peers[5].deaf = true;
        for i in 0..12 {
            let mut w = wqe(&b, 5, if i % 3 == 0 { wr::READ } else { wr::WRITE }, BUF, 600);
            w.signaled = i % 2 == 0;
            b.post(5, &w);
        }
        b.run(900);
        assert!(b.free_records() < POOL);
        b.set_state(5, state::ERR);
        b.settle(&[5], 3000);
        // Posting goes on in ERR.
        for _ in 0..3 {
            let w = wqe(&b, 5, wr::SEND, BUF, 10);
            b.post(5, &w);
        }
        b.settle(&[5], 1000);
        b.run(1000);
        let expected: Vec<_> = (0..15).map(|i| (i, status::WR_FLUSH_ERR)).collect();
        assert_eq!(statuses(&b, 5), expected);
        let packets = b.sent(5).len();
        b.run(500);
        assert_eq!(b.sent(5).len(), packets);
    }
}

#[test]
fn what_was_acknowledged_before_the_error_completes_well() {
    let mut b = bench(64);
    b.peers[5].deaf = true;
    let first = b.qps[5].sq_psn;
    for _ in 0..4 {
        let w = wqe(&b, 5, wr::SEND, BUF, 10);
        b.post(5, &w);
    }
    b.run(600);
    b.ack(5, first + 1);
    b.run(100);
    b.set_state(5, state::ERR);
    b.settle(&[5], 1000);
    let mut expected = success(0..2);
    expected.extend([(2, status::WR_FLUSH_ERR), (3, status::WR_FLUSH_ERR)]);
    assert_eq!(statuses(&b, 5), expected);
}

#[test]
fn nothing_is_flushed_while_a_packet_still_waits_for_its_payload() {
    let mut b = bench(64);
    b.peers[5].deaf = true;
    b.stall_tx = true;
    let w = wqe(&b, 5, wr::WRITE, BUF, 600);
    b.post(5, &w);
    b.run(600);
    b.set_state(5, state::ERR);
    b.run(600);
    assert!(b.cqes(5).is_empty());
    b.stall_tx = false;
    b.settle(&[5], 1000);
    assert_eq!(statuses(&b, 5), [(0, status::WR_FLUSH_ERR)]);
}

#[test]
fn after_a_failure_nothing_happens_until_the_gate_has_seen_it() {
    let mut b = bench(64);
    b.peers[5].deaf = true;
    b.err_after = None;
    let first = b.qps[5].sq_psn;
    for _ in 0..3 {
        let w = wqe(&b, 5, wr::SEND, BUF, 10);
        b.post(5, &w);
    }
    b.run(500);
    b.nak(5, first, 0x62);
    b.run(300);
    b.ack(5, first + 2);
    let w = wqe(&b, 5, wr::SEND, BUF, 10);
    b.post(5, &w);
    b.run(1000);
    assert_eq!(statuses(&b, 5), [(0, status::REM_ACCESS_ERR)]);
    assert_eq!(b.sent(5).len(), 3);
    assert_eq!(b.counters[counter::RX_DROP_QP_STATE], 1);
    b.set_state(5, state::ERR);
    b.settle(&[5], 1000);
    assert_eq!(b.cqes(5).len(), 4);
}

#[test]
fn a_new_life_starts_empty_and_gives_the_old_records_back() {
    for width in WIDTHS {
        let mut b = bench(width);
        b.peers[5].deaf = true;
        let first = b.qps[5].sq_psn;
        for _ in 0..6 {
            let w = wqe(&b, 5, wr::READ, BUF, 600);
            b.post(5, &w);
        }
        b.run(900);
        assert!(b.free_records() < POOL);
        let old_packets = b.sent(5).len();
        // ->RESET: barrier, then the new epoch.
        b.dut.set("drain_req_i", 1);
        b.until("the barrier", 2000, |b| b.dut.get("drain_ack_o") == 1);
        b.qps[5].state = state::RESET;
        b.install(5, |q| q.sq_psn = 0x777);
        b.peers[5].deaf = true;
        b.dut.set("drain_req_i", 0);
        b.run(300);
        assert_eq!(b.free_records(), POOL);
        // A response to the old life is nothing to the new one, and work of the new one starts with its PSN.
        b.ack(5, first + 1);
        let w = wqe(&b, 5, wr::SEND, BUF + 9, 300);
        b.post(5, &w);
        b.run(500);
        let sent = b.sent(5).split_off(old_packets);
        let psns: Vec<u32> = sent.iter().map(|p| p.psn).collect();
        assert_eq!(psns, [0x777, 0x778]);
        assert_eq!(sent[0].payload[..], b.mem[BUF as usize + 9..BUF as usize + 9 + 256]);
        assert!(b.cqes(5).is_empty());
        b.ack(5, 0x778);
        b.settle(&[5], 500);
        assert_eq!(statuses(&b, 5), success([0]));
    }
}

#[test]
fn in_sqd_what_was_started_finishes_and_nothing_else_starts() {
    let mut b = bench(64);
    for _ in 0..4 {
        let w = wqe(&b, 5, wr::WRITE, BUF, 30 * 256);
        b.post(5, &w);
    }
    b.until("the second is under way", 8000, |b| b.sent(5).len() > 35);
    b.set_state(5, state::SQD);
    b.until("drained", 8000, |b| {
        b.effects
            .iter()
            .any(|(_, e)| matches!(e, Effect::Drained { idx: 5, epoch: 1 }))
    });
    b.run(500);
    let done = b.cqes(5).len();
    assert!((2..4).contains(&done));
    assert_eq!(b.sent(5).len(), done * 30, "whole messages");
    assert_eq!(statuses(&b, 5), success(0..done as u16));
    let times = b
        .effects
        .iter()
        .filter(|(_, e)| matches!(e, Effect::Drained { .. }))
        .count();
    assert_eq!(times, 1);
    b.set_state(5, state::RTS);
    b.settle(&[5], 10_000);
    assert_eq!(statuses(&b, 5), success(0..4));
}

#[test]
fn an_idle_queue_is_drained_at_once() {
    let mut b = bench(64);
    b.set_state(5, state::SQD);
    b.until("drained", 200, |b| {
        b.effects
            .iter()
            .any(|(_, e)| matches!(e, Effect::Drained { idx: 5, epoch: 1 }))
    });
}

#[test]
fn the_barrier_waits_for_everything_under_way_and_stops_the_rest() {
    let mut b = bench(64);
    b.manners = Manners::BUSY;
    for _ in 0..6 {
        let w = wqe(&b, 5, wr::READ, BUF, 2000);
        b.post(5, &w);
    }
    for round in 0..5 {
        b.run(150 + 37 * round);
        b.dut.set("drain_req_i", 1);
        b.until("the barrier", 3000, |b| b.dut.get("drain_ack_o") == 1);
        let effects = b.effects.len();
        b.run(300);
        assert_eq!(b.effects.len(), effects, "nothing happens behind the barrier");
        assert_eq!(b.dut.get("drain_ack_o"), 1);
        b.dut.set("drain_req_i", 0);
        b.cycle();
        assert_eq!(b.dut.get("drain_ack_o"), 0);
    }
    b.settle(&[5], 20_000);
    assert_eq!(statuses(&b, 5), success(0..6));
}

#[test]
fn disabled_it_starts_nothing() {
    let mut b = bench(64);
    b.dut.set("enable_i", 0);
    let w = wqe(&b, 5, wr::SEND, BUF, 10);
    b.post(5, &w);
    b.run(500);
    assert!(b.sent(5).is_empty() && b.reads.is_empty());
    b.dut.set("enable_i", 1);
    b.settle(&[5], 500);
}

#[test]
fn states_without_sending_send_nothing() {
    for st in [state::INIT, state::RTR] {
        let mut b = SendBench::new(64, 1);
        b.install(5, |q| q.state = st);
        let w = wqe(&b, 5, wr::SEND, BUF, 10);
        b.post(5, &w);
        b.run(500);
        assert!(b.sent(5).is_empty() && b.reads.is_empty());
        // The PSN counts from RTS on.
        b.qps[5].sq_psn = 0x4711;
        b.peers[5].epsn = 0x4711;
        b.set_state(5, state::RTS);
        b.settle(&[5], 1000);
        assert_eq!(b.sent(5)[0].psn, 0x4711);
    }
}

#[test]
fn a_type_that_is_not_built_fails_its_request() {
    let mut b = SendBench::new(64, 1);
    b.err_after = None;
    b.install(5, |q| q.qp_type = 3);
    let w = wqe(&b, 5, wr::SEND, BUF, 10);
    b.post(5, &w);
    b.run(500);
    assert_eq!(statuses(&b, 5), [(0, status::LOC_QP_OP_ERR)]);
    assert!(b.effects.iter().any(|(_, e)| matches!(
        e,
        Effect::Err {
            idx: 5,
            to_sqe: true,
            ..
        }
    )));
}

// ---------------------------------------------------------------------------------------------- operations on memory keys

/// An operation on a key, as the bench of the key table names it.
fn key_op(op: u8) -> KeyOp {
    KeyOp {
        op,
        key: 0x1234_5605,
        pd: 7,
        qpn: 0,
        access: if op == 1 { 0b0101 } else { 0b0110 },
        va: 0x1_0000_2345,
        length: 1 << 40,
        host_addr: 0x77_0000_0040,
        log_page: 21,
        page_offset: 0x1f_ffff,
        lkey: 0xabc_de01,
    }
}

/// Its WQE.
fn key_wqe(o: &KeyOp) -> Wqe {
    Wqe {
        opcode: [wr::LOCAL_INV, wr::REG_MR, wr::BIND_MW][usize::from(o.op)],
        signaled: true,
        num_sge: Some(0),
        remote_va: o.va,
        rkey: o.key,
        // The second half: host address, length; region, page offset, access, page size.
        sges: vec![
            Sge {
                va: o.host_addr,
                len: o.length as u32,
                lkey: (o.length >> 32) as u32,
            },
            Sge {
                va: u64::from(o.lkey) | u64::from(o.page_offset) << 32,
                len: u32::from(o.access) | u32::from(o.log_page) << 8,
                lkey: 0,
            },
        ],
        ..Wqe::default()
    }
}

#[test]
fn operations_on_keys_are_done_in_their_turn_and_complete_in_order_with_their_opcodes() {
    for width in WIDTHS {
        let mut b = bench(width);
        b.peers[5].deaf = true;
        let qpn = b.qpn(5);
        let w = wqe(&b, 5, wr::WRITE, BUF, 300);
        for o in [1, 2, 0] {
            b.put_wqe(5, &w);
            b.put_wqe(5, &key_wqe(&key_op(o)));
        }
        b.put_wqe(5, &w);
        b.kick(5);
        b.run(1500);
        // They are done although nothing is acknowledged, between the packets of their neighbours; none has completed.
        assert_eq!(b.key_ops, [1, 2, 0].map(|o| KeyOp { qpn, ..key_op(o) }));
        assert_eq!((b.sent(5).len(), b.cqes(5).len()), (8, 0));
        let first = b.qps[5].sq_psn;
        // The acknowledge of the first WRITE completes the operation behind it as well.
        b.ack(5, first + 1);
        b.run(300);
        let done = |b: &SendBench| {
            b.cqes(5)
                .iter()
                .map(|c| (c.wqe_index, c.opcode, c.status))
                .collect::<Vec<_>>()
        };
        assert_eq!(done(&b), [(0, 1, 0), (1, 10, 0)]);
        b.ack(5, first + 7);
        b.settle(&[5], 2000);
        assert_eq!(done(&b)[2..], [(2, 1, 0), (3, 5, 0), (4, 1, 0), (5, 6, 0), (6, 1, 0)]);
        assert!(b.cqes(5).iter().filter(|c| c.opcode != 1).all(|c| c.byte_len == 0));
        // Alone, and unsignaled.
        b.post(5, &key_wqe(&key_op(0)));
        b.settle(&[5], 500);
        assert_eq!(done(&b)[7..], [(7, 6, 0)]);
        b.post(
            5,
            &Wqe {
                signaled: false,
                ..key_wqe(&key_op(1))
            },
        );
        b.until("room", 500, |b| b.room(5) == 1 << b.qps[5].log_sq);
        assert_eq!((b.cqes(5).len(), b.key_ops.len()), (8, 5));
    }
}

#[test]
fn a_local_invalidation_completes_after_a_barrier_of_the_responder_that_began_after_it() {
    for width in WIDTHS {
        let mut b = bench(width);
        b.install(6, |_| ());
        b.hold_barrier = true;
        let w = wqe(&b, 5, wr::WRITE, BUF, 300);
        for o in [0, 1] {
            b.put_wqe(5, &w);
            b.put_wqe(5, &key_wqe(&key_op(o)));
        }
        b.put_wqe(5, &w);
        b.kick(5);
        b.run(1500);
        // All is done and acknowledged; but the first WRITE nothing completes, and other queue pairs go on.
        assert_eq!((b.sent(5).len(), b.key_ops.len(), b.barriers.len()), (6, 2, 1));
        assert_eq!(statuses(&b, 5), success([0]));
        let other = wqe(&b, 6, wr::WRITE, BUF + 4096, 3000);
        b.post(6, &other);
        b.until("the other queue pair", 3000, |b| b.all_done(&[6]));
        b.run(100);
        assert_eq!(statuses(&b, 6), success([0]));
        // Invalidations while a barrier runs wait for the next one, all together.
        b.post(6, &key_wqe(&key_op(0)));
        let unsignaled = Wqe {
            signaled: false,
            ..key_wqe(&key_op(0))
        };
        b.post(6, &unsignaled);
        b.post(6, &other);
        b.run(1500);
        assert_eq!(statuses(&b, 6), success([0]));
        assert_eq!((b.key_ops.len(), b.barriers.len()), (4, 1));
        b.hold_barrier = false;
        b.settle(&[5, 6], 3000);
        assert_eq!(statuses(&b, 5), success(0..5));
        assert_eq!(statuses(&b, 6), success([0, 1, 3]));
        assert_eq!(b.barriers, [1, 4], "operations done when each barrier began");
    }
}

#[test]
fn many_local_invalidations_of_many_queue_pairs_wait_for_no_barrier_for_ever() {
    for width in WIDTHS {
        let mut b = bench(width);
        let qps: Vec<u16> = (5..15).collect();
        for idx in &qps[1..] {
            b.install(*idx, |_| ());
        }
        for round in 0..40u32 {
            for idx in &qps {
                b.until("room", 5000, |b| b.room(*idx) > 0);
                let own = b.rng.below(3) == 0;
                let w = wqe(&b, *idx, wr::WRITE, BUF, 20 + round);
                b.post(*idx, &if own { key_wqe(&key_op(0)) } else { w });
            }
            b.run(60);
        }
        b.settle(&qps, 30_000);
        for idx in &qps {
            assert_eq!(statuses(&b, *idx), success(0..40));
        }
        assert!(
            b.barriers.len() > 40,
            "{} barriers: their numbers have come again",
            b.barriers.len()
        );
    }
}

#[test]
fn a_fenced_operation_on_a_key_waits_for_everything_before_it() {
    for width in WIDTHS {
        let mut b = bench(width);
        b.peers[5].deaf = true;
        let w = wqe(&b, 5, wr::WRITE, BUF, 600);
        b.put_wqe(5, &w);
        b.put_wqe(5, &w);
        b.put_wqe(
            5,
            &Wqe {
                fence: true,
                ..key_wqe(&key_op(0))
            },
        );
        b.kick(5);
        b.run(800);
        assert!(b.key_ops.is_empty());
        let first = b.qps[5].sq_psn;
        b.ack(5, first + 2);
        b.run(300);
        assert!(b.key_ops.is_empty());
        b.ack(5, first + 5);
        b.settle(&[5], 800);
        assert_eq!(b.key_ops.len(), 1);
        assert_eq!(statuses(&b, 5), success(0..3));
    }
}

#[test]
fn what_is_sent_again_does_not_repeat_the_operations_between() {
    for width in WIDTHS {
        let mut b = bench(width);
        b.peers[5].deaf = true;
        let w = wqe(&b, 5, wr::WRITE, BUF, 600);
        for o in [1, 2] {
            b.put_wqe(5, &w);
            b.put_wqe(5, &key_wqe(&key_op(o)));
            b.put_wqe(5, &key_wqe(&key_op(o)));
        }
        b.kick(5);
        b.run(1500);
        assert_eq!((b.sent(5).len(), b.key_ops.len()), (6, 4));
        let first = b.qps[5].sq_psn;
        for psn in [1, 4, 5] {
            let from = b.sent(5).len();
            b.nak(5, first + psn, 0x60);
            b.run(1500);
            let psns: Vec<u32> = b.sent(5)[from..].iter().map(|p| p.psn).collect();
            assert_eq!(psns, (first + psn..first + 6).collect::<Vec<_>>());
        }
        assert_eq!(b.key_ops.len(), 4);
        b.ack(5, first + 5);
        b.settle(&[5], 1000);
        assert_eq!(statuses(&b, 5), success(0..6));
    }
}

#[test]
fn a_refused_or_malformed_operation_on_a_key_fails_in_its_turn() {
    for err in [1, 2, 3, 4, 5, 6] {
        for op in 0..3 {
            let bad = |b: &mut SendBench| {
                b.key_op_err = err;
                key_wqe(&key_op(op))
            };
            fails("refused", bad, status::MW_BIND_ERR, 0x10 + err);
        }
    }
    let malformed = |op: u8, change: fn(&mut KeyOp)| {
        let bad = |b: &mut SendBench| {
            // Nobody is asked.
            b.key_op_err = 1;
            let mut o = key_op(op);
            change(&mut o);
            key_wqe(&o)
        };
        fails("malformed", bad, status::LOC_QP_OP_ERR, 0);
    };
    for op in [1, 2] {
        malformed(op, |o| o.length = 0);
        malformed(op, |o| o.length = (1 << 48) + 1);
        malformed(op, |o| o.va = u64::MAX - 5);
        malformed(op, |o| o.access = 0x40);
    }
    malformed(1, |o| o.access = 0b0010);
    malformed(1, |o| o.access = 0b10_0001);
    malformed(1, |o| o.log_page = 11);
    malformed(1, |o| o.log_page = 31);
    malformed(1, |o| o.page_offset = 1 << 21);
    malformed(1, |o| o.host_addr += 8);
    malformed(1, |o| (o.log_page, o.page_offset, o.host_addr) = (0, 0, u64::MAX - 5));
    malformed(2, |o| o.access = 0b0011);
    malformed(2, |o| o.access = 0b1_0010);
}

#[test]
fn a_registration_through_a_queue_pair_that_was_not_created_for_it_is_a_malformed_request() {
    let user = |op: u8| {
        move |b: &mut SendBench| {
            b.key_op_err = 1; // nobody is asked
            b.qps[5].fast_reg = false;
            key_wqe(&key_op(op))
        }
    };
    fails("not for this queue pair", user(1), status::LOC_QP_OP_ERR, 0);
    // The others name no bus addresses: they are asked for, and refused by what they ask.
    for op in [0, 2] {
        fails("for any queue pair", user(op), status::MW_BIND_ERR, 0x11);
    }
}

// ---------------------------------------------------------------------------------------------- loss recovery

#[test]
fn a_sequence_nak_sends_again_from_its_psn() {
    let mut b = bench(64);
    b.peers[5].deaf = true;
    let first = b.qps[5].sq_psn;
    for _ in 0..3 {
        let w = wqe(&b, 5, wr::WRITE, BUF, 600);
        b.post(5, &w);
    }
    b.run(1000);
    assert_eq!(b.sent(5).len(), 9);
    b.nak(5, first + 4, 0x60); // the middle packet of the second message
    b.run(800);
    let again: Vec<(u32, u8)> = b.sent(5)[9..].iter().map(|p| (p.psn, p.opcode)).collect();
    let expected: Vec<(u32, u8)> = (4..9)
        .map(|k| {
            (
                (first + k) & PSN_MASK,
                [op::WRITE_FIRST, op::WRITE_MIDDLE, op::WRITE_LAST][k as usize % 3],
            )
        })
        .collect();
    assert_eq!(again, expected);
    assert_eq!(b.sent(5)[9].payload, b.sent(5)[4].payload);
    assert_eq!(statuses(&b, 5), success([0]));
    assert_eq!(b.counters[counter::RETRANSMISSIONS], 5);
    assert_eq!(b.counters[counter::RX_NAK_PSN_SEQ], 1);
    b.ack(5, first + 8);
    b.settle(&[5], 500);
    assert_eq!(statuses(&b, 5), success(0..3));
}

#[test]
fn an_rnr_nak_waits_at_least_its_time() {
    // Code 5: 60 us, at half a microsecond a cycle 120 cycles.
    let mut b = SendBench::with(64, 1, 500_000);
    b.install(5, |_| ());
    b.peers[5].rnr = (3, 5);
    let w = wqe(&b, 5, wr::SEND, BUF, 600);
    b.post(5, &w);
    b.post(5, &w);
    b.settle(&[5], 5000);
    assert_eq!(statuses(&b, 5), success(0..2));
    assert_eq!(b.peers[5].messages.len(), 2);
    assert_eq!(b.counters[counter::RX_RNR_NAKS], 3);
    let starts: Vec<u64> = b
        .effects
        .iter()
        .filter_map(|(t, e)| matches!(e, Effect::Tx(p) if p.psn == b.qps[5].sq_psn).then_some(*t))
        .collect();
    assert_eq!(starts.len(), 4);
    for pair in starts.windows(2) {
        let gap = pair[1] - pair[0];
        assert!((120..400).contains(&gap), "{gap} cycles between the tries");
    }
}

#[test]
fn rnr_tries_are_counted_and_seven_means_for_ever() {
    for (limit, naks, ok) in [(2u8, 2u32, true), (2, 3, false), (0, 1, false), (7, 20, true)] {
        let mut b = SendBench::with(64, 1, 500_000);
        b.install(5, |q| q.rnr_retry = limit);
        b.peers[5].rnr = (naks, 1);
        let w = wqe(&b, 5, wr::SEND, BUF, 10);
        b.post(5, &w);
        b.settle(&[5], 20_000);
        let expected = if ok { status::SUCCESS } else { status::RNR_RETRY_EXC_ERR };
        assert_eq!(statuses(&b, 5), [(0, expected)], "limit {limit}, {naks} NAKs");
    }
}

#[test]
fn silence_is_answered_by_sending_again_until_the_retries_are_spent() {
    for retries in [0u8, 3, 7] {
        let mut b = SendBench::with(64, 1, 500_000);
        b.install(5, |q| {
            q.timeout = 5; // 131 us: 262 cycles
            q.retry_cnt = retries;
        });
        b.peers[5].deaf = true;
        let w = wqe(&b, 5, wr::SEND, BUF, 10);
        b.post(5, &w);
        b.post(5, &w);
        b.settle(&[5], 20_000);
        assert_eq!(statuses(&b, 5), [(0, status::RETRY_EXC_ERR), (1, status::WR_FLUSH_ERR)]);
        assert_eq!(b.counters[counter::TIMEOUTS], u64::from(retries) + 1);
        let tries: Vec<u64> = b
            .effects
            .iter()
            .filter_map(|(t, e)| matches!(e, Effect::Tx(p) if p.psn == b.qps[5].sq_psn).then_some(*t))
            .collect();
        assert_eq!(tries.len(), usize::from(retries) + 1, "tries");
        for pair in tries.windows(2) {
            let gap = pair[1] - pair[0];
            assert!((262..4 * 262).contains(&gap), "{gap} cycles between the tries");
        }
    }
}

#[test]
fn progress_reloads_the_retries_and_timeout_zero_never_expires() {
    let mut b = SendBench::with(64, 1, 500_000);
    b.install(5, |q| {
        q.timeout = 5;
        q.retry_cnt = 1;
    });
    b.install(6, |q| q.timeout = 0);
    b.peers[5].deaf = true;
    b.peers[6].deaf = true;
    let first = b.qps[5].sq_psn;
    let w = wqe(&b, 6, wr::SEND, BUF, 10);
    b.post(6, &w);
    for _ in 0..4 {
        let w = wqe(&b, 5, wr::SEND, BUF, 10);
        b.post(5, &w);
    }
    for k in 0..4 {
        b.until("a timeout", 3000, |b| b.counters[counter::TIMEOUTS] == k + 1);
        b.ack(5, first + k as u32);
        b.run(20);
    }
    b.settle_others(&[5], 3000);
    assert_eq!(statuses(&b, 5), success(0..4));
    assert_eq!(b.sent(6).len(), 1);
    assert!(b.cqes(6).is_empty());
}

#[test]
fn a_lost_read_response_is_asked_for_again_from_where_it_broke_off() {
    let mut b = bench(64);
    b.peers[5].deaf = true;
    let first = b.qps[5].sq_psn;
    let r = wqe(&b, 5, wr::READ, BUF, 1000);
    b.post(5, &r);
    let w = wqe(&b, 5, wr::SEND, BUF + 5000, 10);
    b.post(5, &w);
    b.run(400);
    let x = b.response(5, op::READ_FIRST, first, 0x1f, remote(r.remote_va, 256));
    b.respond(x);
    b.ack(5, first + 4); // the SEND behind it: the rest of the READ is lost
    b.run(500);
    let sent = b.sent(5);
    assert_eq!(sent.len(), 4);
    assert_eq!(
        (sent[2].opcode, sent[2].psn, sent[2].va, sent[2].dma_len),
        (op::READ_REQUEST, (first + 1) & PSN_MASK, r.remote_va + 256, 744)
    );
    assert!(b.cqes(5).is_empty(), "the SEND completes after the READ");
    for (k, opcode) in [op::READ_FIRST, op::READ_MIDDLE, op::READ_LAST].into_iter().enumerate() {
        let at = 256 * (k as u64 + 1);
        let x = b.response(
            5,
            opcode,
            first + 1 + k as u32,
            0x1f,
            remote(r.remote_va + at, (1000 - at as usize).min(256)),
        );
        b.respond(x);
    }
    b.ack(5, first + 4);
    b.settle(&[5], 1000);
    assert_eq!(statuses(&b, 5), success(0..2));
    assert_eq!(b.mem[BUF as usize..BUF as usize + 1000], remote(r.remote_va, 1000)[..]);
}

// ---------------------------------------------------------------------------------------------- random traffic

struct Want {
    messages: Vec<Message>,
    cqes: Vec<(u16, u8, u32)>,
}

/// Many QPs, all kinds of requests; every message, every completion, every byte of memory.
fn random_traffic(width: usize, seed: u64, manners: Manners, loss: u64) {
    let mut b = SendBench::with(width, seed, if loss == 0 { 8000 } else { 200_000 });
    b.manners = manners;
    let mut qps: Vec<u16> = Vec::new();
    while qps.len() < 12 {
        let q = 1 + b.rng.below(63) as u16;
        if !qps.contains(&q) {
            qps.push(q);
        }
    }
    let mut want: HashMap<u16, Want> = HashMap::new();
    let mut sinks: HashMap<u16, u64> = HashMap::new();
    for (n, q) in qps.iter().enumerate() {
        let stride = b.rng.below(5) as u8;
        let (mtu, log_sq) = (
            1 + b.rng.below(4) as u8,
            1 + b.rng.below(if stride == 4 { 3 } else { 4 }) as u8,
        );
        let (sig_all, rd) = (b.rng.chance(0.3), 1 + b.rng.below(6) as u8);
        b.install(*q, |qp| {
            qp.stride = stride;
            qp.mtu = mtu;
            qp.log_sq = log_sq;
            qp.sig_all = sig_all;
            qp.max_rd_atomic = rd;
            // Longer than the data of all others takes: a timeout means a loss.
            qp.timeout = if loss == 0 { 0 } else { 9 };
        });
        let peer = &mut b.peers[usize::from(*q)];
        peer.lose_requests = loss;
        peer.lose_responses = loss;
        if loss != 0 {
            peer.rnr = (2, 1);
        }
        want.insert(
            *q,
            Want {
                messages: Vec::new(),
                cqes: Vec::new(),
            },
        );
        // Each QP reads into memory of its own, so that the order among QPs does not matter.
        sinks.insert(*q, BUF + 0x20000 + n as u64 * 0x4000);
    }
    // READs land where nobody sends from, each at a place of its own (round and round; the last one wins).
    let mut expected: Vec<u8> = b.mem.clone();
    let mut words: HashMap<(u16, u64), u64> = HashMap::new();
    let mut posted = 0;
    let total = if loss == 0 { 300 } else { 150 };
    let mut waited = 0;
    while posted < total {
        let q = qps[b.rng.below(qps.len() as u64) as usize];
        let i = usize::from(q);
        if b.room(q) == 0 {
            b.cycle();
            waited += 1;
            let full: Vec<u16> = qps.iter().copied().filter(|q| b.room(*q) == 0).collect();
            assert!(
                waited < 3_000_000,
                "{posted} of {total} posted; no room on QPs {full:?} any more"
            );
            continue;
        }
        let opcode = b.rng_opcode();
        let mut w = wqe(&b, q, opcode, 0, 0);
        w.signaled = b.rng.chance(0.6);
        w.solicited = b.rng.chance(0.3);
        w.fence = b.rng.chance(0.15);
        w.imm = b.rng.bits() as u32;
        w.remote_va = b.rng.bits() >> 4;
        w.rkey = b.rng.bits() as u32;
        let stride = b.qps[i].stride;
        let read = w.opcode == wr::READ;
        let atomic = matches!(w.opcode, wr::CMP_SWAP | wr::FETCH_ADD);
        if atomic {
            // Few words, so that each is changed again and again; a compare that is right half of the time.
            w.remote_va = 0x4_0000 + 8 * b.rng.below(4);
            let word = words.entry((q, w.remote_va)).or_insert(w.remote_va);
            w.atomic = (if b.rng.chance(0.5) { *word } else { b.rng.bits() }, b.rng.bits());
            let va = sinks[&q] + 0x3800 + b.rng.below(0x700);
            let len = if b.rng.chance(0.5) { 8 } else { 20 };
            w.sges.push(sge(&b, q, va, len));
            expected[va as usize..va as usize + 8].copy_from_slice(&word.to_le_bytes());
            if w.opcode == wr::FETCH_ADD {
                *word = word.wrapping_add(w.atomic.1);
            } else if *word == w.atomic.0 {
                *word = w.atomic.1;
            }
        } else if !read && b.rng.chance(0.25) {
            let n = b.rng.below((64 << stride) - 31);
            w.inline = Some((0..n).map(|_| b.rng.bits() as u8).collect());
        } else {
            let slots = ((64u64 << stride) - 32) / 16;
            let n = b.rng.below(slots.min(16) + 1);
            let longest = [40, 300, 1500][b.rng.below(3) as usize];
            let mut left = 0x3000u64;
            for _ in 0..n {
                let len = b.rng.below(longest.min(left) + 1);
                left -= len;
                let va = if read {
                    let base = sinks[&q];
                    base + b.rng.below(0x1000) + (0x3000 - left - len) // ascending places do not overlap within a READ
                } else {
                    BUF + b.rng.below(0x20000 - 1500)
                };
                w.sges.push(sge(&b, q, va, len as u32));
            }
            if read {
                // Without overlap: consecutive from a random start.
                let mut at = sinks[&q] + b.rng.below(0x800);
                for s in &mut w.sges {
                    s.va = at;
                    at += u64::from(s.len);
                }
                let mut va = w.remote_va;
                for s in &w.sges {
                    for k in 0..s.len as usize {
                        expected[s.va as usize + k] = remote_byte(va);
                        va += 1;
                    }
                }
            }
        }
        let m = b.message(&w);
        let len: u32 = if atomic { 8 } else { w.sges.iter().map(|s| s.len).sum() };
        let signaled = w.signaled || b.qps[i].sig_all;
        let index = b.prod[i].1;
        let entry = want.get_mut(&q).unwrap();
        if signaled {
            entry
                .cqes
                .push((index, wc_opcode(w.opcode), if read || atomic { len } else { 0 }));
        }
        entry.messages.push(m);
        b.post(q, &w);
        posted += 1;
        if b.rng.chance(0.5) {
            let n = b.rng.below(200);
            b.run(n);
        }
    }
    b.settle(&qps, 3_000_000);
    for q in &qps {
        let i = usize::from(*q);
        let w = &want[q];
        assert!(
            b.cqes(*q).iter().all(|c| c.status == status::SUCCESS),
            "QP {q}: {:?}",
            statuses(&b, *q)
        );
        assert_eq!(b.peers[i].messages, w.messages, "messages of QP {q}");
        let got: Vec<_> = b
            .cqes(*q)
            .iter()
            .map(|c| {
                assert_eq!(c.status, status::SUCCESS);
                (c.wqe_index, c.opcode, if c.opcode >= 2 { c.byte_len } else { 0 })
            })
            .collect();
        assert_eq!(got, w.cqes, "completions of QP {q}");
    }
    let buf = BUF as usize;
    assert!(b.mem[buf..] == expected[buf..], "memory");
    if loss == 0 {
        assert_eq!(b.counters[counter::RETRANSMISSIONS], 0);
        assert_eq!(b.counters[counter::RX_GHOST_RESPONSES], 0);
    } else {
        assert!(b.counters[counter::RETRANSMISSIONS] > 0 && b.counters[counter::TIMEOUTS] > 0);
    }
}

#[test]
fn random_traffic_of_many_qps() {
    let seed = seed();
    for width in WIDTHS {
        random_traffic(width, seed, Manners::PROMPT, 0);
        random_traffic(width, seed + 1000, Manners::BUSY, 0);
    }
}

#[test]
fn random_traffic_arrives_although_packets_are_lost() {
    let seed = seed();
    for width in WIDTHS {
        random_traffic(width, seed, Manners::PROMPT, 10);
        random_traffic(width, seed + 2000, Manners::BUSY, 20);
    }
}

#[test]
fn random_errors_complete_every_request_exactly_once() {
    let seed = seed();
    for width in WIDTHS {
        let mut b = SendBench::new(width, seed);
        b.manners = Manners::BUSY;
        let qps: Vec<u16> = (1..=8).collect();
        for round in 0..12 {
            let mut posted: HashMap<u16, u16> = HashMap::new();
            let start = b.effects.len();
            for q in &qps {
                b.install(*q, |_| ());
                posted.insert(*q, 0);
            }
            for _ in 0..60 {
                let q = qps[b.rng.below(8) as usize];
                if b.room(q) > 0 {
                    let opcode = b.rng_opcode();
                    let mut w = wqe(&b, q, opcode, BUF, 8 + (round * 131) % 900);
                    w.signaled = true;
                    if b.rng.chance(0.05) {
                        w.sges[0].lkey = 0x999;
                    }
                    if b.rng.chance(0.03) {
                        w.opcode = 200;
                    }
                    b.post(q, &w);
                    *posted.get_mut(&q).unwrap() += 1;
                }
                match b.rng.below(30) {
                    0 => b.set_state(q, state::ERR),
                    1 => {
                        let psn = b.peers[usize::from(q)].epsn;
                        b.nak(q, psn, 0x61);
                    }
                    2 => {
                        let psn = b.peers[usize::from(q)].epsn;
                        b.bad_tx.push((q, psn));
                    }
                    _ => (),
                }
                let n = b.rng.below(120);
                b.run(n);
            }
            b.settle(&qps, 200_000);
            for q in &qps {
                let got: Vec<(u16, u8)> = b.effects[start..]
                    .iter()
                    .filter_map(|(_, e)| match e {
                        Effect::Cqe(c) if c.idx == *q => Some((c.wqe_index, c.status)),
                        _ => None,
                    })
                    .collect();
                let order: Vec<u16> = got.iter().map(|c| c.0).collect();
                assert_eq!(order, (0..posted[q]).collect::<Vec<_>>(), "completions of QP {q}");
                let first_bad = got.iter().position(|c| c.1 != status::SUCCESS).unwrap_or(got.len());
                assert!(
                    got.iter().skip(first_bad + 1).all(|c| c.1 == status::WR_FLUSH_ERR),
                    "{got:?}"
                );
            }
            b.bad_tx.clear();
            // Barrier, then new lives.
            b.dut.set("drain_req_i", 1);
            b.until("the barrier", 5000, |b| b.dut.get("drain_ack_o") == 1);
            b.dut.set("drain_req_i", 0);
        }
    }
}
