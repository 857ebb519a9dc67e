// SPDX-License-Identifier: Apache-2.0
//! What keeps the wire full: the cycles that a packet of a long message costs the requester and the responder, and what
//! must stay true while the work on one packet overlaps that on the next.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::recv_bench::{Effect as Received, MEM_BASE, MEM_SIZE, Manners, RecvBench, Region};
use openrnic_testbench::send_bench::{Effect as Sent, SendBench, Sge, Wqe, wr};

const WIDTHS: [usize; 2] = [64, 512];
const QP: u16 = 4;
/// Code of 1024 bytes.
const MTU_1024: u8 = 3;
const PACKET: usize = 1024;
const DATA: u64 = MEM_BASE + 0x4_0000;
const KEY: u32 = 0x511;

/// Differences between neighbours.
fn gaps(times: &[u64]) -> Vec<u64> {
    times.windows(2).map(|w| w[1] - w[0]).collect()
}

// ---------------------------------------------------------------------------------------------- responder

/// A responder with one QP and a region that holds all data.
fn responder(width: usize) -> RecvBench {
    let mut b = RecvBench::new(width, 1);
    b.manners = Manners::PROMPT;
    b.regions.push(Region {
        key: KEY,
        pd: 7,
        access: 0xf,
        va: DATA,
        len: MEM_SIZE as u64 - 0x4_0000,
        addr: DATA,
    });
    b.create(QP, |qp| {
        qp.rq_base = MEM_BASE;
        qp.mtu = MTU_1024;
    });
    b.run(8);
    b
}

/// When each write was taken whole.
fn writes(b: &RecvBench) -> Vec<u64> {
    let at = |(t, e): &(u64, Received)| matches!(e, Received::Write { .. }).then_some(*t);
    b.effects.iter().filter_map(at).collect()
}

#[test]
fn a_packet_is_judged_while_the_payload_of_the_one_before_moves() {
    for width in WIDTHS {
        let mut b = responder(width);
        let data: Vec<u8> = (0..16 * PACKET).map(|i| ((i * 7) >> 3) as u8).collect();
        let packets = b.write_packets(QP, b.qps[usize::from(QP)].rq_psn, DATA, KEY, &data, None);
        b.receive(packets);
        b.settle();
        assert_eq!(b.bytes_at(DATA, data.len()), data);
        // The frame around it takes the wire 82 bytes more than the payload.
        let wire = ((PACKET + 82) as f64 / (width / 8) as f64).ceil() as u64;
        let gaps = gaps(&writes(&b));
        assert_eq!(gaps.len(), 15);
        assert!(
            gaps.iter().all(|g| *g <= wire),
            "{width} bits: {gaps:?}, the wire's pace is {wire}"
        );
    }
}

#[test]
fn packets_that_wait_are_written_without_a_pause_between_them() {
    for width in WIDTHS {
        let mut b = responder(width);
        let data: Vec<u8> = (0..16 * PACKET).map(|i| ((i * 5) >> 2) as u8).collect();
        let packets = b.write_packets(QP, b.qps[usize::from(QP)].rq_psn, DATA, KEY, &data, None);
        // They are all in the buffer when the first one may go.
        b.stall_writes = true;
        b.receive(packets);
        b.run(400);
        b.stall_writes = false;
        b.settle();
        assert_eq!(b.bytes_at(DATA, data.len()), data);
        let gaps = gaps(&writes(&b));
        assert_eq!(gaps, [(PACKET / (width / 8)) as u64; 15], "{width} bits");
    }
}

#[test]
fn short_packets_of_one_qp_do_not_read_it_again() {
    let mut b = responder(512);
    b.change(QP, |qp| qp.mtu = 1);
    b.run(4);
    let packets = b.write_packets(QP, b.qps[usize::from(QP)].rq_psn, DATA, KEY, &[3; 16 * 256], None);
    b.receive(packets);
    b.settle();
    let gaps = gaps(&writes(&b));
    assert_eq!(gaps.len(), 15);
    // The key takes most of it; the port of the keys is granted at random.
    assert!(gaps.iter().sum::<u64>() < 12 * 15, "{gaps:?}");
}

#[test]
fn what_follows_from_a_packet_waits_for_its_payload_and_a_read_for_those_before_it() {
    for width in WIDTHS {
        for acknowledged in [true, false] {
            let mut b = responder(width);
            let psn = b.qps[usize::from(QP)].rq_psn;
            b.stall_writes = true;
            let mut packets = b.write_packets(QP, psn, DATA, KEY, &[0x5a; PACKET], None);
            packets[0].ack_req = acknowledged;
            b.receive(packets);
            b.receive([b.read_packet(QP, psn + 1, DATA, KEY, 100)]);
            b.run(1000);
            assert_eq!(b.effects.len(), 0, "{:?}", b.effects);
            b.stall_writes = false;
            b.settle();
            let order = b.take();
            assert!(matches!(order[0], Received::Write { .. }), "{order:?}");
            let jobs: Vec<u8> = order
                .iter()
                .filter_map(|e| match e {
                    Received::Tx(t) => Some(t.opcode),
                    _ => None,
                })
                .collect();
            assert_eq!(jobs, if acknowledged { vec![0x11, 0x10] } else { vec![0x10] });
        }
    }
}

#[test]
fn a_change_of_the_control_section_holds_for_the_next_packet_of_the_same_qp() {
    for width in WIDTHS {
        let mut b = responder(width);
        let psn = b.qps[usize::from(QP)].rq_psn;
        for n in 0..3 {
            let packets = b.write_packets(QP, psn + n, DATA, KEY, &[1; 100], None);
            b.receive(packets);
        }
        b.settle();
        assert_eq!(writes(&b).len(), 3);
        // REMOTE_WRITE is taken away.
        b.change(QP, |qp| qp.access = 0);
        b.run(4);
        b.take();
        let packets = b.write_packets(QP, psn + 3, DATA, KEY, &[2; 100], None);
        b.receive(packets);
        b.settle();
        assert_eq!(writes(&b).len(), 0, "{width} bits");
        assert!(
            b.effects
                .iter()
                .any(|(_, e)| matches!(e, Received::Tx(t) if t.syndrome == 0x61))
        );
    }
}

// ---------------------------------------------------------------------------------------------- requester

#[test]
fn the_packets_of_a_message_follow_each_other_within_a_visit() {
    for width in WIDTHS {
        let mut b = SendBench::new(width, 1);
        b.install(QP, |q| q.mtu = MTU_1024);
        let w = Wqe {
            opcode: wr::WRITE,
            signaled: true,
            sges: vec![Sge {
                va: 512 * 1024,
                len: 64 * PACKET as u32,
                lkey: b.key(QP),
            }],
            remote_va: 0x7000_0000_1000,
            rkey: 0xabcd_ef01,
            ..Wqe::default()
        };
        b.post(QP, &w);
        b.settle(&[QP], 20_000);
        let at = |(t, e): &(u64, Sent)| matches!(e, Sent::Tx(_)).then_some(*t);
        let times: Vec<u64> = b.effects.iter().filter_map(at).collect();
        assert_eq!(times.len(), 64);
        // A visit has up to 15 packets; what it takes to come back is spread over them.
        let spread = (times[63] - times[0]) as f64 / 63.0;
        assert!(
            spread < 15.0,
            "{width} bits: {spread:.1} cycles a packet: {:?}",
            gaps(&times)
        );
    }
}
