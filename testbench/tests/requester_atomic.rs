// SPDX-License-Identifier: Apache-2.0
//! `rnic_send`: atomics of the requester, one test per rule. (They are part of the random traffic in `requester`.)
#![allow(clippy::unwrap_used)]

use openrnic_testbench::send_bench::{Response, SendBench, Sge, Wqe, counter, op, status, wr};

const WIDTHS: [usize; 2] = [64, 512];
/// Buffers lie above the rings.
const BUF: u64 = 512 * 1024;
const WORD: u64 = 0x7000_0000_1230;

fn bench(width: usize) -> SendBench {
    let mut b = SendBench::new(width, 1);
    b.install(5, |_| ());
    b
}

fn wqe(b: &SendBench, opcode: u8, va: u64, len: u32) -> Wqe {
    Wqe {
        opcode,
        signaled: true,
        sges: vec![Sge {
            va,
            len,
            lkey: b.key(5),
        }],
        remote_va: WORD,
        rkey: 0xabcd_ef01,
        atomic: (0x0102_0304_0506_0708, 0x1112_1314_1516_1718),
        ..Wqe::default()
    }
}

fn result(b: &SendBench, psn: u32, value: u64) -> Response {
    Response {
        value,
        ..b.response(5, op::ATOMIC_ACK, psn, 0x1f, Vec::new())
    }
}

fn statuses(b: &SendBench) -> Vec<(u16, u8)> {
    b.cqes(5).iter().map(|c| (c.wqe_index, c.status)).collect()
}

fn word(b: &SendBench, va: u64) -> u64 {
    u64::from_le_bytes(b.mem[va as usize..va as usize + 8].try_into().unwrap())
}

#[test]
fn operands_leave_in_the_atomic_header_and_the_result_lands_in_host_order() {
    for width in WIDTHS {
        let mut b = bench(width);
        b.peers[5].deaf = true;
        let first = b.qps[5].sq_psn;
        for (k, (opcode, packet, completion)) in [(wr::CMP_SWAP, op::CMP_SWAP, 3), (wr::FETCH_ADD, op::FETCH_ADD, 4)]
            .into_iter()
            .enumerate()
        {
            let psn = first + k as u32;
            // An odd place, and more room than is needed: of that nothing is touched.
            let va = BUF + 3 + 64 * k as u64;
            let w = wqe(&b, opcode, va, 20);
            b.post(5, &w);
            let before = b.mem.clone();
            b.until("the request", 2000, |b| b.sent(5).len() == k + 1);
            let p = &b.sent(5)[k];
            assert_eq!((p.opcode, p.psn, p.payload.len()), (packet, psn, 0));
            assert_eq!((p.va, p.rkey, p.swap_add), (WORD, w.rkey, w.atomic.1));
            assert_eq!(p.compare, if opcode == wr::CMP_SWAP { w.atomic.0 } else { 0 });
            let r = result(&b, psn, 0xa1a2_a3a4_a5a6_a7a8);
            b.respond(r);
            b.settle(&[5], 2000);
            assert_eq!(word(&b, va), 0xa1a2_a3a4_a5a6_a7a8);
            let mut expected = before;
            expected[va as usize..va as usize + 8].copy_from_slice(&0xa1a2_a3a4_a5a6_a7a8u64.to_le_bytes());
            assert!(b.mem == expected, "8 bytes and no more");
            let c = &b.cqes(5)[k];
            assert_eq!((c.opcode, c.status, c.byte_len), (completion, status::SUCCESS, 8));
        }
    }
}

#[test]
fn an_atomic_has_one_element_of_eight_bytes_or_more() {
    for width in WIDTHS {
        for (what, sges, expected) in [
            ("none", vec![], status::LOC_QP_OP_ERR),
            ("two", vec![(BUF, 8), (BUF + 8, 8)], status::LOC_QP_OP_ERR),
            ("7 bytes", vec![(BUF, 7)], status::LOC_LEN_ERR),
            ("0 bytes", vec![(BUF, 0)], status::LOC_LEN_ERR),
        ] {
            for opcode in [wr::CMP_SWAP, wr::FETCH_ADD] {
                let mut b = bench(width);
                let lkey = b.key(5);
                let mut w = wqe(&b, opcode, 0, 0);
                w.sges = sges.iter().map(|&(va, len)| Sge { va, len, lkey }).collect();
                b.post(5, &w);
                b.settle(&[5], 2000);
                assert_eq!(statuses(&b), [(0, expected)], "{what}");
                assert!(b.sent(5).is_empty(), "{what}");
            }
        }
        // Inline makes no sense, and a sink must be writable.
        let mut b = bench(width);
        let w = Wqe {
            inline: Some(vec![0; 8]),
            ..wqe(&b, wr::FETCH_ADD, BUF, 8)
        };
        b.post(5, &w);
        b.settle(&[5], 2000);
        assert_eq!(statuses(&b), [(0, status::LOC_QP_OP_ERR)]);
        let mut b = bench(width);
        b.regions.iter_mut().for_each(|r| r.access &= !1);
        let w = wqe(&b, wr::FETCH_ADD, BUF, 8);
        b.post(5, &w);
        b.settle(&[5], 2000);
        assert_eq!(statuses(&b), [(0, status::LOC_PROT_ERR)]);
        assert_eq!(b.cqes(5)[0].vendor_err, 0x13);
        assert!(b.sent(5).is_empty());
    }
}

