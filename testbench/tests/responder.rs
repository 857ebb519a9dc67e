// SPDX-License-Identifier: Apache-2.0
//! The responder's rules, one by one, at both data widths.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::recv_bench::{
    Cqe, Effect, MAX_RD, MEM_BASE, MEM_SIZE, Manners, PEER_IP, Packet, Qp, RecvBench, Region, Sge, Tx, counter, event,
    gid_v4, seed, state,
};

const RTR: u8 = state::RTR;
const ACK: u8 = 0x1f;
const NAK_SEQ: u8 = 0x60;
const NAK_INV: u8 = 0x61;
const NAK_ACCESS: u8 = 0x62;
const NAK_OP: u8 = 0x63;
const SUCCESS: u8 = 0;
const LOC_LEN_ERR: u8 = 1;
const LOC_QP_OP_ERR: u8 = 2;
const LOC_PROT_ERR: u8 = 4;
const FLUSH: u8 = 5;
const LOC_ACCESS_ERR: u8 = 8;
const REM_INV_REQ: u8 = 9;
const RECV: u8 = 128;
const RECV_IMM: u8 = 129;

/// Receive rings lie in the first 128 KiB, 1 KiB a QP; data above.
const DATA: u64 = MEM_BASE + 0x4_0000;
const KEY: u32 = 0x0000_0511;
const VA_OFF: u64 = 0x7000_0000_0000;

