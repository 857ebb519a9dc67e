// SPDX-License-Identifier: Apache-2.0
//! Command ring and executor (`rnic_ctrl`): order, doorbells, refusals, objects and their references, fatal states.
#![allow(clippy::unwrap_used)]

use openrnic_sim::model::BlockModel;
use openrnic_sim::rng::Stream;
use openrnic_testbench::ctrl_bench::*;
use openrnic_testbench::ctrl_model::{NUM_PD, OPCODES, Objects, readable, status::*};
use openrnic_testbench::wire_bench::PORT_CFG;

const WIDTHS: [u32; 2] = [64, 512];
const CMD_RING_DMA: u64 = 1;
const DRAIN_TIMEOUT: u64 = 3;
const HOST_REQUEST: u64 = 4;
const DEVICE_FATAL: u8 = 8;
/// Where an event queue made by the bench begins.
const EQ0: u64 = BASE + 0x9_0000;

fn mr(pd: u32) -> Mr {
    Mr {
        kind: 0,
        pd: pd as u16,
        access: 0xf,
        key: 0x5a,
        va: 0x1000,
        length: 0x2000,
        host_addr: 0xabc0_0000,
        log_page: 0,
        page_offset: 0,
    }
}

// ---------------------------------------------------------------- the ring

#[test]
fn commands_complete_in_ring_order_with_the_phase_of_their_lap() {
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "laps", 0);
        let mut b = CtrlBench::new(width, seed);
        for log_size in [1, 2, 3, 5] {
            b.start_ring(log_size);
            b.manners.stall = 0.2;
            // The bench checks phase, tag and opcode of every completion.
            for _ in 0..5 {
                let n = 1 + rng.below(3 << log_size) as usize;
                let done = b.batch(&vec![Cmd::new(0x0a, 7); n]);
                assert!(done.iter().all(|c| c.status == OK));
            }
            assert_eq!(b.dut.get("cmd_consumer_o"), u64::from(b.taken));
            assert_eq!(b.dut.get("cmd_status_o"), 1, "running, nothing wrong");
        }
    }
}

#[test]
fn the_largest_ring_wraps_its_counters() {
    let mut b = CtrlBench::new(512, seed());
    b.start_ring(12);
    for _ in 0..18 {
        assert!(b.batch(&vec![Cmd::new(0x0a, 1); 4000]).iter().all(|c| c.status == OK));
    }
    // More than 65536 commands: the counters are modulo that.
    assert_eq!(b.dut.get("cmd_consumer_o"), 18 * 4000 - 65536);
    assert_eq!(b.dut.get("cmd_producer_o"), 18 * 4000 - 65536);
}

#[test]
fn commands_are_read_several_at_once_up_to_the_end_of_the_ring() {
    let mut b = CtrlBench::new(64, seed());
    b.manners.read_latency = 30;
    b.manners.qp = Some(50);
    b.batch(&vec![Cmd::new(0x0a, 1); 14]);
    b.reads.clear();
    // Entries 14, 15, then 0 to 9: the end of the ring cuts a read.
    for _ in 0..12 {
        b.put(&Cmd::new(0x40, 0));
    }
    b.doorbell(b.produced);
    b.run(30);
    let at = |entry: u64, n: usize| (RING + 64 * entry, 64 * n);
    assert_eq!(
        b.reads,
        [at(14, 2), at(0, 4)],
        "fetched ahead of the executor, 4 at least"
    );
    b.until("fetching to go on", 400, |b| b.reads.len() == 4);
    assert_eq!(b.reads[2..], [at(4, 4), at(8, 2)]);
    for _ in 0..12 {
        b.completion();
    }
}

#[test]
fn a_read_that_waits_stays_as_it_was_offered() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.start_ring(4);
        for _ in 0..9 {
            b.put(&Cmd::new(0x0a, 7));
        }
        b.hold_reads = true;
        b.doorbell(1);
        b.run(4);
        let offered = b.read_waits.expect("the first command is asked for");
        assert_eq!(offered.1, 64);
        // More commands, while it waits: the bench looks at the offer in every cycle.
        for more in 1..=8 {
            b.doorbell(1 + more);
            b.run(3);
            assert_eq!(b.read_waits, Some(offered), "with {more} more");
        }
        b.hold_reads = false;
        for _ in 0..9 {
            assert_eq!(b.completion().status, OK);
        }
    }
}

#[test]
fn a_doorbell_beyond_the_ring_or_backwards_is_refused_and_remembered() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.batch(&[Cmd::new(0x0a, 1); 5]);
        b.reads.clear();
        for wrong in [5 + 17, 4, 0, 0x8000] {
            b.doorbell(wrong);
            b.run(50);
            assert_eq!(b.dut.get("cmd_status_o"), 0b011, "producer {wrong}");
            assert_eq!(b.dut.get("cmd_producer_o"), 5);
            b.start_ring(4);
            assert_eq!(b.dut.get("cmd_status_o"), 0b001, "a restart forgets it");
            b.batch(&[Cmd::new(0x0a, 1); 5]);
            b.reads.clear();
        }
        assert!(b.reads.is_empty());
        // The whole ring is no overrun.
        b.batch(&[Cmd::new(0x0a, 1); 16]);
        assert_eq!(b.dut.get("cmd_status_o"), 0b001);
    }
}

#[test]
fn a_ring_of_a_wrong_size_does_not_run() {
    let mut b = CtrlBench::new(64, seed());
    for log_size in [0, 13, 15] {
        b.start_ring(log_size);
        b.doorbell(1);
        b.run(50);
        assert_eq!(b.dut.get("cmd_status_o"), 0b010, "not running, doorbell refused");
        assert_eq!(b.dut.get("cmd_producer_o"), 0);
    }
    assert!(b.reads.is_empty());
    b.start_ring(1);
    b.ok(&Cmd::create_pd());
}