#[test]
fn reads_and_atomics_share_max_rd_atomic_and_a_fence_waits_for_both() {
    for width in WIDTHS {
        let mut b = SendBench::new(width, 1);
        b.install(5, |q| q.max_rd_atomic = 2);
        b.peers[5].deaf = true;
        let first = b.qps[5].sq_psn;
        let mut read = wqe(&b, wr::READ, BUF, 8);
        read.remote_va = WORD;
        let atomic = wqe(&b, wr::FETCH_ADD, BUF + 64, 8);
        let fenced = Wqe {
            fence: true,
            ..wqe(&b, wr::SEND, BUF + 128, 8)
        };
        for w in [&read, &atomic, &atomic, &fenced] {
            b.post(5, w);
        }
        b.run(800);
        assert_eq!(b.sent(5).len(), 2);
        let r = b.response(5, op::READ_ONLY, first, 0x1f, vec![9; 8]);
        b.respond(r);
        b.run(400);
        assert_eq!(b.sent(5).len(), 3, "the second atomic; the SEND waits for both");
        for k in 1..3 {
            assert_eq!(b.sent(5).len(), 3);
            let r = result(&b, first + k, 7);
            b.respond(r);
            b.run(400);
        }
        assert_eq!(b.sent(5).len(), 4);
        b.ack(5, first + 3);
        b.settle(&[5], 1000);
        assert!(b.cqes(5).iter().all(|c| c.status == status::SUCCESS));
        assert_eq!(b.cqes(5).len(), 4);
    }
}

#[test]
fn a_response_of_the_wrong_kind_is_a_bad_response_and_changes_no_memory() {
    for width in WIDTHS {
        let mut b = bench(width);
        b.peers[5].deaf = true;
        let before = b.mem[BUF as usize..].to_vec();
        let first = b.qps[5].sq_psn;
        let w = wqe(&b, wr::READ, BUF, 8);
        b.post(5, &w);
        b.run(300);
        let r = result(&b, first, 5);
        b.respond(r);
        b.settle(&[5], 1000);
        assert_eq!(statuses(&b), [(0, status::BAD_RESP_ERR)]);
        assert_eq!(b.mem[BUF as usize..], before);

        let mut b = bench(width);
        b.peers[5].deaf = true;
        let w = wqe(&b, wr::CMP_SWAP, BUF, 8);
        b.post(5, &w);
        b.run(300);
        let r = b.response(5, op::READ_ONLY, first, 0x1f, vec![1; 8]);
        b.respond(r);
        b.settle(&[5], 1000);
        assert_eq!(statuses(&b), [(0, status::BAD_RESP_ERR)]);
        assert_eq!(b.mem[BUF as usize..], before);
    }
}

#[test]
fn a_sink_that_goes_before_the_result_comes_stays_untouched() {
    for width in WIDTHS {
        let mut b = bench(width);
        b.peers[5].deaf = true;
        let first = b.qps[5].sq_psn;
        let w = wqe(&b, wr::FETCH_ADD, BUF, 8);
        b.post(5, &w);
        b.post(5, &w);
        b.run(400);
        assert_eq!(b.sent(5).len(), 2);
        let regions = std::mem::take(&mut b.regions);
        let before = b.mem.clone();
        let r = result(&b, first, 5);
        b.respond(r);
        b.settle(&[5], 2000);
        assert_eq!(statuses(&b), [(0, status::LOC_PROT_ERR), (1, status::WR_FLUSH_ERR)]);
        assert!(b.mem == before);
        // What comes later finds the way of the data in order.
        b.regions = regions;
        b.install(5, |_| ());
        b.peers[5].deaf = true;
        let first = b.qps[5].sq_psn;
        b.post(5, &w);
        b.until("the request", 2000, |b| b.sent(5).len() == 3);
        let r = result(&b, first, 0x77);
        b.respond(r);
        b.run(1000);
        assert_eq!(word(&b, BUF), 0x77);
    }
}

#[test]
fn a_lost_result_is_asked_for_again_with_the_same_operands() {
    for width in WIDTHS {
        let mut b = bench(width);
        b.peers[5].deaf = true;
        let first = b.qps[5].sq_psn;
        let w = wqe(&b, wr::CMP_SWAP, BUF, 8);
        let s = wqe(&b, wr::SEND, BUF + 64, 8);
        b.post(5, &w);
        b.post(5, &s);
        b.run(500);
        // The SEND is acknowledged, the atomic is not: its result is lost.
        b.ack(5, first + 1);
        b.run(600);
        let sent = b.sent(5);
        assert_eq!(sent.len(), 4);
        assert_eq!(sent[2], sent[0]);
        assert!(b.cqes(5).is_empty());
        let r = result(&b, first, 0x55);
        b.respond(r);
        b.ack(5, first + 1);
        b.settle(&[5], 1000);
        assert_eq!(statuses(&b), [(0, status::SUCCESS), (1, status::SUCCESS)]);
        assert_eq!(word(&b, BUF), 0x55);
        // A second result of the same request is nobody's.
        let ghosts = b.counters[counter::RX_GHOST_RESPONSES];
        let r = result(&b, first, 0x66);
        b.respond(r);
        b.run(300);
        assert_eq!(b.counters[counter::RX_GHOST_RESPONSES], ghosts + 1);
        assert_eq!(word(&b, BUF), 0x55);
    }
}

#[test]
fn a_nak_in_place_of_a_result_fails_the_atomic() {
    for (syndrome, expected) in [
        (0x61, status::REM_INV_REQ_ERR),
        (0x62, status::REM_ACCESS_ERR),
        (0x63, status::REM_OP_ERR),
    ] {
        let mut b = bench(64);
        b.peers[5].deaf = true;
        let first = b.qps[5].sq_psn;
        let w = wqe(&b, wr::FETCH_ADD, BUF, 8);
        b.post(5, &w);
        b.post(5, &w);
        b.run(500);
        b.nak(5, first, syndrome);
        b.settle(&[5], 1000);
        assert_eq!(statuses(&b), [(0, expected), (1, status::WR_FLUSH_ERR)]);
    }
}
