// SPDX-License-Identifier: Apache-2.0
//! RC traffic over IPv6 between two whole NICs, at both widths: every operation, repair of a bad wire, IPv4 and IPv6 side by
//! side, what is not for us, and what the control plane says of addresses.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::cell::RefCell;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use openrnic_driver::spec::{Access, CounterId, Mtu, QpAttrBit, QpState, WcStatus, WqeOpcode};
use openrnic_driver::{AddressVector, Gid, MemoryRegion, QpAttr, QueuePair, RecvWr, SendWr, attr};
use openrnic_sim::NicBus;
use openrnic_sim::wire::{Direction as Way, FaultRates};
use openrnic_testbench::e2e::{OPERATIONS, Pair, all_access, each_width};
use openrnic_testbench::wire::{Ip, Roce};

type Qp = QueuePair<NicBus>;
type Mr = MemoryRegion<NicBus>;
/// What is sent, with the number of the end that sent it.
type Frames = Rc<RefCell<Vec<(usize, Roce)>>>;

const BUDGET: u64 = 4_000_000;
const SPAN: usize = 6000;
fn ipv6(test: impl Fn(&Pair)) {
    each_width(|mut pair, _| {
        pair.over_ipv6().unwrap();
        test(&pair);
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

fn listen(pair: &Pair) -> Frames {
    let frames = Frames::default();
    let log = Rc::clone(&frames);
    pair.world.borrow_mut().wire().observe(move |event| {
        if event.direction == Way::Out {
            log.borrow_mut().push((event.nic, Roce::parse(event.frame).unwrap()));
        }
    });
    frames
}

fn allow_all(qp: &Qp) {
    let attr = QpAttr {
        access_flags: Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC,
        ..QpAttr::default()
    };
    qp.modify(&attr, QpAttrBit::ACCESS_FLAGS).unwrap();
}

fn byte(tag: u64, i: usize) -> u8 {
    ((i as u64 + tag).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as u8
}

fn region(pair: &Pair, n: usize, tag: u64) -> Mr {
    let access = all_access() | Access::REMOTE_ATOMIC;
    pair.ends[n].region(SPAN, access, |i| byte(tag, i)).unwrap()
}

/// One message of a kind from end 0 to end 1, posted and completed; then every byte of both regions is looked at.
fn message(pair: &Pair, qps: &[Qp; 2], kind: WqeOpcode, len: usize, what: &str) {
    let what = format!("{kind:?} of {len} bytes, {what}");
    let (local, remote) = (region(pair, 0, 1), region(pair, 1, 2));
    let (at, from) = (24, 16);
    let takes_receive = !matches!(
        kind,
        WqeOpcode::RdmaWrite | WqeOpcode::RdmaRead | WqeOpcode::AtomicFetchAndAdd | WqeOpcode::AtomicCmpAndSwp
    );
    if takes_receive {
        let receive = RecvWr {
            wr_id: 5,
            sges: vec![remote.sge(at, 4500)],
        };
        qps[1].post_recv(&[receive]).unwrap();
    }
    let atomic = matches!(kind, WqeOpcode::AtomicFetchAndAdd | WqeOpcode::AtomicCmpAndSwp);
    let len = if atomic { 8 } else { len };
    let word = u64::from_le_bytes(std::array::from_fn(|i| byte(2, at + i)));
    let mut wr = SendWr::new(
        9,
        kind,
        if len == 0 {
            vec![]
        } else {
            vec![local.sge(from, len as u32)]
        },
    );
    wr.imm = 0x0102_0304;
    wr.rkey = remote.rkey();
    wr.remote_addr = remote.iova().offset(at as u64);
    // A comparison that fits, and what to add or to put there.
    wr.atomic = (word, 0x77);
    qps[0].post_send(&[wr]).unwrap();
    let done = pair.ends[0]
        .send_cq
        .wait(1, BUDGET)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(done[0].status, WcStatus::Success, "{what}");
    if takes_receive {
        let got = pair.ends[1]
            .recv_cq
            .wait(1, BUDGET)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(got[0].status, WcStatus::Success, "{what}");
        if kind != WqeOpcode::Send {
            assert_eq!(got[0].imm, Some(0x0102_0304), "{what}");
        }
    }
    let (mut here, mut there): (Vec<u8>, Vec<u8>) = (
        (0..SPAN).map(|i| byte(1, i)).collect(),
        (0..SPAN).map(|i| byte(2, i)).collect(),
    );
    match kind {
        WqeOpcode::RdmaRead => here[from..from + len].copy_from_slice(&there[at..at + len]),
        WqeOpcode::AtomicFetchAndAdd => {
            here[from..from + 8].copy_from_slice(&word.to_le_bytes());
            there[at..at + 8].copy_from_slice(&word.wrapping_add(0x77).to_le_bytes());
        }
        WqeOpcode::AtomicCmpAndSwp => {
            here[from..from + 8].copy_from_slice(&word.to_le_bytes());
            there[at..at + 8].copy_from_slice(&0x77_u64.to_le_bytes());
        }
        WqeOpcode::RdmaWriteWithImm | WqeOpcode::RdmaWrite | WqeOpcode::Send | WqeOpcode::SendWithImm => {
            there[at..at + len].copy_from_slice(&here[from..from + len]);
        }
        other => panic!("{other:?} is not sent here"),
    }
    assert!(local.read(0, SPAN).unwrap() == here, "{what}: the requester's memory");
    assert!(remote.read(0, SPAN).unwrap() == there, "{what}: the responder's memory");
    local.deregister().unwrap();
    remote.deregister().unwrap();
}

#[test]
fn every_operation_goes_over_ipv6_and_its_answers_come_back_over_it() {
    ipv6(|pair| {
        let frames = listen(pair);
        for mtu in [Mtu::Mtu256, Mtu::Mtu4096] {
            let qps = pair.connected(mtu, [0xff_fffa, 3]).unwrap();
            allow_all(&qps[1]);
            for kind in OPERATIONS {
                for len in [0, 1, 64, 257, 1029, 4200] {
                    message(pair, &qps, kind, len, &format!("{mtu:?}"));
                }
            }
        }
        let frames = frames.borrow();
        let addresses = [0, 1].map(|n: usize| Ipv6Addr::from(pair.ends[n].gid.0));
        for (n, roce) in frames.iter() {
            let Ip::V6(ip) = roce.ip else {
                panic!("end {n} sent {roce:?}")
            };
            assert_eq!((ip.src, ip.dst), (addresses[*n], addresses[1 - n]));
            assert_eq!((ip.next_header, ip.hop_limit, ip.flow_label), (17, 64, 0));
            assert_eq!((roce.udp.checksum, roce.udp.length), (0, ip.payload_len));
            assert!(roce.icrc_ok());
        }
        let sent = |n: usize| frames.iter().filter(|(from, _)| *from == n).count();
        assert!(sent(0) > 150 && sent(1) > 100, "{} {}", sent(0), sent(1));
        for end in &pair.ends {
            let counters = end.device.counters().unwrap();
            for id in [
                CounterId::RxDropNotRoce,
                CounterId::RxDropDip,
                CounterId::RxDropAddr,
                CounterId::RxDropIcrc,
            ] {
                assert_eq!(counters.get(id), 0, "{id:?}");
            }
            assert_eq!(counters.get(CounterId::Retransmissions), 0);
        }
    });
}

#[test]
fn on_a_bad_wire_everything_arrives_over_ipv6_and_atomics_are_done_once() {
    ipv6(|pair| {
        let rates = FaultRates {
            loss: 0.05,
            duplicate: 0.05,
            reorder: 0.03,
            reorder_ns: 3000,
            ..FaultRates::default()
        };
        for n in 0..2 {
            pair.world.borrow_mut().wire().set_faults(n, rates.clone()).unwrap();
        }
        let [a, b] = pair.install(1).unwrap().map(|batch| batch.qps().pop().unwrap());
        for (n, qp, peer) in [(0, &a, &b), (1, &b, &a)] {
            let (rtr, mut rts) = pair.connect_attrs(n, peer, Mtu::Mtu256, [0xff_fff0, 5]);
            qp.modify(&rtr, attr::RTR_MASK).unwrap();
            // 65 us, and no limit that a run of bad luck could meet.
            rts.timeout = 4;
            rts.retry_cnt = 7;
            qp.modify(&rts, attr::RTS_MASK).unwrap();
        }
        allow_all(&b);
        let qps = [a, b];
        for round in 0..4 {
            for kind in OPERATIONS {
                message(pair, &qps, kind, 900 + 300 * round, &format!("round {round}"));
            }
        }
        let stats = [0, 1].map(|n| pair.world.borrow_mut().wire().stats(n));
        assert!(stats.iter().all(|s| s.dropped > 0 && s.duplicated > 0), "{stats:?}");
        let counters = pair.ends[0].device.counters().unwrap();
        assert!(counters.get(CounterId::Retransmissions) > 0);
        assert!(pair.ends[1].device.counters().unwrap().get(CounterId::RxDuplicates) > 0);
    });
}

/// Connects two QPs in INIT, from these entries of the GID tables to these GIDs.
fn connect(pair: &Pair, qps: &[Qp; 2], index: u8, gids: [Gid; 2], flow_label: u32) {
    for n in 0..2 {
        let (mut rtr, rts) = pair.connect_attrs(n, &qps[1 - n], Mtu::Mtu1024, [9, 9]);
        rtr.av = AddressVector {
            dgid: gids[1 - n],
            sgid_index: index,
            flow_label,
            traffic_class: 0x2a,
            hop_limit: 3,
            ..rtr.av
        };
        qps[n].modify(&rtr, attr::RTR_MASK).unwrap();
        qps[n].modify(&rts, attr::RTS_MASK).unwrap();
        allow_all(&qps[n]);
        let told = qps[n].query().unwrap().attr.av;
        assert_eq!(
            (
                told.dgid,
                told.sgid_index,
                told.flow_label,
                told.traffic_class,
                told.hop_limit
            ),
            (gids[1 - n], index, flow_label, 0x2a, 3)
        );
    }
}

#[test]
fn queue_pairs_over_ipv4_and_over_ipv6_work_side_by_side() {
    each_width(|pair, _| {
        let v4 = [0, 1].map(|n: usize| pair.ends[n].gid);
        let v6 = [1u16, 2].map(|n| Gid(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0x0a00, n).octets()));
        for (end, gid) in pair.ends.iter().zip(v6) {
            end.device.set_gid(9, gid).unwrap();
        }
        let frames = listen(&pair);
        let mut batches = pair.install(2).unwrap().map(|batch| batch.qps());
        let mut next = || -> [Qp; 2] { [0, 1].map(|n: usize| batches[n].pop().unwrap()) };
        let (over_v4, over_v6) = (next(), next());
        connect(&pair, &over_v4, 0, v4, 0);
        connect(&pair, &over_v6, 9, v6, 0xa_bcde);
        for round in 0..3 {
            for kind in OPERATIONS {
                message(&pair, &over_v4, kind, 1500 + round, "IPv4");
                message(&pair, &over_v6, kind, 1500 + round, "IPv6");
            }
        }
        let mut seen = [0, 0];
        for (_, roce) in frames.borrow().iter() {
            match roce.ip {
                Ip::V4(ip) => {
                    assert_eq!((ip.tos, ip.ttl), (0x2a, 3));
                    seen[0] += 1;
                }
                Ip::V6(ip) => {
                    assert_eq!((ip.traffic_class, ip.hop_limit, ip.flow_label), (0x2a, 3, 0xa_bcde));
                    seen[1] += 1;
                }
            }
        }
        assert!(seen.iter().all(|n| *n > 50), "{seen:?}");
        assert_eq!(seen[0], seen[1], "as many frames for the same work");
    });
}

#[test]
fn what_comes_from_another_ipv6_address_or_goes_to_one_is_dropped_where_it_is_counted() {
    ipv6(|pair| {
        let frames = listen(pair);
        let qps = pair.connected(Mtu::Mtu1024, [50, 60]).unwrap();
        allow_all(&qps[1]);
        // A second address of the receiver, to which this QP does not listen.
        let second = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x99);
        pair.ends[1].device.set_gid(4, Gid(second.octets())).unwrap();
        message(pair, &qps, WqeOpcode::RdmaWrite, 100, "to have a frame");
        let write = frames.borrow().iter().find(|(n, _)| *n == 0).unwrap().1.clone();
        let before = pair.ends[1].device.counters().unwrap();
        let counted = |id| pair.ends[1].device.counters().unwrap().since(&before).get(id);
        let Ip::V6(ip) = write.ip else { panic!("{write:?}") };
        let mut forged = Vec::new();
        for bit in [0, 31, 32, 63, 64, 100, 127] {
            let flip = |a: Ipv6Addr| Ipv6Addr::from(u128::from(a) ^ 1 << bit);
            forged.push((CounterId::RxDropAddr, flip(ip.src), ip.dst));
            forged.push((CounterId::RxDropDip, ip.src, flip(ip.dst)));
        }
        forged.push((CounterId::RxDropAddr, ip.src, second));
        forged.push((
            CounterId::RxDropDip,
            ip.src,
            Ipv4Addr::new(10, 0, 0, 2).to_ipv6_mapped(),
        ));
        for (id, src, dst) in forged {
            let mut roce = write.clone();
            roce.ip = Ip::V6(openrnic_testbench::wire::Ipv6 { src, dst, ..ip });
            let was = counted(id);
            pair.world.borrow_mut().inject(1, &roce.seal().emit()).unwrap();
            pair.run(2000).unwrap();
            assert_eq!(counted(id), was + 1, "{src} to {dst}");
        }
        assert_eq!(
            (counted(CounterId::RxDuplicates), counted(CounterId::TxAcks)),
            (0, 0),
            "nothing was answered"
        );
        // As it was it is a duplicate.
        pair.world.borrow_mut().inject(1, &write.emit()).unwrap();
        pair.run(2000).unwrap();
        assert_eq!(counted(CounterId::RxDuplicates), 1);
    });
}

#[test]
fn a_path_from_an_address_of_the_other_version_is_refused_and_changes_nothing() {
    each_width(|pair, _| {
        let v6 = Gid(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1).octets());
        pair.ends[0].device.set_gid(3, v6).unwrap();
        let [a, b] = pair.install(1).unwrap().map(|batch| batch.qps().pop().unwrap());
        let (rtr, _) = pair.connect_attrs(0, &b, Mtu::Mtu1024, [9, 9]);
        for (index, dgid) in [(0, v6), (3, pair.ends[1].gid)] {
            let mixed = QpAttr {
                av: AddressVector {
                    dgid,
                    sgid_index: index,
                    ..rtr.av
                },
                ..rtr.clone()
            };
            let error = a.modify(&mixed, attr::RTR_MASK).unwrap_err().to_string();
            assert!(error.contains("AV"), "{error}");
            assert_eq!(a.query().unwrap().attr.qp_state, QpState::Init);
        }
        // The entry emptied: it may be filled later.
        pair.ends[0].device.set_gid(3, Gid::default()).unwrap();
        let later = QpAttr {
            av: AddressVector {
                sgid_index: 3,
                ..rtr.av
            },
            ..rtr
        };
        a.modify(&later, attr::RTR_MASK).unwrap();
    });
}