#[test]
fn nothing_is_read_before_tables_are_clear_device_enabled_and_bus_master_set() {
    let mut b = CtrlBench::held(64, seed());
    b.dut.set("qp_ready_i", 0);
    b.start_ring(4);
    b.put(&Cmd::create_pd());
    b.doorbell(1);
    b.run(1500);
    assert_eq!(b.dut.get("ready_o"), 0, "the QP engine is not ready");
    b.dut.set("qp_ready_i", 1);
    for (enable, master) in [(0, 0), (1, 0), (0, 1)] {
        b.dut.set("enable_i", enable);
        b.dut.set("bus_master_en_i", master);
        b.run(100);
        assert!(b.reads.is_empty());
    }
    b.dut.set("enable_i", 1);
    assert_eq!(b.completion().status, OK, "the command waited");
}

#[test]
fn a_ring_that_cannot_be_read_is_fatal_and_nothing_of_that_read_is_done() {
    for width in WIDTHS {
        for err in 1..=4 {
            let mut b = CtrlBench::new(width, seed());
            b.make_eq(0, 4);
            b.out.clear();
            // The first read of four commands is good, the second fails.
            b.manners.read_latency = 20;
            b.fail_read = Some((1, err));
            for _ in 0..8 {
                b.put(&Cmd::create_pd());
            }
            b.doorbell(b.produced);
            b.run(600);
            assert_eq!((b.dut.get("fatal_o"), b.dut.get("fatal_reason_o")), (1, CMD_RING_DMA));
            assert_eq!(b.dut.get("cmd_status_o"), 0b100);
            let done: Vec<u8> = std::iter::from_fn(|| b.poll()).map(|c| c.status).collect();
            assert_eq!(done.len(), 4, "what was read well completes, and no more");
            assert!(done.iter().all(|s| [OK, FATAL].contains(s)));
            assert_eq!(b.events_written(), [(DEVICE_FATAL, CMD_RING_DMA as u32)]);
            // It reads no more, whatever the driver does.
            b.reads.clear();
            b.doorbell(b.produced.wrapping_add(1));
            b.run(100);
            assert!(b.reads.is_empty());
        }
    }
}

#[test]
fn a_restart_forgets_what_was_fetched_and_what_is_being_read() {
    let seed = seed();
    let mut rng = Stream::new(seed, "restart", 0);
    for width in WIDTHS {
        for qp in [Some(3), Some(40)] {
            let mut b = CtrlBench::new(width, seed);
            b.manners.qp = qp;
            for _ in 0..40 {
                b.manners.read_latency = rng.below(40);
                b.manners.stall = 0.3;
                for _ in 0..1 + rng.below(12) {
                    b.put(&Cmd::new(0x40, 77));
                }
                b.doorbell(b.produced);
                b.run(rng.below(60));
                // The driver gives the old ring up at any moment: no completion of it comes after its zeros but in
                // a write that is under way, which the driver waits out before it clears the ring.
                b.start_ring(4);
                b.run(150);
                b.clear(CPL, 32 * 16);
                assert_eq!(b.dut.get("cmd_consumer_o"), 0);
                assert_eq!(b.ok(&Cmd::new(0x0a, 3)), 3);
                assert_eq!(b.dut.get("cmd_consumer_o"), 1);
            }
        }
    }
}

#[test]
fn the_interrupt_follows_its_completion_and_several_may_share_one() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.out.clear();
        b.ok(&Cmd::create_pd());
        b.run(5);
        assert!(matches!(b.out[0], Out::Write { client: 0, .. }));
        assert_eq!(b.out[1..], [Out::Msix { source: 1, vector: 4 }]);
        // While one waits, further completions do not wait for it.
        b.out.clear();
        b.manners.msix = false;
        b.batch(&[Cmd::new(0x0a, 1); 6]);
        b.manners.msix = true;
        b.run(10);
        assert_eq!(b.vectors(1), [4]);
        assert_eq!(b.writes(0).len(), 6);
    }
}

// ---------------------------------------------------------------- refusals

#[test]
fn an_unknown_opcode_is_refused() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.start_ring(8);
        let unknown: Vec<Cmd> = (0..=255)
            .filter(|op| !OPCODES.contains(op))
            .map(|op| Cmd::new(op, 0))
            .collect();
        let done = b.batch(&unknown);
        assert!(done.iter().all(|c| c.status == BAD_OPCODE && c.handle == 0));
        assert_eq!(b.counts[48], 228, "CMD_REFUSED");
        assert!(b.qp_cmds.is_empty());
    }
}

#[test]
fn each_reserved_bit_and_each_unknown_flag_is_refused() {
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "reserved", 0);
        let mut b = CtrlBench::new(width, seed);
        b.start_ring(8);
        let mut cmds = Vec::new();
        for op in OPCODES {
            let mask = readable(op);
            for bit in 0..512 {
                if mask[bit / 8] >> (bit % 8) & 1 == 0 && (width == 64 || rng.chance(0.2)) {
                    let mut cmd = Cmd::new(op, 0);
                    cmd.0[bit / 8] |= 1 << (bit % 8);
                    cmds.push(cmd);
                }
            }
        }
        for (cmd, c) in cmds.iter().zip(b.batch(&cmds)) {
            assert_eq!((c.status, c.handle, c.detail), (RESERVED_SET, 0, 0), "{cmd:02x?}");
        }
        assert!(b.qp_cmds.is_empty(), "nothing reached the QP engine");
        assert_eq!(b.dut.get_wide("pd_valid_o"), [0; 8]);
    }
}

