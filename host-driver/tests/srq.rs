// SPDX-License-Identifier: Apache-2.0
//! Shared receive queues and XRC domains of the driver, on a device made of plain Rust.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod mock;

use mock::Mock;
use openrnic_driver::spec::{self, *};
use openrnic_driver::*;

type Dev = Device<Mock>;
type Init = openrnic_driver::QpInit;

struct Set {
    mock: Mock,
    device: Dev,
    pd: ProtectionDomain<Mock>,
    cq: CompletionQueue<Mock>,
    srq: SharedReceiveQueue<Mock>,
    qps: Vec<QueuePair<Mock>>,
}

/// Two QPs on a queue of 3 work requests.
fn set() -> Set {
    let mock = Mock::new();
    let device = Device::open(mock.clone(), OpenParams::default()).unwrap();
    let pd = device.alloc_pd().unwrap();
    let cq = device.create_cq(&CqInit::entries(8)).unwrap();
    let srq = pd
        .create_srq(&SrqInit {
            max_wr: 3,
            max_sge: 2,
            uar: 9,
        })
        .unwrap();
    let init = Init {
        srq: Some(srq.srqn()),
        ..Init::new(QpType::Rc, &cq)
    };
    let batch = pd.create_qps(2, &init, &BatchInit::range()).unwrap();
    let qps = batch.qps();
    Set {
        mock,
        device,
        pd,
        cq,
        srq,
        qps,
    }
}

fn wr(wr_id: u64) -> RecvWr {
    RecvWr {
        wr_id,
        sges: vec![openrnic_driver::Sge {
            addr: Iova(0x1000 * wr_id),
            length: 64,
            lkey: LKey(7),
        }],
    }
}

fn completion(qpn: Qpn, slot: u16) -> Cqe {
    Cqe::new()
        .with_qpn(qpn.0)
        .with_opcode(WcOpcode::Recv.into())
        .with_wqe_index(slot)
}

/// Slot, link, first address of the WQE in a slot.
fn wqe(set: &Set, slot: u64) -> (u16, u64) {
    set.mock.with(|s| {
        let base = s.srqs[&5].0.base();
        let raw = RqWqe::from_bytes(&s.get(base + 64 * slot, 32)).unwrap();
        (raw.next(), raw.sge0_addr())
    })
}

#[test]
fn a_queue_is_made_with_one_slot_more_than_it_holds() {
    let set = set();
    let made = set.mock.with(|s| s.srqs[&5].0);
    assert_eq!(set.srq.srqn(), Srqn(5));
    assert_eq!(
        (made.pd(), made.uar(), made.log_size(), made.log_stride()),
        (set.pd.handle().0, 9, 2, 1)
    );
    assert_eq!(made.base() % 64, 0);
    let attr = set.srq.query().unwrap();
    assert_eq!((attr.max_wr, attr.max_sge, attr.limit, attr.waiting), (3, 3, 0, 0));
    for (init, what) in [
        (
            SrqInit {
                max_wr: 0,
                ..SrqInit::default()
            },
            "max_wr 0",
        ),
        (
            SrqInit {
                max_wr: 1 << 15,
                ..SrqInit::default()
            },
            "1 to 32767",
        ),
        (
            SrqInit {
                max_sge: 17,
                ..SrqInit::default()
            },
            "at most 16",
        ),
        (
            SrqInit {
                uar: 32,
                ..SrqInit::default()
            },
            "doorbell page 32",
        ),
    ] {
        let e = set.pd.create_srq(&init).map(drop).unwrap_err();
        assert!(
            matches!(e, Error::Invalid { .. }) && e.to_string().contains(what),
            "{e}"
        );
    }
}

