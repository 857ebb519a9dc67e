// SPDX-License-Identifier: Apache-2.0
//! Sizes of a queue pair on a whole NIC: what was asked for is there, rounded up, and used to its last byte; what is beyond the
//! device is refused with the limit's name and nothing is made.
#![allow(clippy::unwrap_used)]

use openrnic_driver::spec::{Mtu, QpState, WcStatus};
use openrnic_driver::{
    BatchInit, Error, PostErrorKind, QpAttr, QpCap, QpFilter, QpInit, QueuePair, RecvWr, SendWr, attr,
};
use openrnic_sim::NicBus;
use openrnic_testbench::e2e::{Pair, PairParams, all_access};

const BUDGET: u64 = 400_000;
const FULL: QpCap = QpCap {
    max_send_wr: 8,
    max_recv_wr: 8,
    max_send_sge: 16,
    max_recv_sge: 16,
    max_inline_data: 512,
};

fn init(pair: &Pair, n: usize, cap: QpCap) -> QpInit {
    QpInit {
        cap,
        ..pair.ends[n].qp_init()
    }
}

/// One connected pair of QPs with these sizes.
fn connected(pair: &Pair, cap: QpCap) -> [QueuePair<NicBus>; 2] {
    let one = |n: usize| {
        let to_init = QpAttr {
            qp_state: QpState::Init,
            ..QpAttr::default()
        };
        let end = &pair.ends[n];
        let made = end
            .pd
            .install_qps(1, &init(pair, n, cap), &BatchInit::range(), &to_init, attr::INIT_MASK)
            .unwrap();
        made.qps().pop().unwrap()
    };
    let qps = [one(0), one(1)];
    pair.connect([&qps[0], &qps[1]], Mtu::Mtu1024, [7, 9]).unwrap();
    qps
}

#[test]
fn sixteen_elements_and_512_inline_bytes_are_sent() {
    for width in [64, 512] {
        let pair = Pair::new(PairParams::new(width, 1)).unwrap();
        let [a, b] = connected(&pair, FULL);
        let cap = a.cap().unwrap();
        assert!(
            cap.max_send_sge >= 16 && cap.max_recv_sge >= 16 && cap.max_inline_data >= 512,
            "{cap:?}"
        );
        let src = pair.ends[0]
            .region(8192, all_access(), |i| (i * 7 + i / 256) as u8)
            .unwrap();
        let dst = pair.ends[1].region(8192, all_access(), |_| 0xee).unwrap();
        // 512 bytes of the request itself into 16 pieces of odd lengths and places.
        let inline: Vec<u8> = (0..512).map(|i| (i * 31 + 5) as u8).collect();
        let lengths: Vec<u32> = (0..16u32).map(|i| 17 + 2 * i).collect();
        let places: Vec<usize> = (0..16).map(|i| 400 * i + i % 5).collect();
        assert_eq!(lengths.iter().sum::<u32>(), 512);
        let pieces = lengths
            .iter()
            .zip(&places)
            .map(|(len, at)| dst.sge(*at, *len))
            .collect();
        b.post_recv(&[RecvWr { wr_id: 1, sges: pieces }]).unwrap();
        a.post_send(&[SendWr::send(2, vec![]).with_inline(inline.clone())])
            .unwrap();
        let sent = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
        let got = pair.ends[1].recv_cq.wait(1, BUDGET).unwrap();
        assert_eq!((sent[0].status, got[0].status), (WcStatus::Success, WcStatus::Success));
        let mut want = vec![0xee; 8192];
        let mut from = 0;
        for (len, at) in lengths.iter().zip(&places) {
            want[*at..*at + *len as usize].copy_from_slice(&inline[from..from + *len as usize]);
            from += *len as usize;
        }
        assert_eq!(dst.read(0, 8192).unwrap(), want);
        // 16 pieces out of memory, written as one.
        let sges = lengths
            .iter()
            .zip(&places)
            .map(|(len, at)| src.sge(*at, *len))
            .collect();
        a.post_send(&[SendWr::write(3, sges, dst.iova(), dst.rkey())]).unwrap();
        let sent = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
        assert_eq!(sent[0].status, WcStatus::Success);
        let whole = src.read(0, 8192).unwrap();
        let gathered: Vec<u8> = lengths
            .iter()
            .zip(&places)
            .flat_map(|(len, at)| whole[*at..*at + *len as usize].to_vec())
            .collect();
        want[..512].copy_from_slice(&gathered);
        assert_eq!(dst.read(0, 8192).unwrap(), want);
    }
}

#[test]
fn inline_data_of_every_length_up_to_the_created_limit_arrives() {
    let pair = Pair::new(PairParams::new(64, 3)).unwrap();
    let [a, _b] = connected(&pair, FULL);
    let dst = pair.ends[1].region(1024, all_access(), |_| 0).unwrap();
    let most = a.cap().unwrap().max_inline_data as usize;
    for len in (0..64).chain([127, 128, 255, 480, 481, 511, 512, most - 1, most]) {
        dst.write(0, &[0x11; 1024]).unwrap();
        let data: Vec<u8> = (0..len).map(|i| (i ^ len) as u8).collect();
        a.post_send(&[SendWr::write(1, vec![], dst.iova(), dst.rkey()).with_inline(data.clone())])
            .unwrap();
        let sent = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
        assert_eq!(sent[0].status, WcStatus::Success);
        let got = dst.read(0, 1024).unwrap();
        assert_eq!(got[..len], data[..]);
        assert!(got[len..].iter().all(|b| *b == 0x11), "{len} bytes");
    }
    let refused = a.post_send(&[SendWr::write(1, vec![], dst.iova(), dst.rkey()).with_inline(vec![0; most + 1])]);
    let Err(Error::Post(e)) = refused else {
        panic!("{refused:?}");
    };
    assert!(matches!(e.kind, PostErrorKind::InlineTooLong { .. }), "{e}");
}

#[test]
fn a_size_beyond_the_device_is_refused_by_name_and_nothing_is_made() {
    let pair = Pair::new(PairParams::new(64, 1)).unwrap();
    let end = &pair.ends[0];
    let caps = end.device.caps().unwrap();
    let cases = [
        (
            "max_send_wr",
            QpCap {
                max_send_wr: caps.max_qp_wr() + 1,
                ..FULL
            },
        ),
        (
            "max_recv_wr",
            QpCap {
                max_recv_wr: caps.max_qp_wr() + 1,
                ..FULL
            },
        ),
        (
            "max_send_sge",
            QpCap {
                max_send_sge: caps.max_sge + 1,
                ..FULL
            },
        ),
        (
            "max_recv_sge",
            QpCap {
                max_recv_sge: caps.max_sge + 1,
                ..FULL
            },
        ),
        (
            "max_inline_data",
            QpCap {
                max_inline_data: caps.max_inline + 1,
                ..FULL
            },
        ),
    ];
    for (name, cap) in cases {
        let error = end.pd.create_qp(&init(&pair, 0, cap)).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    assert_eq!(end.device.list_qps(QpFilter::default()).unwrap(), []);
    // Objects that were not made hold nothing.
    end.send_cq.destroy().unwrap();
}