/// All that the block tells of its objects.
fn objects(b: &CtrlBench) -> Vec<u32> {
    ["pd_valid_o", "cq_valid_o", "port_cfg_o"]
        .iter()
        .flat_map(|p| b.dut.get_wide(p))
        .collect()
}

#[test]
fn a_bad_parameter_is_named_by_its_offset_and_changes_nothing() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.make_eq(1, 4);
        let pd = b.ok(&Cmd::create_pd());
        let key = b.ok(&Cmd::create_mr(&mr(pd)));
        let cq = b.ok(&Cmd::create_cq(4, 1, 5, BASE));
        let before = objects(&b);
        let good_mac = [2, 0, 0, 0, 0, 1];
        let region = |change: fn(&mut Mr)| {
            let mut m = mr(0);
            change(&mut m);
            Cmd::create_mr(&m)
        };
        let top = u64::MAX;
        let cases = [
            (Cmd::new(0x01, 0).with(56, &(OUT + 32).to_le_bytes()), BAD_PARAM, 56),
            (Cmd::new(0x02, 0).with(56, &(OUT + 1).to_le_bytes()), BAD_PARAM, 56),
            (Cmd::set_port(good_mac, 3, true).with(4, &[2]), BAD_HANDLE, 4),
            (Cmd::set_port(good_mac, 3, true).with(4, &[0]), BAD_HANDLE, 4),
            (Cmd::set_port([1, 0, 0, 0, 0, 1], 3, true), BAD_PARAM, 8),
            (Cmd::set_port([0; 6], 3, true), BAD_PARAM, 8),
            (Cmd::set_port(good_mac, 0, true), BAD_PARAM, 14),
            (Cmd::set_port(good_mac, 6, true), BAD_PARAM, 14),
            (Cmd::set_port(good_mac, 0x83, true), BAD_PARAM, 14),
            (Cmd::new(0x09, 16), BAD_HANDLE, 4),
            (Cmd::new(0x09, 0x100), BAD_HANDLE, 4),
            (Cmd::new(0x0a, 8).with(8, &[1, 0]), BAD_HANDLE, 4),
            (Cmd::new(0x0a, 1).with(8, &[0, 0x80]), BAD_PARAM, 8),
            (Cmd::destroy_pd(pd + 1), BAD_HANDLE, 4),
            (Cmd::destroy_pd(pd + 256), BAD_HANDLE, 4),
            (Cmd::destroy_pd(pd + 0x1_0000), BAD_HANDLE, 4),
            (region(|m| m.pd = 1), BAD_HANDLE, 8),
            (region(|m| m.pd = 0x100), BAD_HANDLE, 8),
            (region(|m| m.access = 0x21), BAD_PARAM, 10),
            (region(|m| m.access = 0x41), BAD_PARAM, 10),
            (region(|m| m.access = 0x2), BAD_PARAM, 10),
            (region(|m| m.access = 0x8), BAD_PARAM, 10),
            (region(|m| m.length = 0), BAD_PARAM, 24),
            (region(|m| m.length = (1 << 48) + 1), BAD_PARAM, 24),
            (region(|m| m.va = u64::MAX - 0x1ffe), BAD_PARAM, 16),
            (region(|m| m.host_addr = u64::MAX - 0x1ffe), BAD_PARAM, 32),
            (Cmd::destroy_mr(key ^ 1), BAD_HANDLE, 4),
            (Cmd::destroy_mr(key + 0x100), BAD_HANDLE, 4),
            (Cmd::destroy_mr(key + (NUM_MR << 8)), BAD_HANDLE, 4),
            (Cmd::destroy_mr(0x5a), BAD_HANDLE, 4),
            (Cmd::create_cq(0, 1, 0, BASE), BAD_PARAM, 8),
            (Cmd::create_cq(17, 1, 0, BASE), BAD_PARAM, 8),
            (Cmd::create_cq(4, 0, 0, BASE), BAD_HANDLE, 9),
            (Cmd::create_cq(4, 5, 0, BASE), BAD_HANDLE, 9),
            (Cmd::create_cq(4, 1, 32, BASE), BAD_PARAM, 10),
            (Cmd::create_cq(4, 1, 0, BASE + 32), BAD_PARAM, 16),
            (Cmd::destroy_cq(cq + 1), BAD_HANDLE, 4),
            (Cmd::destroy_cq(cq + NUM_CQ), BAD_HANDLE, 4),
            (Cmd::modify_cq(cq + 1, 0, 0), BAD_HANDLE, 4),
            (Cmd::modify_cq(cq + NUM_CQ, 0, 0), BAD_HANDLE, 4),
            (Cmd::modify_cq(cq, 0, 4096), BAD_PARAM, 14),
            (Cmd::modify_cq(cq, 0, 0x8001), BAD_PARAM, 14),
            (Cmd::resize_cq(cq + 1, 4, BASE), BAD_HANDLE, 4),
            (Cmd::resize_cq(cq + NUM_CQ, 4, BASE), BAD_HANDLE, 4),
            (Cmd::resize_cq(cq, 0, BASE), BAD_PARAM, 8),
            (Cmd::resize_cq(cq, 17, BASE), BAD_PARAM, 8),
            (Cmd::resize_cq(cq, 4, BASE + 32), BAD_PARAM, 16),
            (Cmd::create_eq(4, 4, BASE), BAD_HANDLE, 4),
            (Cmd::create_eq(1, 4, BASE), IN_USE, 0),
            (Cmd::create_eq(2, 0, BASE), BAD_PARAM, 8),
            (Cmd::create_eq(2, 17, BASE), BAD_PARAM, 8),
            (Cmd::create_eq(2, 4, BASE + 16), BAD_PARAM, 16),
            (Cmd::destroy_eq(2), BAD_HANDLE, 4),
            (Cmd::destroy_eq(5), BAD_HANDLE, 4),
        ];
        let refused = b.counts[48];
        for (cmd, status, detail) in &cases {
            b.refused(cmd, *status, *detail);
            assert_eq!(objects(&b), before);
        }
        assert_eq!(b.counts[48] - refused, cases.len() as u64);
        // The edges of what is allowed.
        b.ok(&region(|m| m.access = 1));
        b.ok(&region(|m| m.access = 4));
        b.ok(&region(|m| m.length = 1 << 48));
        b.ok(&region(|m| (m.va, m.host_addr, m.length) = (u64::MAX, u64::MAX, 1)));
        b.ok(&Cmd::create_cq(16, 1, 31, top - 63));
        b.ok(&Cmd::create_eq(3, 16, BASE));
        b.ok(&Cmd::create_eq(2, 1, BASE));
        assert_eq!(b.ok(&Cmd::modify_cq(cq, 0xffff, 4095)), cq);
        assert_eq!(b.ok(&Cmd::resize_cq(cq, 16, top - 63)), cq);
    }
}