#[test]
fn qps_on_a_queue_have_no_receive_ring_and_refuse_to_post_to_it() {
    let set = set();
    let qp = &set.qps[0];
    let cap = qp.cap().unwrap();
    assert_eq!((cap.max_recv_wr, cap.max_recv_sge), (0, 0));
    set.mock.with(|s| {
        let create = s.qps[&qp.qpn().0].create;
        assert_eq!(create.srq(), 5);
        assert_eq!(create.flags() & CmdFlag::USE_SRQ.0 as u8, CmdFlag::USE_SRQ.0 as u8);
        assert_eq!(create.rq_base(), 0);
    });
    let e = qp.post_recv(&[wr(1)]).unwrap_err();
    let Error::Post(e) = e else { panic!("{e}") };
    assert_eq!(e.kind, PostErrorKind::SharedQueue { srq: Srqn(5) });
    assert_eq!((e.bad_wr, e.kind.errno()), (0, 22));
    // What a receive ring of its own could not have is of no interest.
    let init = Init {
        srq: Some(Srqn(5)),
        cap: QpCap {
            max_recv_wr: 1 << 20,
            max_recv_sge: 999,
            ..QpCap::default()
        },
        ..Init::new(QpType::Rc, &set.cq)
    };
    set.pd.create_qp(&init).unwrap();
    let missing = Init {
        srq: Some(Srqn(4)),
        ..init
    };
    assert!(matches!(set.pd.create_qp(&missing), Err(Error::Stale { .. })));
}

#[test]
fn work_requests_are_linked_and_come_back_in_any_order() {
    let set = set();
    set.srq.post_recv(&[wr(1), wr(2)]).unwrap();
    let e = set.srq.post_recv(&[wr(3), wr(4)]).unwrap_err();
    let Error::Post(e) = e else { panic!("{e}") };
    assert_eq!((e.bad_wr, e.wr_id, e.kind), (1, 4, PostErrorKind::Full { capacity: 3 }));
    assert_eq!(
        [0, 1, 2].map(|slot| wqe(&set, slot)),
        [(1, 0x1000), (2, 0x2000), (3, 0x3000)]
    );
    let rung: Vec<DbSrq> = set.mock.with(|s| {
        let page = u64::from(UAR_BASE) + 9 * u64::from(UAR_BYTES) + u64::from(DB_SRQ);
        let db = |(_, v): &(u64, u64)| DbSrq(v.to_le_bytes());
        s.doorbells.iter().filter(|(at, _)| *at == page).map(db).collect()
    });
    assert_eq!(
        rung.iter().map(|d| (d.srqn(), d.producer())).collect::<Vec<_>>(),
        [(5, 2), (5, 3)]
    );
    // Slot 1 comes back first, from the second QP; then slot 0.
    set.mock.cqe(0, completion(set.qps[1].qpn(), 1));
    set.mock.cqe(0, completion(set.qps[0].qpn(), 0));
    let done = set.cq.poll(8).unwrap();
    assert_eq!(
        done.iter().map(|c| (c.qpn, c.wr_id)).collect::<Vec<_>>(),
        [(set.qps[1].qpn(), 2), (set.qps[0].qpn(), 1)]
    );
    // Free are 3, 1, 0, in that order; 0 stays free.
    set.srq.post_recv(&[wr(5), wr(6)]).unwrap();
    assert_eq!([3, 1].map(|slot| wqe(&set, slot)), [(1, 0x5000), (0, 0x6000)]);
    let e = set.srq.post_recv(&[wr(7)]).unwrap_err();
    assert!(matches!(e, Error::Post(_)), "{e}");
    let many = RecvWr {
        sges: vec![wr(0).sges[0]; 4],
        ..wr(8)
    };
    let e = set.srq.post_recv(&[many]).unwrap_err();
    let Error::Post(e) = e else { panic!("{e}") };
    assert_eq!(e.kind, PostErrorKind::TooManySges { given: 4, max: 3 });
}

#[test]
fn a_completion_of_a_slot_that_holds_nothing_is_an_error_and_no_panic() {
    let set = set();
    set.srq.post_recv(&[wr(1)]).unwrap();
    for slot in [1, 3, 4, 0xffff] {
        set.mock.cqe(0, completion(set.qps[0].qpn(), slot));
        let e = set.cq.poll(8).unwrap_err();
        assert!(matches!(e, Error::Protocol { .. }), "{e}");
    }
    set.mock.cqe(0, completion(set.qps[0].qpn(), 0));
    assert_eq!(set.cq.poll(8).unwrap()[0].wr_id, 1);
}

