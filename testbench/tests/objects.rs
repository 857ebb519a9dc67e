// SPDX-License-Identifier: Apache-2.0
//! Objects of a whole NIC: what is in use stays, and memory regions end where they end.
#![allow(clippy::unwrap_used)]

use openrnic_driver::spec::{CmdStatus, Mtu, QpState, QpType, WcStatus};
use openrnic_driver::{QpFilter, SendWr};
use openrnic_testbench::e2e::{Pair, PairParams, all_access};

const BUDGET: u64 = 400_000;

fn pair() -> Pair {
    Pair::new(PairParams::new(64, 1)).unwrap()
}

#[test]
fn a_domain_or_queue_in_use_is_not_destroyed() {
    let pair = pair();
    let end = &pair.ends[0];
    let qp = end.pd.create_qp(&end.qp_init()).unwrap();
    let refused = |what: &str, result: openrnic_driver::Result<()>| {
        let status = result.as_ref().err().and_then(|e| e.status());
        assert_eq!(status, Some(CmdStatus::InUse), "{what}: {result:?}");
    };
    refused("domain", end.pd.dealloc());
    refused("send queue", end.send_cq.destroy());
    refused("receive queue", end.recv_cq.destroy());
    assert_eq!(qp.query().unwrap().attr.qp_state, QpState::Reset);
    qp.destroy().unwrap();
    end.send_cq.destroy().unwrap();
    end.recv_cq.destroy().unwrap();
    end.pd.dealloc().unwrap();
}

#[test]
fn the_device_lists_its_qps_by_state_type_and_domain() {
    let pair = pair();
    let end = &pair.ends[0];
    let device = end.pd.device();
    let all = QpFilter::default();
    assert_eq!(device.list_qps(all).unwrap(), []);
    let mut made: Vec<_> = (0..5).map(|_| end.pd.create_qp(&end.qp_init()).unwrap()).collect();
    made[3].to_reset().unwrap();
    made.remove(1).destroy().unwrap();
    let numbers: Vec<_> = made.iter().map(openrnic_driver::QueuePair::qpn).collect();
    assert_eq!(device.list_qps(all).unwrap(), numbers);
    let of = |state, qp_type, pd| device.list_qps(QpFilter { state, qp_type, pd }).unwrap();
    assert_eq!(
        of(Some(QpState::Reset), Some(QpType::Rc), Some(end.pd.handle())),
        numbers
    );
    assert_eq!(of(Some(QpState::Err), None, None), []);
    assert_eq!(of(None, Some(QpType::Ud), None), []);
    let other = device.alloc_pd().unwrap();
    assert_eq!(of(None, None, Some(other.handle())), []);
}

#[test]
fn a_write_beyond_its_region_changes_nothing_and_fails_at_both_ends() {
    let pair = pair();
    // Two regions side by side, so that bytes behind the first are memory that exists.
    let src = pair.ends[0].region(4096, all_access(), |i| i as u8).unwrap();
    let dst = pair.ends[1].region(4096, all_access(), |_| 0x5a).unwrap();
    let next = pair.ends[1].region(4096, all_access(), |_| 0x5a).unwrap();
    for (at, len) in [(4000u64, 97u32), (4096, 1), (4095, 2), (u64::MAX, 2)] {
        let [a, b] = pair.connected(Mtu::Mtu1024, [100, 200]).unwrap();
        let to = dst.sge(0, 1).addr.offset(at);
        a.post_send(&[SendWr::write(1, vec![src.sge(0, len)], to, dst.rkey())])
            .unwrap();
        let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
        assert_eq!(done[0].status, WcStatus::RemAccessErr, "{len} bytes at {at}");
        pair.run(2000).unwrap();
        assert_eq!(b.query().unwrap().attr.qp_state, QpState::Err);
        a.destroy().unwrap();
        b.destroy().unwrap();
    }
    for region in [&dst, &next] {
        assert!(region.read(0, 4096).unwrap().iter().all(|byte| *byte == 0x5a));
    }
    // What ends at its end is taken.
    let [a, _b] = pair.connected(Mtu::Mtu1024, [100, 200]).unwrap();
    let last = dst.sge(4000, 96);
    a.post_send(&[SendWr::write(2, vec![src.sge(0, 96)], last.addr, dst.rkey())])
        .unwrap();
    assert_eq!(
        pair.ends[0].send_cq.wait(1, BUDGET).unwrap()[0].status,
        WcStatus::Success
    );
}