// ---------------------------------------------------------------- port, queries, QP commands

#[test]
fn port_gids_and_pkeys_are_told_to_everybody() {
    let [gids, v4s, v6s, pkeys, up, mtu, mac] =
        ["gid", "gid_v4", "gid_v6", "pkey", "up", "mtu", "mac"].map(|f| PORT_CFG.field(f).0);
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        let bits = |b: &CtrlBench, lsb, width| b.dut.get_bits("port_cfg_o", lsb, width);
        assert_eq!((bits(&b, mac, 48), bits(&b, up, 1)), (0, 0), "down after reset");
        assert_eq!(
            bits(&b, mtu, 3),
            5,
            "and of the largest MTU: no transition is refused for a port that was not set"
        );
        assert_eq!(
            (bits(&b, pkeys, 64), bits(&b, pkeys + 64, 64)),
            (0xffff, 0),
            "the default P_Key alone"
        );
        assert_eq!((bits(&b, v4s, 16), bits(&b, v6s, 16)), (0, 0));

        b.ok(&Cmd::set_port([2, 0x11, 0x22, 0x33, 0x44, 0x55], 4, true));
        assert_eq!(
            (bits(&b, mac, 48), bits(&b, mtu, 3), bits(&b, up, 1)),
            (0x5544_3322_1102, 4, 1)
        );
        // Byte 0 of a GID is in the lowest bits. What is IPv4 is told by bytes 0 to 11, all of them.
        let mapped = *b"\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\xa8\x07\x01";
        let mut kinds = vec![(mapped, 1, 0)];
        for bit in 0..96 {
            let mut gid = mapped;
            gid[bit / 8] ^= 1 << (bit % 8);
            kinds.push((gid, 0, 1));
        }
        kinds.extend([
            (*b"\xfd\x77\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", 0, 1),
            (*b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", 0, 1),
            (*b"\0\0\0\0\0\0\0\0\0\0\xff\xff\0\0\0\0", 1, 0),
            ([0; 16], 0, 0),
        ]);
        b.ok(&Cmd::new(0x09, 15).with(16, &kinds[97].0));
        for (n, (gid, v4, v6)) in kinds.into_iter().enumerate() {
            let entry = [5, 0, 14][n % 3];
            b.ok(&Cmd::new(0x09, entry).with(16, &gid));
            let at = gids + 128 * entry;
            let (low, high) = (u128::from(bits(&b, at, 64)), u128::from(bits(&b, at + 64, 64)));
            assert_eq!((high << 64 | low).to_le_bytes(), gid);
            assert_eq!(bits(&b, v4s, 16), v4 << entry, "{gid:02x?}");
            assert_eq!(bits(&b, v6s, 16), v6 << entry | 1 << 15, "{gid:02x?}");
            b.ok(&Cmd::new(0x09, entry));
            let kinds = (bits(&b, v4s, 16), bits(&b, v6s, 16));
            assert_eq!(kinds, (0, 1 << 15), "an all-zero GID clears the entry");
        }
        b.ok(&Cmd::new(0x0a, 7).with(8, &[0x34, 0x92]));
        assert_eq!(bits(&b, pkeys + 7 * 16, 16), 0x9234);
        b.ok(&Cmd::new(0x0a, 0));
        assert_eq!(bits(&b, pkeys, 16), 0, "0 clears the entry");
    }
}

#[test]
fn built_without_ipv6_the_port_takes_no_such_gid() {
    for (ipv6, taken) in [(0, false), (1, true)] {
        let mut dut = BlockModel::builder("rnic_port_cfg")
            .param("Ipv6", ipv6)
            .build()
            .unwrap_or_else(|e| panic!("{e}"));
        for input in ["port_up_i", "set_port_i", "set_gid_i", "set_pkey_i"] {
            dut.set(input, 0);
        }
        dut.reset(3);
        for (byte_0, byte_10, ok) in [(0, 0, true), (0, 0xffff, true), (0xfe, 0, taken), (0xfe, 0xffff, taken)] {
            dut.set_bits("gid_i", 0, 8, byte_0);
            dut.set_bits("gid_i", 80, 16, byte_10);
            dut.clock();
            assert_eq!(dut.sampled("gid_ok_o") == 1, ok, "{byte_0:#x} {byte_10:#x}");
        }
    }
}

