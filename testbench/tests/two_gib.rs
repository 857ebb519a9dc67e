// SPDX-License-Identifier: Apache-2.0
//! The longest message, 2^31 bytes, at any place of it: the packet that the requester makes (`rnic_send_plan`) and what the responder says to it
//! (`rnic_resp_check`), against arithmetic in 64 bits. That such a message begins as it should, stands alone, and that one byte more is
//! refused, is tested on the whole requester; this is what lies between and at its end, which nobody can wait for in a simulation.
#![allow(clippy::unwrap_used)]

use openrnic_sim::model::BlockModel;
use openrnic_sim::rng::Stream;

const LONGEST: u64 = 1 << 31;
const WRITE: u64 = 0;
const SEND: u64 = 2;
const READ: u64 = 4;
const VA: u64 = 0xffff_ffff_7fff_fff0;

struct Top(BlockModel);

impl Top {
    fn new() -> Self {
        let mut builder = BlockModel::builder("msg_top").source("testbench/tops/msg_top.sv");
        if let Ok(cut) = std::env::var("OPENRNIC_CUT") {
            builder = builder.define(&cut);
        }
        Self(builder.build().unwrap())
    }

    fn get(&self, name: &str) -> u64 {
        self.0.get(name)
    }

    /// Looks at the packet at `off` of a message of `len` bytes.
    fn look(&mut self, opcode: u64, log_mtu: u32, len: u64, off: u64) {
        for (port, value) in [
            ("opcode_i", opcode),
            ("mtu_i", u64::from(log_mtu - 7)),
            ("len_i", len),
            ("off_i", off),
            ("npsn_i", (len - off).div_ceil(1 << log_mtu).max(1)),
            ("claim_i", len),
        ] {
            self.0.set(port, value);
        }
        self.0.eval();
    }

    /// The packet at `off` is the right one, and the responder takes it.
    fn right(&mut self, opcode: u64, log_mtu: u32, len: u64, off: u64) {
        self.look(opcode, log_mtu, len, off);
        let what = format!("opcode {opcode}, MTU 2^{log_mtu}, byte {off:#x} of {len:#x}");
        let mtu = 1u64 << log_mtu;
        let left = len - off;
        assert_eq!((self.get("exec_o"), self.get("nak_o")), (1, 0), "{what}");
        if opcode == READ {
            let psns = left.div_ceil(mtu).max(1) & 0xff_ffff;
            assert_eq!(
                (self.get("pkt_opcode_o"), self.get("pkt_len_o"), self.get("ends_o")),
                (0x0c, 0, 1),
                "{what}"
            );
            assert_eq!((self.get("psns_o"), self.get("resp_psns_o")), (psns, psns), "{what}");
            assert_eq!(self.get("pkt_dma_len_o"), left, "{what}");
            assert_eq!(self.get("pkt_va_o"), VA.wrapping_add(off), "{what}");
            return;
        }
        // FIRST 0, MIDDLE 1, LAST 2, ONLY 4; of a WRITE 6, 7, 8 and 10.
        let base = if opcode == SEND { 0 } else { 6 };
        let place = match (off == 0, left <= mtu) {
            (true, true) => 4,
            (true, false) => 0,
            (false, true) => 2,
            (false, false) => 1,
        };
        let end = left <= mtu;
        assert_eq!(self.get("pkt_opcode_o"), base + place, "{what}");
        assert_eq!(self.get("pkt_len_o"), left.min(mtu), "{what}");
        assert_eq!(
            (self.get("ends_o"), self.get("next_off_o")),
            (u64::from(end), if end { 0 } else { off + mtu }),
            "{what}"
        );
        assert_eq!((self.get("psns_o"), self.get("resp_psns_o")), (1, 1), "{what}");
        if off == 0 {
            let psns = len.div_ceil(mtu).max(1);
            assert_eq!(self.get("last_psn_o"), (0x80_0000 + psns - 1) & 0xff_ffff, "{what}");
            assert_eq!(self.get("alone_o"), u64::from(psns > 65_536), "{what}");
            assert_eq!(self.get("pkt_dma_len_o"), len, "{what}");
        }
    }
}

#[test]
fn every_place_of_the_longest_message_is_cut_and_judged_rightly() {
    let mut top = Top::new();
    let mut rng = Stream::new(openrnic_testbench::seed(1), "two gib", 0);
    for log_mtu in 8..=12u32 {
        let mtu = 1u64 << log_mtu;
        for opcode in [SEND, WRITE, READ] {
            for len in [
                LONGEST,
                LONGEST - 1,
                LONGEST - mtu,
                LONGEST - mtu + 1,
                LONGEST / 2 + 1,
                65_536 * mtu,
                65_536 * mtu + 1,
            ] {
                let len = len.min(LONGEST);
                let last = (len - 1) / mtu;
                let packets = [0, 1, 2, last / 2, last - 2, last - 1, last];
                let random: Vec<u64> = (0..40).map(|_| rng.below(last + 1)).collect();
                for k in packets.into_iter().chain(random) {
                    // A READ is asked for again from any packet of its response on, with all of its PSNs.
                    top.right(opcode, log_mtu, len, k * mtu);
                }
            }
            top.right(opcode, log_mtu, 0, 0);
        }
    }
}

#[test]
fn the_responder_refuses_one_byte_more_at_the_first_packet_and_at_the_last() {
    let mut top = Top::new();
    for log_mtu in 8..=12u32 {
        let mtu = 1u64 << log_mtu;
        for opcode in [WRITE, READ] {
            for len in [LONGEST + 1, LONGEST + mtu, 0xffff_ffff] {
                top.look(opcode, log_mtu, len, 0);
                assert_eq!(
                    (top.get("exec_o"), top.get("nak_o")),
                    (0, 1),
                    "opcode {opcode}, {len:#x}"
                );
            }
        }
        // A SEND tells its length to nobody: it ends at 2^31 bytes, whatever still comes.
        for (off, good) in [(LONGEST - mtu, true), (LONGEST, false), (LONGEST + mtu, false)] {
            top.look(SEND, log_mtu, off + mtu, off);
            assert_eq!(
                (top.get("exec_o"), top.get("nak_o")),
                (u64::from(good), u64::from(!good)),
                "SEND at {off:#x}"
            );
        }
        // The last packet of a WRITE that brings one byte more or less than it said.
        for claim in [LONGEST - 1, LONGEST - mtu] {
            top.look(WRITE, log_mtu, LONGEST, LONGEST - mtu);
            top.0.set("claim_i", claim);
            top.0.eval();
            assert_eq!(
                (top.get("exec_o"), top.get("nak_o")),
                (0, 1),
                "{claim:#x} of {LONGEST:#x}"
            );
        }
    }
}