#[test]
fn a_qp_that_leaves_gives_back_what_it_had_taken() {
    let set = set();
    set.srq.post_recv(&[wr(1), wr(2), wr(3)]).unwrap();
    // Completions of the old life, one of them the flushed message in progress: nobody sees them.
    set.mock.cqe(0, completion(set.qps[0].qpn(), 0));
    set.mock.cqe(0, completion(set.qps[1].qpn(), 1));
    set.mock.cqe(
        0,
        completion(set.qps[0].qpn(), 2).with_status(WcStatus::WrFlushErr.into()),
    );
    set.qps[0].to_reset().unwrap();
    let done = set.cq.poll(8).unwrap();
    assert_eq!(done.iter().map(|c| c.wr_id).collect::<Vec<_>>(), [2]);
    // All three slots are free again.
    set.srq.post_recv(&[wr(4), wr(5), wr(6)]).unwrap();
    set.mock.cqe(0, completion(set.qps[1].qpn(), 3));
    set.qps[1].destroy().unwrap();
    assert_eq!(set.cq.poll(8).unwrap(), []);
    set.srq.post_recv(&[wr(7)]).unwrap();
}

#[test]
fn limit_query_and_destroy_go_to_the_device() {
    let set = set();
    set.srq.set_limit(2).unwrap();
    set.srq.post_recv(&[wr(1), wr(2)]).unwrap();
    set.mock.with(|s| {
        assert_eq!(s.srqs[&5].1, 2);
        s.srqs.get_mut(&5).unwrap().2 = 1;
    });
    let attr = set.srq.query().unwrap();
    assert_eq!((attr.limit, attr.waiting), (2, 1));
    assert!(matches!(set.srq.set_limit(4), Err(Error::Invalid { .. })));
    // More than was ever posted cannot wait.
    set.mock.with(|s| s.srqs.get_mut(&5).unwrap().2 = 3);
    assert!(matches!(set.srq.query(), Err(Error::Protocol { .. })));
    set.mock.eqe(0, spec::EventType::SrqLimitReached.into(), 5);
    let event = set.device.get_async_event().unwrap().unwrap();
    assert_eq!((event.event, event.number), (spec::EventType::SrqLimitReached, 5));
    assert_eq!(set.srq.destroy().unwrap_err().status(), Some(CmdStatus::InUse));
    for qp in &set.qps {
        qp.destroy().unwrap();
    }
    set.srq.destroy().unwrap();
    assert!(matches!(set.srq.destroy(), Err(Error::Stale { .. })));
    assert!(matches!(set.srq.post_recv(&[wr(1)]), Err(Error::Stale { .. })));
    assert!(matches!(set.srq.query(), Err(Error::Stale { .. })));
}

#[test]
fn an_xrc_target_needs_a_domain_and_nothing_else_has_one() {
    let set = set();
    let xrcd = set.device.alloc_xrcd().unwrap();
    let target = Init {
        xrcd: Some(xrcd.handle()),
        ..Init::new(QpType::XrcTgt, &set.cq)
    };
    let qp = set.pd.create_qp(&target).unwrap();
    set.mock
        .with(|s| assert_eq!(s.qps[&qp.qpn().0].create.pd(), xrcd.handle().0));
    for init in [
        Init { xrcd: None, ..target },
        Init {
            qp_type: QpType::Rc,
            ..target
        },
    ] {
        assert!(matches!(set.pd.create_qp(&init), Err(Error::Invalid { .. })));
    }
    xrcd.dealloc().unwrap();
    assert!(matches!(xrcd.dealloc(), Err(Error::Stale { .. })));
    assert!(matches!(set.pd.create_qp(&target), Err(Error::Stale { .. })));
}