#[test]
fn query_device_writes_the_capabilities() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.manners.stall = 0.3;
        b.out.clear();
        b.ok(&Cmd::new(0x01, 0).with(56, &OUT.to_le_bytes()));
        // log_qp, CQs, MRs, PDs, EQs, doorbell pages, data width, clock period, tags, SGEs, inline bytes, types, types with a
        // data path, rd_atomic, ports, GIDs, P_Keys, WQE opcodes, strides, SRQs, XRC domains, features (IPv6), memory on the board (none).
        let expected: [u32; 24] = [
            8, NUM_CQ, NUM_MR, 256, 4, 32, width, 8000, 64, 16, 992, 0x77e, 0x4, 16, 1, 16, 8, 0x3ff, 4, 4, 8, 16, 1, 0,
        ];
        let mut bytes: Vec<u8> = expected.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.resize(128, 0);
        assert_eq!(b.writes(0)[0], (OUT, bytes), "and before the completion");
        assert_eq!(b.bytes(OUT + 128, 64), [POISON; 64]);
    }
}

#[test]
fn built_without_ipv6_and_srqs_the_capabilities_say_so() {
    let mut b = CtrlBench::smallest(64, seed());
    b.ok(&Cmd::new(0x01, 0).with(56, &OUT.to_le_bytes()));
    assert_eq!(b.bytes(OUT + 80, 12), [0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0]);
    // As it does: such a GID is refused.
    let mut gid = [0; 16];
    gid[0] = 0xfd;
    b.refused(&Cmd::new(0x09, 0).with(16, &gid), 10, 16);
    b.refused(&Cmd::new(0x30, 0), 10, 0);
    for of_one in [0x31, 0x32, 0x33] {
        b.refused(&Cmd::new(of_one, 0), 3, 4);
    }
}

#[test]
fn query_counters_writes_all_of_them_in_order() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.manners.stall = 0.3;
        b.out.clear();
        b.ok(&Cmd::new(0x02, 0).with(56, &OUT.to_le_bytes()));
        let bytes: Vec<u8> = (0..68).flat_map(|i| counter_value(i).to_le_bytes()).collect();
        assert_eq!(b.writes(0)[0], (OUT, bytes));
        assert_eq!(b.bytes(OUT + 68 * 8, 64), [POISON; 64]);
    }
}

#[test]
fn qp_commands_reach_the_qp_engine_as_they_are_and_its_answer_the_host() {
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "qp", 0);
        let mut b = CtrlBench::new(width, seed);
        b.manners.stall = 0.2;
        for round in 0..60 {
            let op = OPCODES[14 + round % 6];
            let mask = readable(op);
            let mut cmd = Cmd::new(op, 0);
            for (byte, mask) in cmd.0.iter_mut().zip(mask).skip(4) {
                *byte = rng.bits() as u8 & mask;
            }
            let a = QpAnswer {
                status: rng.bits() as u8,
                rule: rng.bits() as u8,
                handle: rng.bits() as u32,
                count: rng.bits() as u32,
                offender: rng.bits() as u32,
                detail: rng.bits() as u32,
                offender_index: rng.bits() as u32,
                refs: None,
            };
            b.qp_answers.push_back(a);
            let c = b.exec(&cmd);
            let seen = b.qp_cmds.pop().unwrap();
            assert_eq!(
                (seen[..2].to_vec(), seen[4..].to_vec()),
                (cmd.0[..2].to_vec(), cmd.0[4..].to_vec())
            );
            assert_eq!(
                (
                    c.status,
                    c.rule,
                    c.handle,
                    c.count,
                    c.offender,
                    c.detail,
                    c.offender_index
                ),
                (
                    a.status,
                    a.rule,
                    a.handle,
                    a.count,
                    a.offender,
                    a.detail,
                    a.offender_index
                )
            );
        }
    }
}

#[test]
fn exec_cycles_tell_how_long_a_command_took() {
    let mut b = CtrlBench::new(64, seed());
    for cycles in [5, 100, 1000] {
        b.manners.qp = Some(cycles);
        let took = u64::from(b.exec(&Cmd::new(0x40, 0)).exec_cycles);
        assert!((cycles..cycles + 8).contains(&took), "{took} cycles");
    }
}

// ---------------------------------------------------------------- references and numbers

/// A QP command after whose answer n QPs use (or no longer use) these objects.
fn refer(b: &mut CtrlBench, r: Ref) {
    b.qp_answers.push_back(QpAnswer {
        refs: Some(r),
        ..QpAnswer::default()
    });
    b.ok(&Cmd::new(0x40, 0));
}

