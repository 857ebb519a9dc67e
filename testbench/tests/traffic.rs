// SPDX-License-Identifier: Apache-2.0
//! RC traffic between two whole NICs: SEND, RDMA WRITE with and without immediate, RDMA READ, at both widths, every
//! byte checked, with hosts that answer late, split and out of order.
#![allow(clippy::unwrap_used)]

use openrnic_driver::spec::{Mtu, WcOpcode, WcStatus, WqeOpcode};
use openrnic_driver::{RecvWr, SendWr};
use openrnic_testbench::e2e::{all_access, each_width};

const BUDGET: u64 = 400_000;

fn pattern(seed: u64) -> impl Fn(usize) -> u8 {
    move |i| ((i as u64).wrapping_mul(2_654_435_761).wrapping_add(seed) >> 7) as u8
}

#[test]
fn a_send_of_one_packet_arrives() {
    each_width(|pair, _| {
        let [a, b] = pair.connected(Mtu::Mtu1024, [0xff_fffe, 7]).unwrap();
        let src = pair.ends[0].region(4096, all_access(), pattern(1)).unwrap();
        let dst = pair.ends[1].region(4096, all_access(), |_| 0xee).unwrap();
        b.post_recv(&[RecvWr {
            wr_id: 11,
            sges: vec![dst.sge(64, 1024)],
        }])
        .unwrap();
        a.post_send(&[SendWr::new(21, WqeOpcode::Send, vec![src.sge(3, 600)])])
            .unwrap();
        let sent = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
        let got = pair.ends[1].recv_cq.wait(1, BUDGET).unwrap();
        assert_eq!((sent[0].wr_id, sent[0].status), (21, WcStatus::Success));
        assert_eq!(
            (got[0].wr_id, got[0].status, got[0].byte_len, got[0].opcode),
            (11, WcStatus::Success, 600, WcOpcode::Recv)
        );
        let mem = dst.read(0, 4096).unwrap();
        let want = pattern(1);
        for (i, byte) in mem.iter().enumerate() {
            let expected = if (64..664).contains(&i) { want(i - 64 + 3) } else { 0xee };
            assert_eq!(*byte, expected, "byte {i}");
        }
    });
}

#[test]
fn messages_of_every_size_and_kind_arrive_whole() {
    each_width(|pair, seed| {
        for mtu in [Mtu::Mtu256, Mtu::Mtu1024, Mtu::Mtu4096] {
            let [a, b] = pair.connected(mtu, [0xff_fff0, 0x10]).unwrap();
            let span = 20_000;
            let src = pair.ends[0].region(span, all_access(), pattern(seed)).unwrap();
            for (n, len) in [0u32, 1, 3, 4, 63, 64, 65, 255, 256, 257, 1024, 1025, 4096, 4097, 9000]
                .into_iter()
                .enumerate()
            {
                let at = 17 + n * 5;
                let from = 5 + n * 3;
                for kind in [
                    WqeOpcode::Send,
                    WqeOpcode::SendWithImm,
                    WqeOpcode::RdmaWrite,
                    WqeOpcode::RdmaWriteWithImm,
                    WqeOpcode::RdmaRead,
                ] {
                    let what = format!("{kind:?} of {len} bytes, {mtu:?}");
                    let dst = pair.ends[1].region(span, all_access(), |_| 0x5a).unwrap();
                    let back = pair.ends[0].region(span, all_access(), |_| 0x5a).unwrap();
                    let recv = matches!(
                        kind,
                        WqeOpcode::Send | WqeOpcode::SendWithImm | WqeOpcode::RdmaWriteWithImm
                    );
                    if recv {
                        // The buffer in two pieces, the first an odd one.
                        let first = (len / 3).max(1);
                        let rest = (len - first.min(len)).max(1);
                        b.post_recv(&[RecvWr {
                            wr_id: 5,
                            sges: vec![dst.sge(at, first), dst.sge(at + first as usize, rest)],
                        }])
                        .unwrap();
                    }
                    let mut wr = SendWr::new(9, kind, if len == 0 { vec![] } else { vec![src.sge(from, len)] });
                    wr.imm = 0x0102_0304;
                    wr.rkey = dst.rkey();
                    wr.remote_addr = dst.sge(at, 1).addr;
                    if kind == WqeOpcode::RdmaRead {
                        dst.write(0, &(0..span).map(pattern(seed + 1)).collect::<Vec<_>>())
                            .unwrap();
                        wr.sges = if len == 0 { vec![] } else { vec![back.sge(at, len)] };
                    }
                    a.post_send(&[wr]).unwrap();
                    let done = pair.ends[0]
                        .send_cq
                        .wait(1, BUDGET)
                        .unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert_eq!(done[0].status, WcStatus::Success, "{what}");
                    if recv {
                        let got = pair.ends[1]
                            .recv_cq
                            .wait(1, BUDGET)
                            .unwrap_or_else(|e| panic!("{what}: {e}"));
                        assert_eq!((got[0].status, got[0].byte_len), (WcStatus::Success, len), "{what}");
                        if kind != WqeOpcode::Send {
                            assert_eq!(got[0].imm, Some(0x0102_0304), "{what}");
                        }
                    }
                    let (mem, want): (_, Box<dyn Fn(usize) -> u8>) = if kind == WqeOpcode::RdmaRead {
                        let p = pattern(seed + 1);
                        (back.read(0, span).unwrap(), Box::new(move |i| p(i + at)))
                    } else {
                        let p = pattern(seed);
                        (dst.read(0, span).unwrap(), Box::new(move |i| p(i + from)))
                    };
                    for (i, byte) in mem.iter().enumerate() {
                        let expected = if (at..at + len as usize).contains(&i) {
                            want(i - at)
                        } else {
                            0x5a
                        };
                        assert_eq!(*byte, expected, "{what}: byte {i}");
                    }
                    dst.deregister().unwrap();
                    back.deregister().unwrap();
                }
            }
            src.deregister().unwrap();
            a.destroy().unwrap();
            b.destroy().unwrap();
        }
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}