fn bench(width: usize, seed: u64) -> RecvBench {
    let mut b = RecvBench::new(width, seed);
    // All data memory, with all rights, at addresses other than those of the bus.
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

fn va(addr: u64) -> u64 {
    addr + VA_OFF
}

fn sge(addr: u64, len: u32) -> Sge {
    Sge {
        addr: va(addr),
        len,
        lkey: KEY,
    }
}

fn connect(b: &mut RecvBench, idx: u16, change: impl FnOnce(&mut Qp)) {
    b.create(idx, |qp| {
        qp.rq_base = MEM_BASE + 0x800 * u64::from(idx);
        qp.mtu = 1;
        change(qp);
    });
    b.run(4);
}

fn widths(test: impl Fn(usize)) {
    for width in [64, 512] {
        println!("{width} bits");
        test(width);
    }
}

/// Directed tests run prompt and busy, at both widths.
fn all(test: impl Fn(&mut RecvBench)) {
    widths(|width| {
        for manners in [Manners::PROMPT, Manners::BUSY] {
            println!("{manners:?}");
            let mut b = bench(width, 1);
            b.manners = manners;
            test(&mut b);
        }
    });
}

fn ack(idx: u16, psn: u32, msn: u32) -> Effect {
    aeth(idx, psn, ACK, msn)
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

fn err(b: &RecvBench, idx: u16) -> Effect {
    Effect::Err {
        idx,
        epoch: b.qps[usize::from(idx)].epoch,
    }
}

fn event_of(b: &RecvBench, idx: u16, event: u8) -> Effect {
    Effect::Event {
        event,
        number: b.qpn(idx),
    }
}

fn cqe(b: &RecvBench, idx: u16, wqe_index: u16, byte_len: usize) -> Cqe {
    let qp = &b.qps[usize::from(idx)];
    Cqe {
        cqn: qp.recv_cq,
        idx,
        epoch: qp.epoch,
        qpn: b.qpn(idx),
        opcode: RECV,
        wqe_index,
        status: SUCCESS,
        byte_len: byte_len as u32,
        ..Cqe::default()
    }
}

fn failed(b: &RecvBench, idx: u16, wqe_index: u16, status: u8, vendor_err: u8) -> Effect {
    Effect::Cqe(Cqe {
        status,
        vendor_err,
        solicited: true,
        ..cqe(b, idx, wqe_index, 0)
    })
}

fn data(b: &mut RecvBench, len: usize) -> Vec<u8> {
    (0..len).map(|_| b.rng.bits() as u8).collect()
}

/// What memory must look like: a copy to which the test applies what it expects.
fn expect_memory(b: &RecvBench, expected: &[u8]) {
    if let Some(at) = (0..MEM_SIZE).find(|i| b.mem[*i] != expected[*i]) {
        panic!(
            "memory differs first at {:#x}: {:#x}, expected {:#x}",
            MEM_BASE + at as u64,
            b.mem[at],
            expected[at]
        );
    }
}

fn place(expected: &mut [u8], addr: u64, bytes: &[u8]) {
    let at = (addr - MEM_BASE) as usize;
    expected[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Cuts a range of memory into elements for a message of `len` bytes: lengths at random, gaps between, the last one
/// longer than needed.
fn random_sges(b: &mut RecvBench, base: u64, len: usize, most: usize) -> Vec<Sge> {
    let n = 1 + b.rng.below(most as u64) as usize;
    let mut cuts: Vec<usize> = (1..n).map(|_| b.rng.below(len as u64 + 1) as usize).collect();
    cuts.sort_unstable();
    let mut at = base;
    let mut from = 0;
    let mut sges = Vec::new();
    for i in 0..n {
        let to = cuts.get(i).copied().unwrap_or(len);
        let spare = if i + 1 == n { b.rng.below(40) as usize } else { 0 };
        at += 1 + b.rng.below(17);
        sges.push(sge(at, (to - from + spare) as u32));
        at += (to - from + spare) as u64;
        from = to;
    }
    sges
}

fn scatter(expected: &mut [u8], sges: &[Sge], mut bytes: &[u8]) {
    for s in sges {
        let n = bytes.len().min(s.len as usize);
        place(expected, s.addr - VA_OFF, &bytes[..n]);
        bytes = &bytes[n..];
    }
    assert!(bytes.is_empty());
}

// ---------------------------------------------------------------- data

#[test]
fn a_send_of_any_length_is_scattered_over_any_elements_and_nothing_beside_them() {
    sends(false);
}

fn sends(paged: bool) {
    let seed = seed();
    widths(|width| {
        for mtu in 1..=5u8 {
            let mut b = bench(width, seed + u64::from(mtu));
            b.paged = paged;
            b.manners = if mtu % 2 == 1 { Manners::BUSY } else { Manners::PROMPT };
            connect(&mut b, 5, |qp| {
                qp.mtu = mtu;
                qp.log_rq_stride = 4;
                qp.log_rq = 2;
            });
            let mtu = b.qps[5].mtu_bytes();
            let mut psn = 100;
            for (n, len) in [0, 1, 3, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu + 5, 5 * mtu - 1, 7]
                .into_iter()
                .enumerate()
            {
                let sges = random_sges(&mut b, DATA, len, 16);
                b.post(5, &sges);
                b.run(6);
                let bytes = data(&mut b, len);
                let mut expected = b.mem.clone();
                scatter(&mut expected, &sges, &bytes);
                let imm = (n % 2 == 1).then_some(0x1234_5678 + n as u32);
                let packets = b.send_packets(5, psn, &bytes, imm, n % 3 == 0);
                psn += packets.len() as u32;
                b.receive(packets);
                b.settle();
                let mut done = b.take();
                expect_memory(&b, &expected);
                // Payload, CQE, acknowledge: in this order; the consumer index before the CQE.
                let cons = done.iter().position(|e| matches!(e, Effect::Cons { .. })).unwrap();
                let cons = done.remove(cons);
                done.insert(done.len() - 2, cons);
                let tail = &done[done.len() - 3..];
                assert!(
                    done[..done.len() - 3].iter().all(|e| matches!(e, Effect::Write { .. })),
                    "{done:?}"
                );
                let written: usize = done
                    .iter()
                    .map(|e| if let Effect::Write { len, .. } = e { *len } else { 0 })
                    .sum();
                assert_eq!(written, len);
                assert_eq!(
                    tail,
                    [
                        Effect::Cons {
                            idx: 5,
                            epoch: b.qps[5].epoch,
                            val: n as u16 + 1
                        },
                        Effect::Cqe(Cqe {
                            solicited: n % 3 == 0,
                            with_imm: imm.is_some(),
                            imm: imm.unwrap_or(0),
                            ..cqe(&b, 5, n as u16, len)
                        }),
                        ack(5, psn - 1, n as u32 + 1),
                    ]
                );
            }
        }
    });
}

#[test]
fn a_receive_wqe_may_have_one_to_sixteen_elements_and_empty_ones() {
    all(|b| {
        connect(b, 3, |qp| qp.log_rq_stride = 4);
        let mut psn = 100;
        for n in 1..=16usize {
            let sges: Vec<Sge> = (0..n)
                .map(|i| sge(DATA + 97 * i as u64 + 3, if i % 4 == 2 { 0 } else { 11 + i as u32 }))
                .collect();
            let len = sges.iter().map(|s| s.len as usize).sum();
            b.post(3, &sges);
            b.run(6);
            let bytes = data(b, len);
            let mut expected = b.mem.clone();
            scatter(&mut expected, &sges, &bytes);
            let packets = b.send_packets(3, psn, &bytes, None, false);
            psn += packets.len() as u32;
            b.receive(packets);
            assert_eq!(
                b.outcome(),
                [Effect::Cqe(cqe(b, 3, n as u16 - 1, len)), ack(3, psn - 1, n as u32)]
            );
            expect_memory(b, &expected);
        }
    });
}

#[test]
fn the_wqe_of_a_long_send_is_read_once() {
    all(|b| {
        connect(b, 3, |qp| qp.log_rq_stride = 2);
        b.post(3, &[sge(DATA, 900), sge(DATA + 1000, 900)]);
        b.run(6);
        let bytes = data(b, 1700);
        let packets = b.send_packets(3, 100, &bytes, None, false);
        assert_eq!(packets.len(), 7);
        b.receive(packets);
        assert_eq!(b.outcome(), [Effect::Cqe(cqe(b, 3, 0, 1700)), ack(3, 106, 1)]);
        assert_eq!(b.wqe_reads, [(b.qps[3].rq_base, 128)]);
    });
}

#[test]
fn a_cached_wqe_is_not_used_in_another_life_nor_by_another_qp() {
    all(|b| {
        // QPs 3 and 67 share a line of the cache.
        for (life, idx) in [3, 67, 3, 3].into_iter().enumerate() {
            connect(b, idx, |_| ());
            let at = DATA + 0x1000 * life as u64;
            b.post(idx, &[sge(at, 600)]);
            b.run(6);
            let bytes = data(b, 300);
            let mut expected = b.mem.clone();
            place(&mut expected, at, &bytes[..256]);
            let mut packets = b.send_packets(idx, 100, &bytes, None, false);
            // In the lives before the last the message stays half received: its WQE stays in the cache.
            packets.truncate(1);
            b.receive(packets);
            b.settle();
            expect_memory(b, &expected);
        }
    });
}

#[test]
fn a_write_of_any_length_and_alignment_lands_at_its_address_and_nowhere_else() {
    writes(false);
}

fn writes(paged: bool) {
    let seed = seed();
    widths(|width| {
        for mtu in 1..=5u8 {
            let mut b = bench(width, seed + u64::from(mtu));
            b.paged = paged;
            b.manners = if mtu % 2 == 0 { Manners::BUSY } else { Manners::PROMPT };
            connect(&mut b, 9, |qp| qp.mtu = mtu);
            b.post(9, &[]);
            b.post(9, &[]);
            b.run(8);
            let mtu = b.qps[9].mtu_bytes();
            let mut psn = 100;
            let mut wqes = 0;
            for (n, len) in [1, 5, mtu - 1, mtu, mtu + 1, 3 * mtu, 4 * mtu + 9, 0]
                .into_iter()
                .enumerate()
            {
                let at = DATA + b.rng.below(4096);
                let bytes = data(&mut b, len);
                let mut expected = b.mem.clone();
                place(&mut expected, at, &bytes);
                let imm = (n == 2 || n == 6).then_some(0xa0b0_c0d0);
                let mut packets = b.write_packets(9, psn, va(at), KEY, &bytes, imm);
                packets.last_mut().unwrap().se = imm.is_some();
                psn += packets.len() as u32;
                b.receive(packets);
                let mut want = vec![ack(9, psn - 1, n as u32 + 1)];
                if imm.is_some() {
                    let c = Cqe {
                        opcode: RECV_IMM,
                        with_imm: true,
                        imm: 0xa0b0_c0d0,
                        solicited: true,
                        ..cqe(&b, 9, wqes, len)
                    };
                    want.insert(0, Effect::Cqe(c));
                    wqes += 1;
                }
                assert_eq!(b.outcome(), want);
                expect_memory(&b, &expected);
            }
        }
    });
}

/// Where `len` bytes lie: in one piece, or page by page.
fn pieces(b: &RecvBench, addr: u64, len: usize) -> Vec<(u64, usize)> {
    let first = if b.paged {
        len.min(0x1000 - addr as usize % 0x1000)
    } else {
        len
    };
    let page = if b.paged { 0x1000 } else { 0 };
    let mut pieces = vec![(addr ^ page, first), ((addr + first as u64) ^ page, len - first)];
    pieces.retain(|(_, n)| *n > 0);
    pieces
}

fn read_responses(b: &RecvBench, idx: u16, psn: u32, addr: u64, len: usize, msn: u32) -> Vec<Effect> {
    let mtu = b.qps[usize::from(idx)].mtu_bytes();
    let n = len.div_ceil(mtu).max(1);
    (0..n)
        .map(|i| {
            let part = (len - i * mtu).min(mtu);
            let opcode = match (i == 0, i + 1 == n) {
                (true, true) => 0x10,
                (true, false) => 0x0d,
                (false, false) => 0x0e,
                (false, true) => 0x0f,
            };
            let pieces = pieces(b, addr + (i * mtu) as u64, part);
            Effect::Tx(Tx {
                idx,
                opcode,
                psn: (psn + i as u32) & 0xff_ffff,
                syndrome: ACK,
                msn,
                len: part,
                pieces,
                value: 0,
            })
        })
        .collect()
}

#[test]
fn a_read_is_answered_packet_by_packet_from_its_addresses() {
    reads(false);
}

fn reads(paged: bool) {
    let seed = seed();
    widths(|width| {
        for mtu in 1..=5u8 {
            let mut b = bench(width, seed + u64::from(mtu));
            b.paged = paged;
            b.manners = if mtu % 2 == 0 { Manners::BUSY } else { Manners::PROMPT };
            connect(&mut b, 9, |qp| qp.mtu = mtu);
            let mtu = b.qps[9].mtu_bytes();
            let mut psn = 100;
            for (n, len) in [1, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu + 7, 0]
                .into_iter()
                .enumerate()
            {
                let at = DATA + b.rng.below(4096);
                let request = b.read_packet(9, psn, va(at), KEY, len as u32);
                b.receive([request]);
                let want = read_responses(&b, 9, psn, at, len, n as u32 + 1);
                assert_eq!(b.outcome(), want);
                psn += want.len() as u32;
            }
            // The PSN has moved by the number of responses.
            let packets = b.write_packets(9, psn, va(DATA), KEY, &[1, 2, 3], None);
            b.receive(packets);
            assert_eq!(b.outcome(), [ack(9, psn, 8)]);
        }
    });
}

#[test]
fn sends_writes_and_reads_cross_pages_at_any_alignment() {
    sends(true);
    writes(true);
    reads(true);
}

#[test]
fn a_page_list_that_cannot_be_read_is_a_remote_operation_error_and_no_byte_is_written() {
    all(|b| {
        b.paged = true;
        b.list_err = true;
        // A SEND: the receive WQE tells it, as any buffer that cannot be used.
        connect(b, 5, |_| ());
        b.post(5, &[sge(DATA, 64)]);
        let before = b.mem.clone();
        b.run(8);
        let packets = b.send_packets(5, 100, &[1, 2, 3], None, false);
        b.receive(packets);
        let want = [failed(b, 5, 0, LOC_PROT_ERR, 0x17), aeth(5, 100, 0x63, 0), err(b, 5)];
        assert_eq!(b.outcome(), want);
        // A WRITE and a READ: nothing the peer did was wrong.
        connect(b, 6, |_| ());
        let packets = b.write_packets(6, 100, va(DATA), KEY, &[1, 2, 3], None);
        b.receive(packets);
        let want = [event_of(b, 6, event::QP_FATAL), aeth(6, 100, 0x63, 0), err(b, 6)];
        assert_eq!(b.outcome(), want);
        connect(b, 7, |_| ());
        let request = b.read_packet(7, 100, va(DATA), KEY, 9);
        b.receive([request]);
        let want = [aeth(7, 100, 0x63, 0), event_of(b, 7, event::QP_FATAL), err(b, 7)];
        assert_eq!(b.outcome(), want);
        // A zero-length WRITE touches nothing.
        connect(b, 8, |_| ());
        let packets = b.write_packets(8, 100, va(DATA), KEY, &[], None);
        b.receive(packets);
        assert_eq!(b.outcome(), [ack(8, 100, 1)]);
        expect_memory(b, &before);
    });
}

#[test]
fn psns_wrap_at_24_bits_in_every_kind_of_request() {
    all(|b| {
        connect(b, 2, |qp| qp.rq_psn = 0xff_fffe);
        b.post(2, &[sge(DATA, 4096)]);
        b.run(6);
        let bytes = data(b, 1000);
        let packets = b.send_packets(2, 0xff_fffe, &bytes, None, false);
        b.receive(packets);
        assert_eq!(b.outcome(), [Effect::Cqe(cqe(b, 2, 0, 1000)), ack(2, 1, 1)]);
        connect(b, 2, |qp| qp.rq_psn = 0xff_ffff);
        let packets = b.write_packets(2, 0xff_ffff, va(DATA), KEY, &bytes, None);
        b.receive(packets.clone());
        assert_eq!(b.outcome(), [ack(2, 2, 1)]);
        b.receive([packets[0].clone(), packets[1].clone()]);
        assert_eq!(
            b.outcome(),
            [ack(2, 2, 1), ack(2, 2, 1)],
            "duplicates from before the wrap"
        );
        connect(b, 2, |qp| qp.rq_psn = 0xff_ffff);
        let request = b.read_packet(2, 0xff_ffff, va(DATA), KEY, 700);
        b.receive([request]);
        let want = read_responses(b, 2, 0xff_ffff, DATA, 700, 1);
        assert_eq!(b.outcome(), want);
    });
}

// ---------------------------------------------------------------- silent drops

fn dropped(b: &mut RecvBench, packet: Packet, counter: usize) {
    let before = b.counters.clone();
    let memory = b.mem.clone();
    b.receive([packet]);
    b.settle();
    assert_eq!(b.take(), []);
    expect_memory(b, &memory);
    for (i, (now, then)) in b.counters.iter().zip(&before).enumerate() {
        assert_eq!(now - then, u64::from(i == counter), "counter {i}");
    }
}

#[test]
fn packets_that_are_not_for_the_qp_are_dropped_without_any_effect_and_counted_by_reason() {
    all(|b| {
        connect(b, 4, |_| ());
        connect(b, 6, |qp| qp.qp_type = 3);
        b.post(4, &[sge(DATA, 100)]);
        b.run(6);
        let good = b.write_packets(4, 100, va(DATA), KEY, &[1; 200], None).remove(0);
        let with = |change: &dyn Fn(&mut Packet)| {
            let mut p = good.clone();
            change(&mut p);
            p
        };
        // A number that no QP has, and one of another generation.
        dropped(b, with(&|p| p.dest_qpn += 1), counter::RX_DROP_QPN);
        dropped(b, with(&|p| p.dest_qpn ^= 1 << 20), counter::RX_DROP_QPN);
        // Type and transport.
        let qpn6 = b.qpn(6);
        dropped(b, with(&|p| p.dest_qpn = qpn6), counter::RX_DROP_QP_TYPE);
        dropped(b, with(&|p| p.opcode |= 0x20), counter::RX_DROP_QP_TYPE);
        dropped(b, with(&|p| p.opcode = 0x64), counter::RX_DROP_QP_TYPE);
        // Addresses.
        for bit in 0..128 {
            dropped(b, with(&|p| p.sgid[bit / 8] ^= 1 << (bit % 8)), counter::RX_DROP_ADDR);
        }
        dropped(b, with(&|p| p.gid_hit = 0), counter::RX_DROP_ADDR);
        dropped(b, with(&|p| p.gid_hit = !(1 << 2)), counter::RX_DROP_ADDR);
        for (index, passes) in [(3, false), (16, false), (18, false), (9, true)] {
            b.change(4, |qp| qp.sgid_index = index);
            if !passes {
                dropped(b, good.clone(), counter::RX_DROP_ADDR);
            }
        }
        b.change(4, |qp| {
            qp.sgid_index = 2;
            qp.dgid[0] = 0xfe;
        });
        dropped(b, good.clone(), counter::RX_DROP_ADDR);
        b.change(4, |qp| qp.dgid = gid_v4(PEER_IP));
        // P_Keys: 15 bits equal and not zero, at least one of the two a full member.
        dropped(b, with(&|p| p.pkey = 0xfffe), counter::RX_DROP_PKEY);
        dropped(b, with(&|p| p.pkey = 0x8123), counter::RX_DROP_PKEY);
        b.change(4, |qp| qp.pkey_index = 2);
        dropped(b, with(&|p| p.pkey = 0x0456), counter::RX_DROP_PKEY);
        b.change(4, |qp| qp.pkey_index = 3);
        dropped(b, with(&|p| p.pkey = 0x8000), counter::RX_DROP_PKEY);
        b.change(4, |qp| qp.pkey_index = 8);
        dropped(b, good.clone(), counter::RX_DROP_PKEY);
        // States, and the device switched off.
        b.change(4, |qp| qp.pkey_index = 0);
        for state in [state::RESET, state::INIT] {
            b.change(4, |qp| qp.state = state);
            b.run(4);
            dropped(b, good.clone(), counter::RX_DROP_QP_STATE);
        }
        b.change(4, |qp| qp.state = state::RTS);
        b.run(4);
        b.dut.set("enable_i", 0);
        dropped(b, good.clone(), counter::RX_DROP_QP_STATE);
        b.dut.set("enable_i", 1);
        // The order of the checks: the first reason counts.
        let bad = with(&|p| {
            p.dest_qpn ^= 1 << 20;
            p.pkey = 1;
            p.sgid = [0; 16];
        });
        dropped(b, bad, counter::RX_DROP_QPN);
        let bad = with(&|p| {
            p.pkey = 1;
            p.sgid = [0; 16];
        });
        dropped(b, bad, counter::RX_DROP_ADDR);
        // None of them has moved anything.
        b.receive([Packet {
            ack_req: true,
            opcode: 0x0a,
            payload: vec![9; 200],
            ..good
        }]);
        assert_eq!(b.outcome(), [ack(4, 100, 1)]);
    });
}

#[test]
fn pkeys_match_when_one_side_is_a_full_member() {
    all(|b| {
        for (index, pkey) in [(0, 0x7fff), (2, 0x8456), (7, 0x8007), (1, 0x0123)] {
            connect(b, 4, |qp| qp.pkey_index = index);
            let packets = b.write_packets(4, 100, va(DATA), KEY, &[1; 20], None);
            b.receive(packets.into_iter().map(|p| Packet { pkey, ..p }));
            assert_eq!(b.outcome(), [ack(4, 100, 1)]);
        }
    });
}

#[test]
fn requests_are_served_in_rtr_rts_sqd_and_sqe() {
    all(|b| {
        for state in [2, 3, 4, 5] {
            connect(b, 4, |qp| qp.state = state);
            let packets = b.write_packets(4, 100, va(DATA), KEY, &[1; 20], None);
            b.receive(packets);
            assert_eq!(b.outcome().last(), Some(&ack(4, 100, 1)));
        }
    });
}

// ---------------------------------------------------------------- PSN

#[test]
fn a_gap_is_named_once_and_the_expected_packet_ends_it() {
    all(|b| {
        connect(b, 4, |_| ());
        let w = |b: &RecvBench, psn: u32| b.write_packets(4, psn, va(DATA), KEY, &[7; 10], None).remove(0);
        let packets: Vec<_> = [102, 103, 200, 100, 101, 103, 104, 102]
            .iter()
            .map(|p| w(b, *p))
            .collect();
        b.receive(packets);
        assert_eq!(
            b.outcome(),
            [
                aeth(4, 100, NAK_SEQ, 0),
                ack(4, 100, 1),
                ack(4, 101, 2),
                aeth(4, 102, NAK_SEQ, 2),
                ack(4, 102, 3)
            ]
        );
        assert_eq!(b.counters[counter::RX_OUT_OF_SEQUENCE], 5);
        assert_eq!(b.counters[counter::RX_DUPLICATES], 0);
    });
}

#[test]
fn a_duplicate_is_acknowledged_and_not_executed() {
    all(|b| {
        connect(b, 4, |_| ());
        b.post(4, &[sge(DATA, 600)]);
        b.post(4, &[sge(DATA + 1000, 600)]);
        b.run(8);
        let bytes = data(b, 500);
        let send = b.send_packets(4, 100, &bytes, Some(1), false);
        let write = b.write_packets(4, 102, va(DATA + 4000), KEY, &[5; 100], None);
        b.receive(send.clone());
        b.receive(write.clone());
        b.outcome();
        let memory = b.mem.clone();
        // The same packets with other contents, with and without a wish for an acknowledge.
        for (i, p) in send.into_iter().chain(write).enumerate() {
            let n = p.payload.len();
            b.receive([Packet {
                payload: vec![0xee; n],
                ack_req: i % 2 == 0,
                ..p
            }]);
            b.settle();
            assert_eq!(b.take(), [ack(4, 102, 2)]);
        }
        expect_memory(b, &memory);
        assert_eq!(b.counters[counter::RX_DUPLICATES], 3);
        // The stream goes on where it was.
        let packets = b.send_packets(4, 103, &[1, 2, 3], None, false);
        b.receive(packets);
        assert_eq!(b.outcome(), [Effect::Cqe(cqe(b, 4, 1, 3)), ack(4, 103, 3)]);
    });
}

#[test]
fn a_duplicate_read_is_executed_again_from_the_psn_asked_for() {
    all(|b| {
        connect(b, 4, |_| ());
        let request = b.read_packet(4, 100, va(DATA), KEY, 700);
        b.receive([request]);
        let first = read_responses(b, 4, 100, DATA, 700, 1);
        assert_eq!(b.outcome(), first);
        // The whole, its tail, and more than there was.
        for (psn, from, len) in [(100, 0, 700), (101, 256, 444), (102, 512, 188)] {
            let request = b.read_packet(4, psn, va(DATA + from), KEY, len);
            b.receive([request]);
            let again = read_responses(b, 4, psn, DATA + from, len as usize, 1);
            assert_eq!(b.outcome(), again);
        }
        let request = b.read_packet(4, 101, va(DATA), KEY, 700);
        b.receive([request]);
        assert_eq!(b.outcome(), []);
        assert_eq!(b.counters[counter::RX_DUPLICATES], 4);
        let packets = b.write_packets(4, 103, va(DATA), KEY, &[1], None);
        b.receive(packets);
        assert_eq!(b.outcome(), [ack(4, 103, 2)]);
    });
}

#[test]
fn duplicate_reads_do_not_count_against_the_limit_of_new_ones() {
    all(|b| {
        connect(b, 4, |qp| qp.max_dest_rd_atomic = 1);
        let first = b.read_packet(4, 100, va(DATA), KEY, 100);
        b.receive([first.clone()]);
        b.outcome();
        b.stall_tx = true;
        let second = b.read_packet(4, 101, va(DATA), KEY, 100);
        b.receive([first.clone(), first.clone(), second]);
        b.run(600);
        b.stall_tx = false;
        let mut want = read_responses(b, 4, 100, DATA, 100, 1);
        want.extend(read_responses(b, 4, 100, DATA, 100, 1));
        want.extend(read_responses(b, 4, 101, DATA, 100, 2));
        assert_eq!(b.outcome(), want);
    });
}

// ---------------------------------------------------------------- receive queue

#[test]
fn without_a_receive_wqe_the_peer_is_told_to_wait_and_the_same_packet_works_later() {
    all(|b| {
        connect(b, 4, |qp| qp.min_rnr_timer = 21);
        let bytes = data(b, 600);
        let mut expected = b.mem.clone();
        let send = b.send_packets(4, 100, &bytes, None, false);
        b.receive(send.clone());
        // The rest of the message is ahead: no second NAK.
        assert_eq!(b.outcome(), [aeth(4, 100, 0x20 | 21, 0)]);
        b.receive([send[0].clone()]);
        assert_eq!(b.outcome(), [aeth(4, 100, 0x20 | 21, 0)], "each try is answered");
        expect_memory(b, &expected);
        b.post(4, &[sge(DATA, 600)]);
        place(
            &mut expected,
            b.qps[4].rq_base,
            b.bytes_at(b.qps[4].rq_base, 64).to_vec().as_slice(),
        );
        place(&mut expected, DATA, &bytes);
        b.run(6);
        b.receive(send);
        assert_eq!(b.outcome(), [Effect::Cqe(cqe(b, 4, 0, 600)), ack(4, 102, 1)]);
        expect_memory(b, &expected);
        // A WRITE with immediate needs its receive at the last packet only, and writes nothing without it.
        let write = b.write_packets(4, 103, va(DATA + 8000), KEY, &bytes, Some(3));
        b.receive(write.clone());
        assert_eq!(b.outcome(), [aeth(4, 105, 0x20 | 21, 1)]);
        place(&mut expected, DATA + 8000, &bytes[..512]);
        expect_memory(b, &expected);
        b.post(4, &[]);
        b.run(6);
        b.receive([write[2].clone()]);
        let c = Cqe {
            opcode: RECV_IMM,
            with_imm: true,
            imm: 3,
            ..cqe(b, 4, 1, 600)
        };
        assert_eq!(b.outcome(), [Effect::Cqe(c), ack(4, 105, 2)]);
        assert_eq!(b.bytes_at(DATA + 8000, 600), bytes);
    });
}

// ---------------------------------------------------------------- errors

/// After a fatal error: silent until the QP is in ERR, and silent then.
fn is_dead(b: &mut RecvBench, idx: u16) {
    let packets = b.write_packets(idx, 101, va(DATA), KEY, &[1; 5], None);
    let before = b.counters[counter::RX_DROP_QP_STATE];
    b.receive(packets);
    assert_eq!(b.outcome(), []);
    assert_eq!(b.counters[counter::RX_DROP_QP_STATE], before + 1);
}

fn invalid(b: &mut RecvBench, what: &str, packets: Vec<Packet>, psn: u32, msn: u32) {
    b.receive(packets);
    b.settle();
    let memory_ok = b.take();
    let memory_ok: Vec<_> = memory_ok
        .into_iter()
        .filter(|e| !matches!(e, Effect::Write { .. } | Effect::Tx(Tx { syndrome: ACK, .. })))
        .collect();
    assert_eq!(
        memory_ok,
        [event_of(b, 4, event::QP_REQ_ERR), aeth(4, psn, NAK_INV, msn), err(b, 4)],
        "{what}"
    );
    is_dead(b, 4);
}

#[test]
fn opcodes_out_of_order_are_invalid_requests() {
    all(|b| {
        // MIDDLE or LAST without FIRST.
        for op in [0x01, 0x02, 0x03, 0x07, 0x08, 0x09] {
            connect(b, 4, |_| ());
            let p = Packet {
                payload: vec![1; 256],
                ..b.packet(4, op, 100)
            };
            invalid(b, &format!("opcode {op:#x} first"), vec![p], 100, 0);
        }
        // Inside of a WRITE: everything but its own MIDDLE and LAST.
        for op in [0x00, 0x01, 0x02, 0x04, 0x06, 0x0a, 0x0b, 0x0c] {
            connect(b, 4, |_| ());
            let first = b.write_packets(4, 100, va(DATA), KEY, &[1; 600], None).remove(0);
            let n = if op == 0x0c { 0 } else { 256 };
            let p = Packet {
                payload: vec![1; n],
                va: va(DATA),
                rkey: KEY,
                dma_len: 256,
                ..b.packet(4, op, 101)
            };
            invalid(b, &format!("opcode {op:#x} in a WRITE"), vec![first, p], 101, 0);
        }
    });
}

#[test]
fn an_invalid_request_inside_of_a_send_is_reported_by_its_receive_wqe() {
    all(|b| {
        for op in [0x00, 0x04, 0x05, 0x06, 0x07, 0x08, 0x0a, 0x0c] {
            b.err_after = None;
            connect(b, 4, |_| ());
            b.post(4, &[sge(DATA, 1000)]);
            b.post(4, &[sge(DATA + 2000, 1000)]);
            b.run(8);
            let first = b.send_packets(4, 100, &[1; 600], None, false).remove(0);
            let n = if op == 0x0c { 0 } else { 256 };
            let p = Packet {
                payload: vec![1; n],
                va: va(DATA),
                rkey: KEY,
                dma_len: 256,
                ..b.packet(4, op, 101)
            };
            b.receive([first, p]);
            let want = [failed(b, 4, 0, REM_INV_REQ, 0), aeth(4, 101, NAK_INV, 0), err(b, 4)];
            assert_eq!(b.outcome(), want, "opcode {op:#x}");
            is_dead(b, 4);
        }
    });
}

#[test]
fn lengths_against_the_path_mtu_are_checked() {
    all(|b| {
        for (op, len) in [
            (0x00, 255),
            (0x00, 257),
            (0x00, 0),
            (0x04, 257),
            (0x06, 255),
            (0x0a, 257),
            (0x05, 300),
        ] {
            connect(b, 4, |_| ());
            b.post(4, &[sge(DATA, 1000)]);
            b.run(6);
            let p = Packet {
                payload: vec![1; len],
                va: va(DATA),
                rkey: KEY,
                dma_len: len as u32,
                ..b.packet(4, op, 100)
            };
            b.receive([p]);
            let want = [event_of(b, 4, event::QP_REQ_ERR), aeth(4, 100, NAK_INV, 0), err(b, 4)];
            let got = b.outcome();
            assert_eq!(got[..3], want, "opcode {op:#x}, {len} bytes");
            // The receive WQE was not in use: it is flushed.
            assert_eq!(got[3..], [failed(b, 4, 0, FLUSH, 0)]);
        }
        // LAST of a message: 1 to PMTU.
        for (op, len) in [(0x08, 0), (0x08, 257), (0x07, 100), (0x09, 0)] {
            connect(b, 4, |_| ());
            let first = b.write_packets(4, 100, va(DATA), KEY, &[1; 600], None).remove(0);
            let p = Packet {
                payload: vec![1; len],
                ..b.packet(4, op, 101)
            };
            invalid(b, &format!("opcode {op:#x}, {len} bytes"), vec![first, p], 101, 0);
        }
        // A READ request has no payload.
        connect(b, 4, |_| ());
        let p = Packet {
            payload: vec![1; 8],
            ..b.read_packet(4, 100, va(DATA), KEY, 8)
        };
        invalid(b, "READ with payload", vec![p], 100, 0);
    });
}

#[test]
fn what_a_write_brings_adds_up_to_its_dma_length() {
    all(|b| {
        for (lens, dma_len) in [
            (&[100][..], 99),
            (&[100], 101),
            (&[0], 5),
            (&[256, 10], 267),
            (&[256, 10], 265),
            (&[256, 256, 10], 500),
            (&[256, 1], 256),
            (&[256, 256], 0x8000_0001),
        ] {
            connect(b, 4, |_| ());
            let total = lens.iter().sum();
            let mut packets = b.write_packets(4, 100, va(DATA), KEY, &vec![3; total], None);
            packets[0].dma_len = dma_len;
            let memory = b.mem.clone();
            b.receive(packets);
            let got: Vec<_> = b.outcome();
            let tx = got
                .iter()
                .find_map(|e| if let Effect::Tx(t) = e { Some(t) } else { None })
                .unwrap();
            assert_eq!(tx.syndrome, NAK_INV, "{lens:?} for {dma_len}");
            assert_eq!(got[0], event_of(b, 4, event::QP_REQ_ERR));
            assert_eq!(got[2], err(b, 4));
            // Nothing beyond DMALen, and nothing of the packet at fault.
            let sound = (tx.psn - 100) as usize * 256;
            let mut expected = memory;
            place(&mut expected, DATA, &vec![3; sound]);
            expect_memory(b, &expected);
            assert!(sound <= dma_len as usize);
        }
    });
}

#[test]
fn a_qp_that_does_not_allow_write_or_read_answers_invalid_request() {
    all(|b| {
        connect(b, 4, |qp| qp.access = 4);
        let packets = b.write_packets(4, 100, va(DATA), KEY, &[1; 10], None);
        invalid(b, "WRITE", packets, 100, 0);
        connect(b, 4, |qp| qp.access = 2);
        let p = b.read_packet(4, 100, va(DATA), KEY, 10);
        invalid(b, "READ", vec![p], 100, 0);
        // With the right alone both work.
        connect(b, 4, |qp| qp.access = 2);
        let packets = b.write_packets(4, 100, va(DATA), KEY, &[1; 10], None);
        b.receive(packets);
        assert_eq!(b.outcome(), [ack(4, 100, 1)]);
        connect(b, 4, |qp| qp.access = 4);
        let p = b.read_packet(4, 100, va(DATA), KEY, 10);
        b.receive([p]);
        let want = read_responses(b, 4, 100, DATA, 10, 1);
        assert_eq!(b.outcome(), want);
    });
}

#[test]
fn a_bad_remote_key_is_a_remote_access_error_before_the_first_byte() {
    all(|b| {
        let at = DATA + 0x1_0000;
        // Key, protection domain, rights, range at both ends.
        b.regions.push(Region {
            key: 0x700,
            pd: 8,
            access: 0xf,
            va: at,
            len: 1000,
            addr: at,
        });
        b.regions.push(Region {
            key: 0x800,
            pd: 7,
            access: 0x9,
            va: at,
            len: 1000,
            addr: at,
        });
        b.regions.push(Region {
            key: 0x900,
            pd: 7,
            access: 0x7,
            va: at,
            len: 1000,
            addr: at,
        });
        for (key, addr, len) in [
            (0x600, at, 600),
            (0x700, at, 600),
            (0x800, at, 600),
            (0x900, at + 401, 600),
            (0x900, at - 1, 600),
            (0x900, u64::MAX - 5, 600),
        ] {
            connect(b, 4, |_| ());
            let memory = b.mem.clone();
            let packets = b.write_packets(4, 100, addr, key, &vec![1; len], None);
            b.receive(packets);
            let want = [
                event_of(b, 4, event::QP_ACCESS_ERR),
                aeth(4, 100, NAK_ACCESS, 0),
                err(b, 4),
            ];
            assert_eq!(b.outcome(), want, "WRITE with key {key:#x} at {addr:#x}");
            expect_memory(b, &memory);
            is_dead(b, 4);
            connect(b, 4, |_| ());
            let p = b.read_packet(4, 100, addr, key, len as u32);
            b.receive([p]);
            let want = [
                event_of(b, 4, event::QP_ACCESS_ERR),
                aeth(4, 100, NAK_ACCESS, 0),
                err(b, 4),
            ];
            assert_eq!(b.outcome(), want, "READ with key {key:#x} at {addr:#x}");
        }
        // The very end of the region is good.
        connect(b, 4, |_| ());
        let packets = b.write_packets(4, 100, at + 400, 0x900, &[1; 600], None);
        b.receive(packets);
        assert_eq!(b.outcome(), [ack(4, 102, 1)]);
    });
}

#[test]
fn neither_key_nor_address_is_looked_at_for_length_zero() {
    all(|b| {
        connect(b, 4, |_| ());
        let packets = b.write_packets(4, 100, 5, 0xdead, &[], None);
        let read = b.read_packet(4, 101, 5, 0xdead, 0);
        b.receive(packets);
        b.receive([read]);
        let mut want = vec![ack(4, 100, 1)];
        want.extend(read_responses(b, 4, 101, 0, 0, 2));
        assert_eq!(b.outcome(), want);
        assert!(b.lookups.is_empty());
    });
}

#[test]
fn a_region_that_goes_while_a_write_is_under_way_stops_it() {
    all(|b| {
        connect(b, 4, |_| ());
        let packets = b.write_packets(4, 100, va(DATA), KEY, &[9; 700], None);
        b.receive(packets[..1].to_vec());
        assert_eq!(b.outcome(), []);
        let region = b.regions.remove(0);
        let memory = b.mem.clone();
        b.receive(packets[1..].to_vec());
        let want = [
            event_of(b, 4, event::QP_ACCESS_ERR),
            aeth(4, 101, NAK_ACCESS, 0),
            err(b, 4),
        ];
        assert_eq!(b.outcome(), want);
        expect_memory(b, &memory);
        b.regions.push(region);
    });
}

#[test]
fn a_failed_key_of_a_write_with_immediate_is_reported_by_the_receive_wqe() {
    all(|b| {
        b.err_after = None;
        connect(b, 4, |_| ());
        b.post(4, &[]);
        b.run(6);
        let packets = b.write_packets(4, 100, va(DATA), 0x5555_5500, &[9; 20], Some(1));
        b.receive(packets);
        let Effect::Cqe(c) = failed(b, 4, 0, LOC_ACCESS_ERR, 0x11) else {
            unreachable!()
        };
        let want = [
            Effect::Cqe(Cqe { opcode: RECV_IMM, ..c }),
            aeth(4, 100, NAK_ACCESS, 0),
            err(b, 4),
        ];
        assert_eq!(b.outcome(), want);
    });
}

#[test]
fn a_send_longer_than_its_receive_is_refused_whole_packet_by_packet() {
    all(|b| {
        for (room, len, sound) in [(99, 100, 0), (256, 257, 256), (300, 600, 256), (0, 1, 0)] {
            connect(b, 4, |_| ());
            b.post(4, &[sge(DATA + 11, room)]);
            b.run(6);
            let bytes = data(b, len);
            let mut expected = b.mem.clone();
            place(&mut expected, DATA + 11, &bytes[..sound]);
            let packets = b.send_packets(4, 100, &bytes, None, false);
            b.receive(packets);
            let psn = 100 + (sound / 256) as u32;
            let want = [failed(b, 4, 0, LOC_LEN_ERR, 0), aeth(4, psn, NAK_INV, 0), err(b, 4)];
            assert_eq!(b.outcome(), want);
            expect_memory(b, &expected);
        }
    });
}

#[test]
fn a_bad_local_key_is_a_protection_error_and_no_byte_of_the_packet_is_written() {
    all(|b| {
        let at = DATA + 0x1_0000;
        b.regions.push(Region {
            key: 0x700,
            pd: 8,
            access: 0xf,
            va: at,
            len: 1000,
            addr: at,
        });
        b.regions.push(Region {
            key: 0x800,
            pd: 7,
            access: 0xe,
            va: at,
            len: 1000,
            addr: at,
        });
        b.regions.push(Region {
            key: 0x900,
            pd: 7,
            access: 0x1,
            va: at,
            len: 1000,
            addr: at,
        });
        for (bad, vendor) in [
            (
                Sge {
                    addr: at,
                    len: 100,
                    lkey: 0x600,
                },
                0x11,
            ),
            (
                Sge {
                    addr: at,
                    len: 100,
                    lkey: 0x700,
                },
                0x12,
            ),
            (
                Sge {
                    addr: at,
                    len: 100,
                    lkey: 0x800,
                },
                0x13,
            ),
            (
                Sge {
                    addr: at + 901,
                    len: 100,
                    lkey: 0x900,
                },
                0x14,
            ),
        ] {
            connect(b, 4, |qp| qp.log_rq_stride = 2);
            b.post(4, &[sge(DATA, 100), bad]);
            b.run(6);
            let memory = b.mem.clone();
            let packets = b.send_packets(4, 100, &[1; 200], None, false);
            b.receive(packets);
            let want = [
                failed(b, 4, 0, LOC_PROT_ERR, vendor),
                aeth(4, 100, NAK_OP, 0),
                err(b, 4),
            ];
            assert_eq!(b.outcome(), want);
            expect_memory(b, &memory);
        }
        // Elements that the message does not reach are not judged.
        connect(b, 4, |qp| qp.log_rq_stride = 2);
        b.post(
            4,
            &[
                sge(DATA, 100),
                Sge {
                    addr: 0,
                    len: 100,
                    lkey: 0,
                },
            ],
        );
        b.run(6);
        let packets = b.send_packets(4, 100, &[1; 100], None, false);
        b.receive(packets);
        assert_eq!(b.outcome(), [Effect::Cqe(cqe(b, 4, 0, 100)), ack(4, 100, 1)]);
    });
}

#[test]
fn a_malformed_or_unreadable_receive_wqe_is_an_operation_error() {
    all(|b| {
        // More elements than the stride holds, more than the device knows, and a host that does not answer.
        for (stride, num_sge, err_code) in [(0, 2, 0), (1, 4, 0), (4, 17, 0), (4, 255, 0), (1, 1, 1), (2, 1, 3)] {
            connect(b, 4, |qp| qp.log_rq_stride = stride);
            let sges = vec![sge(DATA, 100); if stride == 0 { 1 } else { 2 }];
            b.write_wqe(4, 0, num_sge, &sges);
            let base = b.qps[4].rq_base;
            if err_code != 0 {
                b.bad_reads.push((base..base + 8, err_code));
            }
            b.ring(4, 1);
            b.run(6);
            let memory = b.mem.clone();
            let packets = b.send_packets(4, 100, &[1; 50], None, false);
            b.receive(packets);
            let want = [
                failed(b, 4, 0, LOC_QP_OP_ERR, err_code),
                aeth(4, 100, NAK_OP, 0),
                err(b, 4),
            ];
            assert_eq!(b.outcome(), want);
            expect_memory(b, &memory);
            b.bad_reads.clear();
        }
    });
}

// ---------------------------------------------------------------- READ

#[test]
fn more_reads_than_the_qp_admits_are_an_invalid_request() {
    all(|b| {
        connect(b, 4, |qp| qp.max_dest_rd_atomic = 0);
        let p = b.read_packet(4, 100, va(DATA), KEY, 10);
        invalid(b, "no READ admitted", vec![p], 100, 0);
        connect(b, 4, |qp| qp.max_dest_rd_atomic = 2);
        b.stall_tx = true;
        let requests: Vec<_> = (0..3).map(|i| b.read_packet(4, 100 + i, va(DATA), KEY, 10)).collect();
        b.receive(requests);
        b.run(600);
        b.stall_tx = false;
        let mut want = vec![event_of(b, 4, event::QP_REQ_ERR)];
        want.extend(read_responses(b, 4, 100, DATA, 10, 1));
        want.extend(read_responses(b, 4, 101, DATA, 10, 2));
        want.push(aeth(4, 102, NAK_INV, 2));
        want.push(err(b, 4));
        assert_eq!(b.outcome(), want, "the NAK follows the READ responses, and ERR the NAK");
    });
}

#[test]
fn an_ack_does_not_overtake_earlier_read_responses_and_comes_after_them() {
    all(|b| {
        connect(b, 4, |_| ());
        let mut packets = vec![b.read_packet(4, 100, va(DATA), KEY, 2000)];
        packets.extend(b.write_packets(4, 108, va(DATA + 5000), KEY, &[1; 10], None));
        packets.extend(b.write_packets(4, 109, va(DATA + 5000), KEY, &[1; 10], None));
        b.receive(packets);
        let mut want = read_responses(b, 4, 100, DATA, 2000, 1);
        want.push(ack(4, 109, 3));
        let got = b.outcome();
        // On a slow bench the two WRITEs may be acknowledged apart.
        let acks = got
            .iter()
            .filter(|e| matches!(e, Effect::Tx(t) if t.opcode == 0x11))
            .count();
        assert!((1..=2).contains(&acks));
        assert_eq!(got[..8], want[..8]);
        assert_eq!(got.last(), want.last());
    });
}

#[test]
fn a_nak_waits_for_read_responses_and_the_packet_it_names_takes_its_place() {
    all(|b| {
        connect(b, 4, |_| ());
        b.stall_tx = true;
        let read = b.read_packet(4, 100, va(DATA), KEY, 300);
        let w = |b: &RecvBench, psn: u32| b.write_packets(4, psn, va(DATA + 5000), KEY, &[1; 10], None).remove(0);
        let (gap, expected) = (w(b, 105), w(b, 102));
        b.receive([read, gap, expected]);
        b.run(600);
        b.stall_tx = false;
        let mut want = read_responses(b, 4, 100, DATA, 300, 1);
        want.push(ack(4, 102, 2));
        assert_eq!(b.outcome(), want);
        // A gap that stays is named after the responses.
        b.stall_tx = true;
        let (read, gap) = (b.read_packet(4, 103, va(DATA), KEY, 300), w(b, 110));
        let duplicate = w(b, 102);
        b.receive([read, gap, duplicate]);
        b.run(600);
        b.stall_tx = false;
        let mut want = read_responses(b, 4, 103, DATA, 300, 3);
        want.push(aeth(4, 105, NAK_SEQ, 3));
        assert_eq!(b.outcome(), want);
    });
}

#[test]
fn a_region_that_goes_while_a_read_is_answered_ends_it_with_a_nak() {
    all(|b| {
        connect(b, 4, |_| ());
        let request = b.read_packet(4, 100, va(DATA), KEY, 256 * 6);
        b.receive([request]);
        b.run_until("responses", |b| b.effects.len() >= 2);
        let region = b.regions.remove(0);
        let got = b.outcome();
        b.regions.push(region);
        let n = got.len() - 3;
        assert!((2..6).contains(&n), "{got:?}");
        let want = read_responses(b, 4, 100, DATA, 256 * 6, 1);
        assert_eq!(got[..n], want[..n]);
        assert_eq!(
            got[n..],
            [
                aeth(4, 100 + n as u32, NAK_ACCESS, 0),
                event_of(b, 4, event::QP_ACCESS_ERR),
                err(b, 4)
            ]
        );
        is_dead(b, 4);
    });
}

#[test]
fn a_payload_that_the_host_does_not_deliver_is_a_remote_operation_error() {
    all(|b| {
        connect(b, 4, |_| ());
        b.bad_tx.push((4, 101));
        let request = b.read_packet(4, 100, va(DATA), KEY, 256 * 3);
        b.receive([request]);
        let got = b.outcome();
        let n = got.len() - 3;
        assert_eq!(
            got[n..],
            [aeth(4, 101, NAK_OP, 0), event_of(b, 4, event::QP_FATAL), err(b, 4)]
        );
        is_dead(b, 4);
        // The report of a life that is over has no effect.
        connect(b, 4, |_| ());
        b.bad_tx = vec![(4, 102)];
        let request = b.read_packet(4, 100, va(DATA), KEY, 256 * 3);
        b.receive([request]);
        b.run_until("responses", |b| b.effects.len() >= 3);
        b.change(4, |qp| {
            qp.epoch += 1;
            qp.state = state::RESET;
        });
        let after = b.outcome();
        let responses = |e: &Effect| matches!(e, Effect::Tx(t) if t.opcode != 0x11);
        assert!(after.iter().all(responses), "{after:?}");
    });
}

#[test]
fn reads_of_several_qps_are_answered_in_turn_and_sends_are_served_between() {
    all(|b| {
        for idx in [4, 5, 6] {
            connect(b, idx, |_| ());
        }
        b.post(6, &[sge(DATA + 0x9000, 500)]);
        b.run(6);
        let packets = [
            b.read_packet(4, 100, va(DATA), KEY, 256 * 40),
            b.read_packet(5, 100, va(DATA), KEY, 256 * 40),
            b.send_packets(6, 100, &[1; 10], None, false).remove(0),
        ];
        b.receive(packets);
        let got = b.outcome();
        let place = |wanted: &dyn Fn(&Tx) -> bool, last: bool| {
            let mut at = got
                .iter()
                .enumerate()
                .filter(|(_, e)| matches!(e, Effect::Tx(t) if wanted(t)))
                .map(|(i, _)| i);
            if last {
                at.next_back().unwrap()
            } else {
                at.next().unwrap()
            }
        };
        assert!(
            place(&|t| t.idx == 5, false) < place(&|t| t.idx == 4, true),
            "responses interleave"
        );
        assert!(
            place(&|t| t.idx == 6, false) < place(&|t| t.idx == 4, true),
            "an ACK is not kept behind them"
        );
        for idx in [4, 5] {
            let mine: Vec<_> = got
                .iter()
                .filter(|e| matches!(e, Effect::Tx(t) if t.idx == idx))
                .cloned()
                .collect();
            assert_eq!(mine, read_responses(b, idx, 100, DATA, 256 * 40, 1));
        }
    });
}

// ---------------------------------------------------------------- life and death

#[test]
fn every_receive_of_a_qp_in_err_is_flushed_once_and_in_order() {
    all(|b| {
        connect(b, 4, |qp| qp.log_rq = 4);
        for i in 0..6 {
            b.post(4, &[sge(DATA + 100 * i, 100)]);
        }
        b.run(10);
        let packets = b.send_packets(4, 100, &[1; 10], None, false);
        b.receive(packets);
        assert_eq!(b.outcome(), [Effect::Cqe(cqe(b, 4, 0, 10)), ack(4, 100, 1)]);
        // The second one is in use by a message of which half has come.
        let first = Packet {
            opcode: 0x00,
            payload: vec![1; 256],
            ..b.packet(4, 0, 101)
        };
        b.post(4, &[]);
        b.write_wqe(4, 1, 1, &[sge(DATA, 1000)]);
        b.receive([first]);
        assert_eq!(b.outcome(), []);
        b.change(4, |qp| qp.state = state::ERR);
        b.settle();
        let want: Vec<_> = (1..7)
            .flat_map(|i| {
                [
                    Effect::Cons {
                        idx: 4,
                        epoch: b.qps[4].epoch,
                        val: i + 1,
                    },
                    failed(b, 4, i, FLUSH, 0),
                ]
            })
            .collect();
        assert_eq!(b.take(), want, "each consumer index before its CQE");
        // Posted in ERR.
        for i in 7..12 {
            b.post(4, &[sge(DATA, 10)]);
            if i % 2 == 0 {
                b.run(30);
            }
        }
        let want: Vec<_> = (7..12).map(|i| failed(b, 4, i, FLUSH, 0)).collect();
        assert_eq!(b.outcome(), want);
        b.change(4, |qp| qp.state = state::ERR);
        assert_eq!(b.outcome(), [], "ERR to ERR flushes nothing twice");
        is_dead(b, 4);
    });
}

#[test]
fn receives_behind_the_failed_one_are_flushed_after_the_gate_has_spoken() {
    all(|b| {
        connect(b, 4, |_| ());
        for _ in 0..3 {
            b.post(4, &[sge(DATA, 10)]);
        }
        b.run(8);
        b.err_after = Some(100);
        let packets = b.send_packets(4, 100, &[1; 11], None, false);
        b.receive(packets);
        let want = [
            failed(b, 4, 0, LOC_LEN_ERR, 0),
            aeth(4, 100, NAK_INV, 0),
            err(b, 4),
            failed(b, 4, 1, FLUSH, 0),
            failed(b, 4, 2, FLUSH, 0),
        ];
        assert_eq!(b.outcome(), want);
        assert_eq!(b.qps[4].state, state::ERR);
    });
}

#[test]
fn a_new_life_starts_from_nothing() {
    all(|b| {
        connect(b, 4, |_| ());
        b.post(4, &[sge(DATA, 1000)]);
        b.run(6);
        // Half a SEND, READs that wait, an acknowledge that waits for them.
        b.stall_tx = true;
        let mut packets: Vec<_> = (0..3).map(|i| b.read_packet(4, 100 + i, va(DATA), KEY, 10)).collect();
        packets.extend(b.write_packets(4, 103, va(DATA), KEY, &[1; 10], None));
        packets.push(b.send_packets(4, 104, &[1; 600], None, false).remove(0));
        b.receive(packets);
        b.run(800);
        b.change(4, |qp| {
            qp.epoch += 1;
            qp.state = state::RESET;
        });
        b.run(20);
        b.take();
        b.stall_tx = false;
        let got = b.outcome();
        assert!(
            got.len() <= 1,
            "at most the response that was being handed over: {got:?}"
        );
        b.change(4, |qp| {
            qp.state = state::RTS;
            qp.rq_psn = 5000;
            qp.generation += 1;
        });
        b.post(4, &[sge(DATA, 1000)]);
        b.run(6);
        let send = b.send_packets(4, 5000, &[2; 10], None, false);
        let read = b.read_packet(4, 5001, va(DATA), KEY, 10);
        b.receive(send);
        b.receive([read]);
        let mut want = vec![Effect::Cqe(cqe(b, 4, 0, 10)), ack(4, 5000, 1)];
        want.extend(read_responses(b, 4, 5001, DATA, 10, 2));
        assert_eq!(b.outcome(), want);
    });
}

#[test]
fn a_packet_whose_qp_is_reset_or_fails_under_it_has_no_effect_but_its_payload() {
    all(|b| {
        for new_life in [true, false] {
            connect(b, 4, |_| ());
            b.post(4, &[sge(DATA, 1000)]);
            b.post(4, &[sge(DATA, 1000)]);
            b.run(6);
            // The completion of the first packet keeps the second one from its commit.
            b.stall_cqe = true;
            let packets = b.send_packets(4, 100, &[1; 200], None, false);
            b.receive(packets);
            let packets = b.send_packets(4, 101, &[1; 200], None, false);
            b.receive(packets);
            b.run(800);
            let dropped = b.counters[counter::RX_DROP_QP_STATE];
            b.change(4, |qp| {
                if new_life {
                    qp.epoch += 1;
                    qp.state = state::RESET;
                } else {
                    qp.state = state::ERR;
                }
            });
            let epoch = b.qps[4].epoch - u16::from(new_life);
            b.run(4);
            b.stall_cqe = false;
            let first = Effect::Cqe(Cqe {
                epoch,
                ..cqe(b, 4, 0, 200)
            });
            let mut want = vec![first, ack(4, 100, 1)];
            if !new_life {
                want.push(failed(b, 4, 1, FLUSH, 0));
            }
            assert_eq!(b.outcome(), want);
            assert_eq!(b.counters[counter::RX_DROP_QP_STATE], dropped + 1);
        }
    });
}

#[test]
fn communication_established_is_reported_once_a_life() {
    all(|b| {
        for _ in 0..2 {
            connect(b, 4, |qp| qp.state = RTR);
            let w = |b: &RecvBench, psn: u32| b.write_packets(4, psn, va(DATA), KEY, &[7; 10], None).remove(0);
            let packets = [w(b, 100), w(b, 101)];
            b.receive(packets);
            assert_eq!(
                b.outcome(),
                [event_of(b, 4, event::COMM_EST), ack(4, 100, 1), ack(4, 101, 2)]
            );
            b.change(4, |qp| qp.state = state::RTS);
            let p = w(b, 102);
            b.receive([p]);
            assert_eq!(b.outcome(), [ack(4, 102, 3)]);
        }
        // None for what is dropped, none in RTS.
        connect(b, 4, |qp| qp.state = RTR);
        let p = Packet {
            sgid: gid_v4(PEER_IP + 1),
            ..b.packet(4, 0x0a, 100)
        };
        b.receive([p]);
        assert_eq!(b.outcome(), []);
        b.change(4, |qp| qp.state = state::RTS);
        let packets = b.write_packets(4, 100, va(DATA), KEY, &[7; 10], None);
        b.receive(packets);
        assert_eq!(b.outcome(), [ack(4, 100, 1)]);
    });
}

#[test]
fn the_barrier_answers_when_all_is_at_rest_and_holds_new_work_back() {
    all(|b| {
        connect(b, 4, |_| ());
        connect(b, 5, |_| ());
        b.post(4, &[sge(DATA, 1000)]);
        b.run(6);
        b.stall_cqe = true;
        let mut packets = b.send_packets(4, 100, &[1; 200], None, false);
        packets.push(b.read_packet(5, 100, va(DATA), KEY, 256 * 10));
        packets.extend(b.write_packets(5, 110, va(DATA), KEY, &[1; 10], None));
        b.receive(packets);
        b.run(400);
        b.dut.set("drain_req_i", 1);
        b.run(300);
        assert_eq!(b.dut.get("drain_ack_o"), 0, "a completion is not handed over yet");
        b.stall_cqe = false;
        b.run_until("the barrier", |b| b.dut.get("drain_ack_o") == 1);
        b.take();
        b.run(500);
        assert_eq!(b.dut.get("drain_ack_o"), 1, "it stays until the request falls");
        assert_eq!(b.take(), [], "nothing happens behind the barrier");
        assert!(b.waiting() > 0, "packets wait");
        b.dut.set("drain_req_i", 0);
        b.dut.eval();
        assert_eq!(b.dut.get("drain_ack_o"), 0);
        assert_eq!(b.outcome().last(), Some(&ack(5, 110, 2)));
    });
}

#[test]
fn the_barrier_waits_for_frames_that_were_handed_over() {
    all(|b| {
        connect(b, 5, |_| ());
        b.manners.latency = 60;
        let p = b.read_packet(5, 100, va(DATA), KEY, 100);
        b.receive([p]);
        b.run_until("a response", |b| !b.effects.is_empty());
        let sent = b.dut.cycles();
        b.dut.set("drain_req_i", 1);
        b.stall_tx = true;
        b.run(100);
        assert_eq!(b.dut.get("drain_ack_o"), 0, "{sent}");
        b.stall_tx = false;
        b.settle();
        assert_eq!(b.dut.get("drain_ack_o"), 1);
        b.dut.set("drain_req_i", 0);
    });
}

// ---------------------------------------------------------------- random traffic

struct Peer {
    idx: u16,
    psn: u32,
    msn: u32,
    wqes: u16,
    packets: Vec<Packet>,
    cqes: Vec<Effect>,
    reads: Vec<Effect>,
}

#[test]
fn random_traffic_of_many_qps_moves_every_byte_and_completes_in_order() {
    let seed = seed();
    widths(|width| {
        for round in 0..3u64 {
            let mut b = bench(width, seed.wrapping_mul(1000) + round);
            b.manners = Manners::BUSY;
            let n = 12u16;
            let mut expected = Vec::new();
            let mut peers = Vec::new();
            for i in 0..n {
                // Some share a line of the WQE cache.
                let idx = 2 + i % 6 + 64 * (i / 6);
                let psn = b.rng.bits() as u32 & 0xff_ffff;
                let mtu = 1 + b.rng.below(3) as u8;
                let stride = 2 + b.rng.below(3) as u8;
                connect(&mut b, idx, |qp| {
                    qp.rq_psn = psn;
                    qp.mtu = mtu;
                    qp.log_rq_stride = stride;
                    qp.log_rq = 2;
                });
                peers.push(Peer {
                    idx,
                    psn,
                    msn: 0,
                    wqes: 0,
                    packets: vec![],
                    cqes: vec![],
                    reads: vec![],
                });
            }
            // Messages of each QP go to an area of its own, so that order between QPs does not matter.
            for (i, p) in peers.iter_mut().enumerate() {
                let area = DATA + 0x8000 * i as u64;
                let mut at = area;
                // 4 entries of the ring at most are used, so all receives are posted before.
                for m in 0..8 {
                    let len = [0, 1, 255, 256, 700, 1100][b.rng.below(6) as usize] + b.rng.below(20) as usize;
                    let kind = if p.wqes == 4 {
                        1 + b.rng.below(2)
                    } else {
                        b.rng.below(4)
                    };
                    let bytes = data(&mut b, len);
                    let imm = b.rng.bits() as u32;
                    at += b.rng.below(9);
                    let packets = match kind {
                        0 => {
                            let sges = random_sges(&mut b, at, len, 7);
                            b.post(p.idx, &sges);
                            let c = Cqe {
                                with_imm: m % 2 == 0,
                                imm: if m % 2 == 0 { imm } else { 0 },
                                ..cqe(&b, p.idx, p.wqes, len)
                            };
                            p.cqes.push(Effect::Cqe(c));
                            p.wqes += 1;
                            expected.push((sges.clone(), bytes.clone()));
                            at = sges.last().unwrap().addr - VA_OFF + u64::from(sges.last().unwrap().len);
                            b.send_packets(p.idx, p.psn, &bytes, (m % 2 == 0).then_some(imm), false)
                        }
                        2 => {
                            let count = len.div_ceil(b.qps[usize::from(p.idx)].mtu_bytes()).max(1) as u32;
                            let from = DATA + b.rng.below(0x1000);
                            p.reads.extend(read_responses(&b, p.idx, p.psn, from, len, p.msn + 1));
                            let request = b.read_packet(p.idx, p.psn, va(from), KEY, len as u32);
                            p.psn += count - 1;
                            vec![request]
                        }
                        _ => {
                            let with_imm = kind == 3;
                            if with_imm {
                                b.post(p.idx, &[]);
                                let c = Cqe {
                                    opcode: RECV_IMM,
                                    with_imm,
                                    imm,
                                    ..cqe(&b, p.idx, p.wqes, len)
                                };
                                p.cqes.push(Effect::Cqe(c));
                                p.wqes += 1;
                            }
                            expected.push((vec![sge(at, len as u32)], bytes.clone()));
                            let packets = b.write_packets(p.idx, p.psn, va(at), KEY, &bytes, with_imm.then_some(imm));
                            at += len as u64;
                            packets
                        }
                    };
                    p.psn = (p.psn + packets.len() as u32) & 0xff_ffff;
                    p.msn += 1;
                    p.packets.extend(packets);
                    assert!(at < area + 0x8000);
                }
            }
            b.settle();
            let mut memory = b.mem.clone();
            for (sges, bytes) in &expected {
                scatter(&mut memory, sges, bytes);
            }
            // The wire mixes the QPs, repeats packets and shows later ones too early; each QP's own packets come in order.
            let mut next = vec![0; peers.len()];
            let mut reads_under_way = vec![0usize; peers.len()];
            while next.iter().zip(&peers).any(|(n, p)| *n < p.packets.len()) {
                let i = b.rng.below(peers.len() as u64) as usize;
                let p = &peers[i];
                if next[i] == p.packets.len() {
                    continue;
                }
                let packet = p.packets[next[i]].clone();
                if packet.opcode == 0x0c {
                    // As many READs as the QP admits: wait until the earlier ones are answered.
                    if reads_under_way[i] == MAX_RD {
                        b.settle();
                        reads_under_way.fill(0);
                    }
                    reads_under_way[i] += 1;
                }
                if b.rng.chance(0.1) && next[i] + 1 < p.packets.len() {
                    let ahead = p.packets[next[i] + 1].clone();
                    b.receive([ahead]);
                }
                b.receive([packet.clone()]);
                if b.rng.chance(0.1) && packet.opcode != 0x0c {
                    b.receive([packet]);
                }
                next[i] += 1;
                if b.rng.chance(0.05) {
                    b.run(200);
                }
            }
            let got = b.outcome();
            expect_memory(&b, &memory);
            for p in &peers {
                let of =
                    |wanted: &dyn Fn(&Effect) -> bool| got.iter().filter(|e| wanted(e)).cloned().collect::<Vec<_>>();
                assert_eq!(of(&|e| matches!(e, Effect::Cqe(c) if c.idx == p.idx)), p.cqes);
                assert_eq!(
                    of(&|e| matches!(e, Effect::Tx(t) if t.idx == p.idx && t.opcode != 0x11)),
                    p.reads
                );
                // Acknowledges never go back, and the last one covers all, unless a READ response does.
                let last = of(&|e| matches!(e, Effect::Tx(t) if t.idx == p.idx)).pop().unwrap();
                let Effect::Tx(last) = last else { unreachable!() };
                let covered = if last.syndrome == ACK {
                    last.psn
                } else {
                    last.psn.wrapping_sub(1) & 0xff_ffff
                };
                assert_eq!(covered, p.psn.wrapping_sub(1) & 0xff_ffff);
                assert_eq!(last.msn, p.msn);
            }
            assert!(
                !got.iter()
                    .any(|e| matches!(e, Effect::Event { .. } | Effect::Err { .. }))
            );
        }
    });
}

#[test]
fn qps_that_fail_or_are_reset_under_traffic_complete_every_receive_once_or_never_again() {
    let seed = seed();
    widths(|width| {
        let mut b = bench(width, seed);
        b.manners = Manners::BUSY;
        for round in 0..12u64 {
            let n = 6u16;
            for i in 0..n {
                connect(&mut b, 10 + i, |qp| qp.log_rq = 3);
                for k in 0..8 {
                    b.post(10 + i, &[sge(DATA + 0x800 * u64::from(8 * i + k), 700)]);
                }
            }
            b.settle();
            b.take();
            // Traffic on all of them.
            let mut next: Vec<Vec<Packet>> = (0..n)
                .map(|i| {
                    let mut psn = 100;
                    let mut all = Vec::new();
                    for k in 0..8u32 {
                        let bytes = data(&mut b, 100 + 70 * k as usize);
                        let packets = b.send_packets(10 + i, psn, &bytes, None, false);
                        psn += packets.len() as u32;
                        all.extend(packets);
                        all.push(b.read_packet(10 + i, psn, va(DATA), KEY, 300));
                        psn += 2;
                    }
                    all
                })
                .collect();
            // In the midst of it one is moved to ERR, one is reset, one gets an invalid request, one an unknown key.
            let mut left = 60;
            let (failed, reset, invalid, no_key) = (10, 11, 12, 13);
            let fail_at = b.rng.below(50);
            let reset_at = b.rng.below(50);
            let bad_at = b.rng.below(5) as usize;
            let old_epoch = b.qps[usize::from(reset)].epoch;
            next[2][bad_at].opcode = 0x13;
            next[3][bad_at] = Packet {
                rkey: 0x99,
                ack_req: true,
                va: 5,
                dma_len: 5,
                payload: vec![1; 5],
                ..b.packet(no_key, 0x0a, next[3][bad_at].psn)
            };
            while left > 0 {
                left -= 1;
                if left == fail_at {
                    b.change(failed, |qp| qp.state = state::ERR);
                }
                if left == reset_at {
                    b.change(reset, |qp| {
                        qp.epoch += 1;
                        qp.state = state::RESET;
                    });
                    // The gate's barrier: what comes behind it belongs to no old life.
                    b.dut.set("drain_req_i", 1);
                    b.run_until("the barrier", |b| b.dut.get("drain_ack_o") == 1);
                    b.dut.set("drain_req_i", 0);
                    let of_old = |e: &Effect| match e {
                        Effect::Cqe(c) => c.idx == reset && c.epoch == old_epoch,
                        Effect::Tx(t) => t.idx == reset,
                        _ => false,
                    };
                    let before = b.effects.len();
                    b.run(100);
                    assert!(
                        !b.effects[before..].iter().any(|(_, e)| of_old(e)),
                        "behind the barrier"
                    );
                }
                let i = b.rng.below(u64::from(n)) as usize;
                if !next[i].is_empty() {
                    let p = next[i].remove(0);
                    b.receive([p]);
                }
                let pause = b.rng.below(60);
                b.run(pause);
            }
            let got = {
                b.settle();
                b.take()
            };
            for idx in [failed, invalid, no_key] {
                let mine: Vec<_> = got
                    .iter()
                    .filter_map(|e| {
                        if let Effect::Cqe(c) = e {
                            (c.idx == idx).then_some(c)
                        } else {
                            None
                        }
                    })
                    .collect();
                if b.qps[usize::from(idx)].state != state::ERR {
                    continue; // its bad packet has not come yet
                }
                let order: Vec<u16> = mine.iter().map(|c| c.wqe_index).collect();
                assert_eq!(order, (0..8).collect::<Vec<_>>(), "QP {idx} in round {round}");
                let good = mine.iter().take_while(|c| c.status == SUCCESS).count();
                let flushed = mine.iter().rev().take_while(|c| c.status == FLUSH).count();
                assert!(good + flushed >= 7, "QP {idx}: {good} good, {flushed} flushed");
                let published: Vec<u16> = got
                    .iter()
                    .filter_map(|e| {
                        if let Effect::Cons { idx: i, val, .. } = e {
                            (*i == idx).then_some(*val)
                        } else {
                            None
                        }
                    })
                    .collect();
                assert_eq!(published, (1..=8).collect::<Vec<_>>());
            }
            for idx in 10..10 + n {
                b.change(idx, |qp| {
                    qp.valid = false;
                    qp.epoch += 1;
                    qp.state = state::RESET;
                });
            }
            b.settle();
        }
    });
}