#[test]
fn what_is_referenced_cannot_be_destroyed() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.make_eq(0, 4);
        let pd = b.ok(&Cmd::create_pd());
        let [s, r, x] = [0; 3].map(|_| b.ok(&Cmd::create_cq(4, 0, 0, BASE)));
        b.refused(&Cmd::destroy_eq(0), IN_USE, 0);
        let key = b.ok(&Cmd::create_mr(&mr(pd)));
        b.refused(&Cmd::destroy_pd(pd), IN_USE, 0);
        b.ok(&Cmd::destroy_mr(key));

        let used = Ref {
            inc: true,
            n: 70_000,
            pd: pd as u16,
            send_cq: s as u16,
            recv_cq: r as u16,
            srq: 0xffff,
            in_xrcd: false,
        };
        refer(&mut b, used);
        // A QP type without CQs counts on its PD alone.
        refer(
            &mut b,
            Ref {
                n: 2,
                send_cq: 0xffff,
                recv_cq: 0xffff,
                ..used
            },
        );
        for cmd in [Cmd::destroy_pd(pd), Cmd::destroy_cq(s), Cmd::destroy_cq(r)] {
            b.refused(&cmd, IN_USE, 0);
        }
        b.ok(&Cmd::destroy_cq(x));
        refer(
            &mut b,
            Ref {
                inc: false,
                n: 69_999,
                ..used
            },
        );
        for cmd in [Cmd::destroy_pd(pd), Cmd::destroy_cq(s), Cmd::destroy_cq(r)] {
            b.refused(&cmd, IN_USE, 0);
        }
        // One CQ may serve both sides.
        refer(
            &mut b,
            Ref {
                inc: true,
                n: 1,
                recv_cq: s as u16,
                ..used
            },
        );
        refer(
            &mut b,
            Ref {
                inc: false,
                n: 1,
                ..used
            },
        );
        b.refused(&Cmd::destroy_cq(s), IN_USE, 0);
        b.ok(&Cmd::destroy_cq(r));
        refer(
            &mut b,
            Ref {
                inc: false,
                n: 1,
                recv_cq: s as u16,
                ..used
            },
        );
        b.refused(&Cmd::destroy_pd(pd), IN_USE, 0);
        refer(
            &mut b,
            Ref {
                inc: false,
                n: 2,
                send_cq: 0xffff,
                recv_cq: 0xffff,
                ..used
            },
        );
        b.ok(&Cmd::destroy_cq(s));
        b.ok(&Cmd::destroy_pd(pd));
        b.ok(&Cmd::destroy_eq(0));
        b.refused(&Cmd::destroy_pd(pd), BAD_HANDLE, 4);
    }
}

#[test]
fn no_reference_survives_a_reset() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.make_eq(0, 4);
        let objects = |b: &mut CtrlBench| (b.ok(&Cmd::create_pd()), b.ok(&Cmd::create_cq(4, 0, 0, BASE)));
        let (pd, cq) = objects(&mut b);
        refer(
            &mut b,
            Ref {
                inc: true,
                n: 3,
                pd: pd as u16,
                send_cq: cq as u16,
                recv_cq: cq as u16,
                srq: 0xffff,
                in_xrcd: false,
            },
        );
        b.refused(&Cmd::destroy_pd(pd), IN_USE, 0);
        b.dut.reset(2);
        b.until("tables to be clear", 2000, |b| b.dut.get("ready_o") == 1);
        b.start_ring(4);
        b.make_eq(0, 4);
        assert_eq!(objects(&mut b), (pd, cq));
        for cmd in [Cmd::destroy_cq(cq), Cmd::destroy_pd(pd)] {
            b.ok(&cmd);
        }
    }
}

#[test]
fn tables_can_be_filled_and_numbers_come_back_as_late_as_possible() {
    let mut b = CtrlBench::new(512, seed());
    b.start_ring(8);
    b.make_eq(0, 4);
    let pds = b.batch(&vec![Cmd::create_pd(); NUM_PD as usize + 1]);
    let handles: Vec<u32> = pds[..256].iter().map(|c| c.handle).collect();
    assert_eq!(handles, (0..256).collect::<Vec<_>>());
    assert_eq!(pds[256].status, NO_RESOURCES);
    let cqs = b.batch(&vec![Cmd::create_cq(1, 0, 0, BASE); NUM_CQ as usize + 1]);
    assert_eq!(cqs.last().unwrap().status, NO_RESOURCES);
    let mrs = b.batch(&vec![Cmd::create_mr(&mr(3)); NUM_MR as usize]);
    assert_eq!(mrs.last().unwrap().status, NO_RESOURCES);
    assert_eq!(mrs[0].handle, 0x15a, "index 0 is never used");
    for pd in [100, 7, 9] {
        b.ok(&Cmd::destroy_pd(pd));
    }
    assert_eq!([0; 3].map(|_| b.ok(&Cmd::create_pd())), [100, 7, 9]);
    b.refused(&Cmd::create_pd(), NO_RESOURCES, 0);
    b.ok(&Cmd::destroy_mr(0x55a));
    assert_eq!(b.ok(&Cmd::create_mr(&Mr { key: 0x5b, ..mr(3) })), 0x55b);
    b.refused(&Cmd::destroy_mr(0x55a), BAD_HANDLE, 4);
    b.ok(&Cmd::destroy_cq(5));
    assert_eq!(b.ok(&Cmd::create_cq(1, 0, 0, BASE)), 5);
}

#[test]
fn random_commands_get_what_the_model_says() {
    let seed = seed();
    for width in WIDTHS {
        let mut rng = Stream::new(seed, "commands", 0);
        let mut b = CtrlBench::new(width, seed);
        let mut model = Objects::default();
        let mut live: Vec<Ref> = Vec::new();
        b.manners.stall = 0.1;
        let mut seen = [0; 16];
        for _ in 0..2500 {
            let [pds, cqs, keys, eqs] = model.handles();
            let [srqs, xrcds] = model.shared();
            let pick = |rng: &mut Stream, from: &[u32], other: u64| match from.len() as u64 {
                n if n > 0 && rng.chance(0.85) => from[rng.below(n) as usize],
                _ => rng.below(other) as u32,
            };
            let mut refs = None;
            let mut cmd = match rng.below(18) {
                12 | 13 => Cmd::create_srq(
                    pick(&mut rng, &pds, 300),
                    rng.below(34) as u8,
                    rng.below(16) as u8,
                    rng.below(6) as u8,
                    BASE + 32 * rng.below(9),
                ),
                14 => Cmd::destroy_srq(pick(&mut rng, &srqs, 10)),
                15 if rng.chance(0.5) => Cmd::modify_srq(pick(&mut rng, &srqs, 10), rng.bits() as u16),
                15 => Cmd::query_srq(pick(&mut rng, &srqs, 10)),
                16 => Cmd::create_xrcd(),
                17 => Cmd::destroy_xrcd(pick(&mut rng, &xrcds, 20)),
                0 => Cmd::create_pd(),
                1 => Cmd::destroy_pd(pick(&mut rng, &pds, 300)),
                2 | 3 => Cmd::create_mr(&Mr {
                    kind: if rng.chance(0.9) {
                        rng.below(2) as u8
                    } else {
                        rng.bits() as u8
                    },
                    pd: pick(&mut rng, &pds, 300) as u16,
                    access: if rng.chance(0.9) {
                        [1, 3, 5, 15, 4][rng.below(5) as usize]
                    } else {
                        rng.bits() as u8
                    },
                    key: rng.bits() as u8,
                    va: if rng.chance(0.2) {
                        u64::MAX - rng.below(200)
                    } else {
                        rng.bits() >> 1
                    },
                    length: 1 << rng.below(49),
                    host_addr: rng.bits() >> 2,
                    log_page: 0,
                    page_offset: 0,
                }),
                4 if rng.chance(0.5) => Cmd::rereg_mr(
                    pick(&mut rng, &keys, 1 << 14),
                    &Mr {
                        kind: 0,
                        pd: pick(&mut rng, &pds, 300) as u16,
                        access: [1, 3, 5, 15, 31, 4, 2, 40][rng.below(8) as usize],
                        key: rng.bits() as u8,
                        va: if rng.chance(0.1) {
                            u64::MAX - rng.below(200)
                        } else {
                            rng.bits() >> 1
                        },
                        length: rng.bits() >> rng.below(64),
                        host_addr: (rng.bits() >> 2) & if rng.chance(0.8) { !63 } else { !0 },
                        log_page: [0, 12, 21, 30, 11, 31][rng.below(6) as usize],
                        page_offset: rng.below(3) as u32 * 0x800,
                    },
                    rng.below(8) as u8,
                ),
                4 => Cmd::destroy_mr(pick(&mut rng, &keys, 1 << 14)),
                5 | 6 => {
                    let eq = pick(&mut rng, &eqs, 6) as u8;
                    Cmd::create_cq(
                        1 + rng.below(17) as u8,
                        eq,
                        rng.below(34) as u8,
                        BASE + 64 * rng.below(9),
                    )
                }
                7 => match rng.below(3) {
                    0 => Cmd::destroy_cq(pick(&mut rng, &cqs, 20)),
                    1 => Cmd::modify_cq(pick(&mut rng, &cqs, 20), rng.bits() as u16, rng.below(4200) as u16),
                    _ => Cmd::resize_cq(
                        pick(&mut rng, &cqs, 20),
                        rng.below(18) as u8,
                        (rng.bits() >> 2) & if rng.chance(0.9) { !63 } else { !0 },
                    ),
                },
                8 => Cmd::create_eq(rng.below(5) as u32, rng.below(18) as u8, BASE),
                9 => Cmd::destroy_eq(pick(&mut rng, &eqs, 5)),
                10 if !pds.is_empty() => {
                    let r = Ref {
                        inc: true,
                        n: 1 + rng.below(100) as u32,
                        pd: pds[rng.below(pds.len() as u64) as usize] as u16,
                        send_cq: cqs.get(rng.below(10) as usize).map_or(0xffff, |c| *c as u16),
                        recv_cq: cqs.get(rng.below(10) as usize).map_or(0xffff, |c| *c as u16),
                        srq: srqs.get(rng.below(10) as usize).map_or(0xffff, |c| *c as u16),
                        in_xrcd: false,
                    };
                    live.push(r);
                    refs = Some(r);
                    Cmd::new(0x40, 0)
                }
                _ if !live.is_empty() => {
                    let r = live.swap_remove(rng.below(live.len() as u64) as usize);
                    refs = Some(Ref { inc: false, ..r });
                    Cmd::new(0x43, 0)
                }
                _ => Cmd::new(rng.bits() as u8, 0),
            };
            if refs.is_none() && rng.chance(0.02) {
                cmd.0[0] = rng.bits() as u8;
            }
            if refs.is_none() && rng.chance(0.05) {
                cmd.0[rng.below(64) as usize] ^= 1 << rng.below(8);
                cmd.0[2..4].fill(0);
            }
            let is_qp = cmd.0[0] & 0xf8 == 0x40;
            let (status, handle, detail) = model.judge(&cmd);
            if let Some(r) = refs {
                model.refer(&r);
                b.qp_answers.push_back(QpAnswer {
                    refs,
                    ..QpAnswer::default()
                });
            }
            let handle = if is_qp { 0 } else { handle };
            let out = cmd.0[56..64].to_vec();
            if [1, 2].contains(&cmd.0[0]) && out != [0; 8] {
                continue; // (the bench's memory is not everywhere)
            }
            if [1, 2].contains(&cmd.0[0]) {
                cmd = cmd.with(56, &OUT.to_le_bytes());
            }
            let c = b.exec(&cmd);
            assert_eq!((c.status, c.handle, c.detail), (status, handle, detail), "{cmd:02x?}");
            seen[usize::from(status)] += 1;
            let valid = |port: &str, n: u32| (0..n).filter(|i| b.dut.get_bits(port, *i, 1) == 1).collect::<Vec<_>>();
            let [pds, cqs, ..] = model.handles();
            assert_eq!(valid("pd_valid_o", 256), pds);
            assert_eq!(valid("cq_valid_o", NUM_CQ), cqs);
        }
        for s in [
            OK,
            BAD_OPCODE,
            RESERVED_SET,
            BAD_HANDLE,
            BAD_PARAM,
            NO_RESOURCES,
            IN_USE,
        ] {
            assert!(seen[usize::from(s)] > 3, "status {s}: {seen:?}");
        }
    }
}

// ---------------------------------------------------------------- barriers, fatal states

#[test]
fn destroying_a_region_or_a_cq_waits_for_a_barrier_of_its_own() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.make_eq(0, 4);
        b.ok(&Cmd::create_pd());
        for stale_ack in [0, 1, 30] {
            b.manners.drain = Some(100);
            b.manners.stale_ack = stale_ack;
            let keys = [0; 2].map(|_| b.ok(&Cmd::create_mr(&mr(0))));
            let cqs = [0; 2].map(|_| b.ok(&Cmd::create_cq(4, 0, 0, BASE)));
            let before = b.barriers;
            // Nothing else between them: the answer to the first must not be taken for that to the second.
            let done = b.batch(&[
                Cmd::destroy_mr(keys[0]),
                Cmd::destroy_mr(keys[1]),
                Cmd::destroy_cq(cqs[0]),
                Cmd::destroy_cq(cqs[1]),
            ]);
            for c in done {
                assert_eq!(c.status, OK);
                assert!(c.exec_cycles > 100);
            }
            assert_eq!(b.barriers - before, 4);
        }
    }
}

#[test]
fn a_barrier_that_is_not_answered_ends_with_fatal() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.make_eq(0, 4);
        b.ok(&Cmd::create_pd());
        let key = b.ok(&Cmd::create_mr(&mr(0)));
        b.manners.drain = None;
        b.out.clear();
        let c = b.exec(&Cmd::destroy_mr(key));
        assert_eq!(c.status, FATAL);
        assert!((1 << DRAIN_LOG..(1 << DRAIN_LOG) + 8).contains(&c.exec_cycles));
        assert_eq!((b.dut.get("fatal_o"), b.dut.get("fatal_reason_o")), (1, DRAIN_TIMEOUT));
        b.run(20);
        assert_eq!(b.dut.get("drain_req_o"), 0, "nobody waits for it any more");
        assert_eq!(b.events_written(), [(DEVICE_FATAL, DRAIN_TIMEOUT as u32)]);
        assert_eq!(b.exec(&Cmd::create_pd()).status, FATAL);
    }
}

#[test]
fn a_qp_engine_that_does_not_answer_ends_with_fatal() {
    let mut b = CtrlBench::new(64, seed());
    b.manners.qp = None;
    let c = b.exec(&Cmd::new(0x40, 0));
    assert_eq!(c.status, FATAL);
    assert!((4 << DRAIN_LOG..(4 << DRAIN_LOG) + 8).contains(&c.exec_cycles));
    assert_eq!(b.dut.get("fatal_reason_o"), DRAIN_TIMEOUT);
    assert_eq!(b.exec(&Cmd::new(0x40, 0)).status, FATAL);
    assert_eq!(b.qp_cmds.len(), 1, "it is not asked again");
}

#[test]
fn a_fatal_device_completes_every_command_with_fatal_and_says_so_once() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        b.make_eq(0, 4);
        b.ok(&Cmd::create_pd());
        let key = b.ok(&Cmd::create_mr(&mr(0)));
        b.out.clear();
        b.dut.set("force_fatal_i", 1);
        b.step();
        b.dut.set("force_fatal_i", 0);
        b.run(30);
        assert_eq!((b.dut.get("fatal_o"), b.dut.get("fatal_reason_o")), (1, HOST_REQUEST));
        assert_eq!(b.events_written(), [(DEVICE_FATAL, HOST_REQUEST as u32)]);
        let before = objects(&b);
        for op in OPCODES.into_iter().chain([0xee]) {
            assert_eq!(b.exec(&Cmd::new(op, 0)).status, FATAL);
        }
        for cmd in [Cmd::destroy_mr(key), Cmd::create_pd(), Cmd::set_port([2; 6], 1, true)] {
            b.refused(&cmd, FATAL, 0);
        }
        assert_eq!(objects(&b), before);
        // The first reason stays.
        b.fail_read = Some((0, 1));
        b.put(&Cmd::create_pd());
        b.doorbell(b.produced);
        b.run(50);
        assert_eq!(b.dut.get("fatal_reason_o"), HOST_REQUEST);
        assert_eq!(b.events_written().len(), 1);
        assert_eq!(b.bytes(EQ0, 1), [DEVICE_FATAL]);
    }
}

#[test]
fn a_command_that_waits_when_the_device_becomes_fatal_still_completes() {
    let mut b = CtrlBench::new(64, seed());
    b.ok(&Cmd::create_pd());
    let key = b.ok(&Cmd::create_mr(&mr(0)));
    b.manners.drain = None;
    b.put(&Cmd::destroy_mr(key));
    b.doorbell(b.produced);
    b.run(100);
    b.dut.set("force_fatal_i", 1);
    b.step();
    b.dut.set("force_fatal_i", 0);
    assert_eq!(b.completion().status, FATAL);
    assert_eq!(b.dut.get("fatal_reason_o"), HOST_REQUEST);
}

// ---------------------------------------------------------------- speed

#[test]
fn commands_one_at_a_time_keep_their_budget() {
    for (width, budget) in [(64, 32), (512, 16)] {
        let mut b = CtrlBench::new(width, seed());
        b.start_ring(10);
        b.manners.qp = Some(6);
        for _ in 0..1024 {
            b.put(&Cmd::new(0x40, 0));
        }
        b.doorbell(b.produced);
        let start = b.now();
        b.until("all completions", 40_000, |b| b.dut.get("cmd_consumer_o") == 1024);
        let each = (b.now() - start) as f64 / 1024.0;
        println!("{width} bits: {each:.2} cycles per command with a QP engine of 6 cycles");
        assert!(each <= f64::from(budget));
    }
}
