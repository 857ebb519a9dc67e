// SPDX-License-Identifier: Apache-2.0
//! The driver on a device made of plain Rust.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod mock;

use mock::{Lies, Mock};
use openrnic_driver::attr::{INIT_MASK, RTR_MASK, RTS_MASK};
use openrnic_driver::spec::{self, *};
use openrnic_driver::*;

use openrnic_driver::Sge;

type Dev = Device<Mock>;
type Attr = openrnic_driver::QpAttr;

fn open() -> (Mock, Dev) {
    let mock = Mock::new();
    let device = Device::open(mock.clone(), OpenParams::default()).unwrap();
    (mock, device)
}

fn rc_init(device: &Dev) -> (ProtectionDomain<Mock>, CompletionQueue<Mock>, openrnic_driver::QpInit) {
    let pd = device.alloc_pd().unwrap();
    let cq = device.create_cq(&CqInit::entries(8)).unwrap();
    let init = openrnic_driver::QpInit::new(QpType::Rc, &cq);
    (pd, cq, init)
}

fn init_attr() -> Attr {
    Attr {
        qp_state: QpState::Init,
        ..Attr::default()
    }
}

fn to_rts(qp: &QueuePair<Mock>) {
    qp.modify(&init_attr(), INIT_MASK).unwrap();
    let av = AddressVector {
        dmac: Some([2, 0, 0, 0, 0, 9]),
        ..AddressVector::default()
    };
    qp.modify(
        &Attr {
            qp_state: QpState::Rtr,
            av,
            ..Attr::default()
        },
        RTR_MASK,
    )
    .unwrap();
    qp.modify(
        &Attr {
            qp_state: QpState::Rts,
            ..Attr::default()
        },
        RTS_MASK,
    )
    .unwrap();
}

#[test]
fn bring_up_sizes_the_bar_and_reads_the_capabilities() {
    let (mock, device) = open();
    let info = device.info().unwrap();
    assert_eq!(
        (info.pci.bar0_bytes, info.pci.bar0_addr),
        (u64::from(BAR0_BYTES), 0xe000_0000)
    );
    assert_eq!(
        (info.pci.max_payload, info.pci.max_read_request, info.pci.vectors),
        (256, 512, 5)
    );
    assert_eq!((info.caps.log_qp, info.caps.data_width), (10, 64));
    assert!(info.blocks.iter().any(|b| b.name == "CMD"));
    mock.with(|s| {
        assert_eq!(s.config[1] & 6, 6, "memory decoding and bus mastering");
        assert_eq!(s.config[0x80 / 4] >> 30, 2, "MSI-X on, not masked");
        assert_eq!(s.eqs.len(), NUM_EQ as usize);
        assert_eq!(s.regs[&u64::from(regs::CTRL_MPS)], 256);
        assert_eq!(
            s.regs[&u64::from(MSIX_TABLE_BASE + 4 * 16 + 8)],
            4,
            "message of vector 4"
        );
    });
}

#[test]
fn a_device_that_is_not_there_or_not_ours_is_named() {
    let open = |lies| Device::open(Mock::lying(lies), OpenParams::default()).err().unwrap();
    assert_eq!(
        open(Lies {
            absent: true,
            ..Lies::default()
        }),
        Error::NoFunction
    );
    let e = open(Lies {
        magic: Some(7),
        ..Lies::default()
    });
    assert!(e.to_string().contains("magic 0x00000007"), "{e}");
    let e = open(Lies {
        block_loop: true,
        ..Lies::default()
    });
    assert!(e.to_string().contains("block list"), "{e}");
    let e = open(Lies {
        never_ready: true,
        ..Lies::default()
    });
    assert!(e.to_string().contains("become ready"), "{e}");
    let e = open(Lies {
        mute: true,
        ..Lies::default()
    });
    assert!(
        matches!(&e, Error::Timeout { awaited, .. } if awaited.contains("CREATE_EQ")),
        "{e}"
    );
}

#[test]
fn completions_are_found_over_many_laps_of_the_ring() {
    let (_, device) = open();
    for _ in 0..200 {
        device.set_pkey(0, 0xffff).unwrap();
    }
    let counters = device.counters().unwrap();
    assert_eq!(counters.get(CounterId::TxFrames), 3);
}

#[test]
fn many_commands_may_be_outstanding_and_complete_in_any_order() {
    let mock = Mock::new();
    let device = Device::open(mock.clone(), OpenParams::default()).unwrap();
    mock.with(|s| s.lies.reverse = 8);
    let command = CmdHeader::new().with_opcode(CmdOpcode::CreatePd.into()).0;
    let tickets: Vec<Ticket> = (0..8).map(|_| device.submit(command).unwrap()).collect();
    let handles: Vec<u32> = tickets.into_iter().map(|t| device.wait(t).unwrap().handle).collect();
    assert_eq!(handles, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(device.outstanding().unwrap(), 0);
}

#[test]
fn a_full_command_ring_waits_with_a_bound() {
    let mock = Mock::new();
    let params = OpenParams {
        log_cmd_ring: 1,
        command_cycles: 1000,
        ..OpenParams::default()
    };
    let device = Device::open(mock.clone(), params).unwrap();
    mock.with(|s| s.lies.mute = true);
    let command = CmdHeader::new().with_opcode(CmdOpcode::CreatePd.into()).0;
    let _a = device.submit(command).unwrap();
    let _b = device.submit(command).unwrap();
    let e = device.submit(command).unwrap_err();
    assert!(
        matches!(&e, Error::Timeout { awaited, cycles: 1000, .. } if awaited.contains("free entry")),
        "{e}"
    );
}

#[test]
fn a_batch_is_one_command_and_falls_back_to_a_list() {
    let (mock, device) = open();
    let (pd, _, init) = rc_init(&device);
    let batch = pd.create_qps(64, &init, &BatchInit::range()).unwrap();
    assert!(batch.is_range() && batch.qpns().len() == 64);
    let before = mock.with(|s| s.commands.len());
    batch.modify(&init_attr(), INIT_MASK).unwrap();
    assert_eq!(mock.with(|s| s.commands.len()), before + 1);
    assert!(mock.with(|s| s.qps.values().all(|q| q.state == QpState::Init)));

    mock.with(|s| s.lies.refuse_ranges = Some(CmdStatus::NoCommonGeneration));
    let strict = BatchInit {
        numbering: Numbering::Range,
        ..BatchInit::default()
    };
    let e = pd.create_qps(4, &init, &strict).err().unwrap();
    assert_eq!(e.status(), Some(CmdStatus::NoCommonGeneration));
    let list = pd.create_qps(4, &init, &BatchInit::range()).unwrap();
    assert!(!list.is_range());
    assert_ne!(list.qpns()[1].0, list.qpns()[0].0 + 1);
    list.modify(&init_attr(), INIT_MASK).unwrap();
    let attrs: Vec<(Attr, QpAttrBit)> = (0..4)
        .map(|i| {
            let av = AddressVector {
                dmac: Some([2; 6]),
                ..AddressVector::default()
            };
            (
                Attr {
                    qp_state: QpState::Rtr,
                    dest_qpn: Qpn(100 + i),
                    av,
                    ..Attr::default()
                },
                RTR_MASK,
            )
        })
        .collect();
    list.modify_each(&attrs).unwrap();
    let query = list.qps()[2].query().unwrap();
    assert_eq!((query.state, query.attr.dest_qpn), (QpState::Rtr, Qpn(102)));
    let count = |filter| device.list_qps(filter).unwrap().len();
    assert_eq!(count(QpFilter::default()), 68);
    let state = |state| QpFilter {
        state: Some(state),
        ..QpFilter::default()
    };
    assert_eq!((count(state(QpState::Rtr)), count(state(QpState::Sqd))), (4, 0));
    let other = QpFilter {
        pd: Some(PdHandle(pd.handle().0 + 1)),
        qp_type: Some(QpType::Rc),
        ..QpFilter::default()
    };
    assert_eq!(count(other), 0);
    assert_eq!(count(QpFilter { pd: None, ..other }), 68);
    list.destroy().unwrap();
    batch.destroy().unwrap();
    assert!(mock.with(|s| s.qps.is_empty()));
    assert!(matches!(list.qps()[0].post_recv(&[]), Err(Error::Stale { .. })));
}

#[test]
fn a_range_is_a_wish_or_a_condition_whatever_refuses_it() {
    let (mock, device) = open();
    let (pd, _, init) = rc_init(&device);
    let strict = BatchInit {
        numbering: Numbering::Range,
        align_log2: 4,
    };
    let wish = BatchInit {
        numbering: Numbering::PreferRange,
        ..strict
    };
    for status in [CmdStatus::NoCommonGeneration, CmdStatus::NoResources] {
        mock.with(|s| s.lies.refuse_ranges = Some(status));
        let before = mock.with(|s| s.commands.len());
        let e = pd.create_qps(4, &init, &strict).err().unwrap();
        assert_eq!(e.status(), Some(status));
        assert_eq!(mock.with(|s| s.commands.len()), before + 1, "one attempt");
        for install in [false, true] {
            let list = if install {
                pd.install_qps(4, &init, &wish, &init_attr(), INIT_MASK).unwrap()
            } else {
                pd.create_qps(4, &init, &wish).unwrap()
            };
            assert!(!list.is_range());
            let sent = mock.with(|s| CmdQp(*s.commands.last().unwrap()));
            assert_eq!((sent.flags(), sent.align_log2()), (0, 0), "a list has no alignment");
            assert_ne!(sent.list_addr(), 0);
            list.destroy().unwrap();
        }
        // Other refusals are not answered by trying again.
        mock.with(|s| s.lies.refuse_ranges = Some(CmdStatus::BadHandle));
        let before = mock.with(|s| s.commands.len());
        assert!(pd.create_qps(4, &init, &wish).is_err());
        assert_eq!(mock.with(|s| s.commands.len()), before + 1);
    }
    assert!(mock.with(|s| s.qps.is_empty()));
}

#[test]
fn a_refusal_names_rule_attributes_and_offender() {
    let (mock, device) = open();
    let (pd, _, init) = rc_init(&device);
    let batch = pd.create_qps(4, &init, &BatchInit::range()).unwrap();
    batch.qps()[2].modify(&init_attr(), INIT_MASK).unwrap();
    let e = batch
        .modify(&init_attr(), INIT_MASK.without(QpAttrBit::PORT))
        .unwrap_err();
    let refusal = e.gate().unwrap();
    assert_eq!((refusal.rule, refusal.attrs), (GateRule::MissingAttrs, QpAttrBit::PORT));
    assert_eq!((refusal.offender, refusal.offender_index), (batch.qpns()[0], 0));
    assert!(e.to_string().contains("MISSING_ATTRS(PORT)"), "{e}");
    assert!(mock.with(|s| s.qps.values().filter(|q| q.state == QpState::Init).count() == 1));
    assert_eq!(batch.qps()[0].state().unwrap(), QpState::Reset);
    // A wrong mask reaches the hardware as it is.
    let raw = spec::QpAttr::new().with_mask(0x8000_0001).with_qp_state(1);
    batch.qps()[0].modify_raw(&raw).unwrap_err();
    let sent = mock.with(|s| CmdQp(*s.commands.last().unwrap()));
    assert_eq!(sent.opcode(), u8::from(CmdOpcode::ModifyQp));
}

#[test]
fn an_installed_batch_is_in_init_or_does_not_exist() {
    let (mock, device) = open();
    let (pd, _, init) = rc_init(&device);
    let batch = pd
        .install_qps(8, &init, &BatchInit::range(), &init_attr(), INIT_MASK)
        .unwrap();
    assert_eq!(batch.qps()[7].state().unwrap(), QpState::Init);
    let free = mock.with(|s| s.bufs.len());
    let e = pd
        .install_qps(8, &init, &BatchInit::range(), &init_attr(), QpAttrBit::STATE)
        .err()
        .unwrap();
    assert_eq!(e.gate().unwrap().rule, GateRule::MissingAttrs);
    assert_eq!(
        mock.with(|s| (s.qps.len(), s.bufs.len())),
        (8, free),
        "nothing is left of it"
    );
}

#[test]
fn sizes_are_rounded_up_and_told() {
    let (_, device) = open();
    let (pd, _, mut init) = rc_init(&device);
    init.cap = QpCap {
        max_send_wr: 5,
        max_recv_wr: 3,
        max_send_sge: 3,
        max_recv_sge: 2,
        max_inline_data: 33,
    };
    let cap = pd.create_qp(&init).unwrap().cap().unwrap();
    assert_eq!((cap.max_send_wr, cap.max_recv_wr), (8, 4));
    assert_eq!((cap.max_send_sge, cap.max_recv_sge, cap.max_inline_data), (6, 3, 96));
    init.cap.max_send_sge = 17;
    assert!(
        pd.create_qp(&init)
            .err()
            .unwrap()
            .to_string()
            .contains("max_send_sge 17")
    );
}

fn wr(id: u64) -> SendWr {
    SendWr::send(
        id,
        vec![Sge {
            addr: Iova(0x1000),
            length: 8,
            lkey: LKey(1),
        }],
    )
}

#[test]
fn posts_follow_state_room_and_sges() {
    let (mock, device) = open();
    let (pd, _, mut init) = rc_init(&device);
    init.cap.max_send_wr = 4;
    init.cap.max_recv_wr = 2;
    let qp = pd.create_qp(&init).unwrap();
    let post_error = |e: Error| match e {
        Error::Post(p) => (p.bad_wr, p.kind.errno(), p.kind),
        other => panic!("{other}"),
    };
    let recv = RecvWr { wr_id: 1, sges: vec![] };
    assert_eq!(post_error(qp.post_recv(std::slice::from_ref(&recv)).unwrap_err()).1, 22);
    assert!(matches!(
        post_error(qp.post_send(&[wr(1)]).unwrap_err()),
        (0, 22, PostErrorKind::BadState { state: QpState::Reset })
    ));
    to_rts(&qp);
    assert!(matches!(
        post_error(qp.post_send(&[wr(1), wr(2), wr(3), wr(4), wr(5)]).unwrap_err()),
        (4, 12, PostErrorKind::Full { capacity: 4 })
    ));
    let db = mock.with(|s| *s.doorbells.last().unwrap());
    assert_eq!(db.0, u64::from(UAR_BASE));
    assert_eq!(
        DbQueue(db.1.to_le_bytes()),
        DbQueue::new().with_qpn(qp.qpn().0).with_producer(4)
    );
    assert_eq!(
        post_error(qp.post_recv(&[recv.clone(), recv.clone(), recv]).unwrap_err()).0,
        2
    );
    let many = SendWr::send(9, vec![wr(0).sges[0]; 3]);
    assert!(matches!(
        post_error(qp.post_send(&[many]).unwrap_err()),
        (0, 22, PostErrorKind::TooManySges { .. })
    ));
    let unknown = SendWr::new(9, WqeOpcode::BindMw, vec![]);
    assert!(matches!(
        post_error(qp.post_send(&[unknown]).unwrap_err()),
        (0, 22, PostErrorKind::UnsupportedOpcode { .. })
    ));
}

#[test]
fn wqes_stand_in_the_ring_as_specified() {
    let (mock, device) = open();
    let (pd, _, mut init) = rc_init(&device);
    init.cap.max_send_sge = 3;
    let qp = pd.create_qp(&init).unwrap();
    to_rts(&qp);
    let sge = |n: u64| Sge {
        addr: Iova(0x1000 * n),
        length: n as u32,
        lkey: LKey(0xa0 + n as u32),
    };
    let list = vec![sge(1), sge(2), sge(3)];
    qp.post_send(&[SendWr::write(1, list.clone(), Iova(0x55), RKey(0x77)).with_imm(0x0102_0304)])
        .unwrap();
    let (base, stride) = mock.with(|s| (s.qps[&qp.qpn().0].create.sq_base(), 128));
    let bytes = mock.with(|s| s.get(base, stride));
    let head = SqWqe::from_bytes(&bytes).unwrap();
    assert_eq!((head.opcode(), head.num_sge(), head.signaled()), (1, 3, true));
    assert_eq!((head.remote_va(), head.rkey()), (0x55, 0x77));
    assert_eq!(bytes[4..8], [1, 2, 3, 4], "first byte on the wire first");
    for (i, want) in list.iter().enumerate() {
        let got = spec::Sge::from_bytes(&bytes[32 + 16 * i..]).unwrap();
        assert_eq!(
            (got.addr(), got.length(), got.lkey()),
            (want.addr.0, want.length, want.lkey.0)
        );
    }
    qp.post_send(&[SendWr::send(2, vec![])]).unwrap();
    assert_eq!(mock.with(|s| s.get(base + 128, 1))[0], u8::from(WqeOpcode::Send));
    qp.post_recv(&[RecvWr {
        wr_id: 1,
        sges: vec![sge(2)],
    }])
    .unwrap();
    let base = mock.with(|s| s.qps[&qp.qpn().0].create.rq_base());
    let recv = RqWqe::from_bytes(&mock.with(|s| s.get(base, 32))).unwrap();
    assert_eq!((recv.num_sge(), recv.sge0_addr(), recv.sge0_lkey()), (1, 0x2000, 0xa2));
}

fn cqe(qp: &QueuePair<Mock>, opcode: WcOpcode, index: u16) -> Cqe {
    Cqe::new()
        .with_qpn(qp.qpn().0)
        .with_opcode(opcode.into())
        .with_wqe_index(index)
}

#[test]
fn completions_map_to_wr_ids_and_free_slots_over_many_laps() {
    let (mock, device) = open();
    let (pd, cq, mut init) = rc_init(&device);
    init.cap.max_send_wr = 4;
    let qp = pd.create_qp(&init).unwrap();
    to_rts(&qp);
    for lap in 0..100u16 {
        qp.post_send(&[wr(1000).unsignaled(), wr(u64::from(lap))]).unwrap();
        mock.cqe(0, cqe(&qp, WcOpcode::Send, 2 * lap + 1));
        let got = cq.poll(10).unwrap();
        assert_eq!(got.len(), 1);
        assert_eq!(
            (got[0].wr_id, got[0].status, got[0].is_recv),
            (u64::from(lap), WcStatus::Success, false)
        );
    }
    assert_eq!(mock.with(|s| s.cqs[&0].consumer), 100);
    qp.post_recv(&[RecvWr {
        wr_id: 77,
        sges: vec![],
    }])
    .unwrap();
    mock.cqe(
        0,
        cqe(&qp, WcOpcode::Recv, 0)
            .with_has_imm(true)
            .with_imm(u32::from_le_bytes([1, 2, 3, 4]))
            .with_byte_len(5),
    );
    let got = cq.poll(10).unwrap();
    assert_eq!(
        (got[0].wr_id, got[0].imm, got[0].byte_len, got[0].is_recv),
        (77, Some(0x0102_0304), 5, true)
    );
}

#[test]
fn completions_of_an_old_life_are_purged() {
    let (mock, device) = open();
    let (pd, cq, init) = rc_init(&device);
    let (a, b) = (pd.create_qp(&init).unwrap(), pd.create_qp(&init).unwrap());
    to_rts(&a);
    to_rts(&b);
    a.post_send(&[wr(1)]).unwrap();
    b.post_send(&[wr(2)]).unwrap();
    mock.cqe(0, cqe(&a, WcOpcode::Send, 0));
    mock.cqe(0, cqe(&b, WcOpcode::Send, 0));
    a.to_reset().unwrap();
    let got = cq.poll(10).unwrap();
    assert_eq!(got.iter().map(|c| c.wr_id).collect::<Vec<_>>(), [2]);
    // The ring starts anew.
    to_rts(&a);
    a.post_send(&[wr(3)]).unwrap();
    mock.cqe(0, cqe(&a, WcOpcode::Send, 0));
    assert_eq!(cq.poll(10).unwrap()[0].wr_id, 3);
}

#[test]
fn a_resized_queue_keeps_what_was_not_polled() {
    let (mock, device) = open();
    let (pd, cq, init) = rc_init(&device);
    let qp = pd.create_qp(&init).unwrap();
    to_rts(&qp);
    let done = |n: u16| mock.cqe(0, cqe(&qp, WcOpcode::Send, n));
    for n in 0..8 {
        qp.post_send(&[wr(n)]).unwrap();
    }
    (0..5).for_each(done);
    assert_eq!(cq.poll(2).unwrap().len(), 2);
    let clone = cq.clone();
    cq.resize(3).unwrap();
    assert_eq!((cq.capacity(), clone.capacity()), (4, 4));
    // Three of the old ring wait, and the device knows: fewer do not fit, and an event would come at once.
    let e = cq.resize(2).unwrap_err();
    assert_eq!(e.status(), Some(CmdStatus::TooSmall), "{e}");
    cq.req_notify(false).unwrap();
    assert_eq!(mock.with(|s| (s.cqs[&0].consumer, s.cqs[&0].armed)), (2, true));
    done(5);
    let ids = |got: Vec<openrnic_driver::WorkCompletion>| got.iter().map(|c| c.wr_id).collect::<Vec<_>>();
    assert_eq!(ids(cq.poll(10).unwrap()), [2, 3, 4, 5]);
    assert_eq!(mock.with(|s| s.cqs[&0].consumer), 6);
    done(6);
    cq.resize(1000).unwrap();
    done(7);
    assert_eq!(ids(clone.poll(10).unwrap()), [6, 7]);
    assert!(cq.resize(0).is_err() && cq.resize(65_537).is_err());
    assert_eq!(cq.capacity(), 1024);
    // A device that promises completions which are not there.
    mock.with(|s| s.lies.resize_skips = 3);
    let e = cq.resize(16).unwrap_err();
    assert!(
        matches!(e, Error::Protocol { .. }) && e.to_string().contains("3 before it"),
        "{e}"
    );
}

#[test]
fn moderation_is_given_to_the_device_as_it_is() {
    let (mock, device) = open();
    let (_pd, cq, _init) = rc_init(&device);
    cq.modify(CqModeration {
        count: 0x1234,
        period: 4095,
    })
    .unwrap();
    assert_eq!(mock.with(|s| s.cqs[&0].moderation), (0x1234, 4095));
    cq.modify(CqModeration::default()).unwrap();
    assert_eq!(mock.with(|s| s.cqs[&0].moderation), (0, 0));
}

#[test]
fn events_reach_their_queues() {
    let (mock, device) = open();
    let (pd, cq, init) = rc_init(&device);
    let qp = pd.create_qp(&init).unwrap();
    to_rts(&qp);
    assert_eq!(device.get_cq_event(1).unwrap(), None);
    cq.req_notify(false).unwrap();
    qp.post_send(&[wr(1)]).unwrap();
    mock.cqe(0, cqe(&qp, WcOpcode::Send, 0));
    assert_eq!(device.get_cq_event(1).unwrap(), Some(cq.cqn()));
    assert_eq!(device.get_cq_event(1).unwrap(), None);
    mock.eqe(0, EventType::CommEst.into(), qp.qpn().0);
    let event = device.get_async_event().unwrap().unwrap();
    assert_eq!((event.event, event.number), (EventType::CommEst, qp.qpn().0));
    // Over the end of the event ring.
    for i in 0..3000 {
        mock.eqe(0, EventType::PortErr.into(), i);
        assert_eq!(device.get_async_event().unwrap().unwrap().number, i);
    }
    assert!(device.interrupts().unwrap()[0] > 3000);
    assert!(device.get_cq_event(9).is_err());
}

#[test]
fn absurd_completions_are_errors_and_later_good_ones_still_come() {
    let (mock, device) = open();
    let (pd, cq, init) = rc_init(&device);
    let qp = pd.create_qp(&init).unwrap();
    to_rts(&qp);
    qp.post_send(&[wr(5)]).unwrap();
    mock.cqe(0, cqe(&qp, WcOpcode::Send, 7));
    mock.cqe(0, cqe(&qp, WcOpcode::Send, 0).with_qpn(0x123_456));
    mock.cqe(0, cqe(&qp, WcOpcode::Send, 0).with_status(0x99));
    mock.cqe(0, cqe(&qp, WcOpcode::Recv, 0));
    mock.cqe(0, cqe(&qp, WcOpcode::Send, 0));
    for want in ["WQE 7", "0x123456", "0x99", "receive WQE 0"] {
        let e = cq.poll(10).unwrap_err();
        assert!(
            matches!(e, Error::Protocol { .. }) && e.to_string().contains(want),
            "{want}: {e}"
        );
    }
    assert_eq!(cq.poll(10).unwrap()[0].wr_id, 5);
}

#[test]
fn absurd_command_completions_are_errors() {
    let (mock, device) = open();
    let tell = |c: CmdCompletion| mock.with(|s| s.lies.completions.push_back(c.0));
    tell(
        CmdCompletion::new()
            .with_tag(0xdead)
            .with_opcode(CmdOpcode::SetPkey.into()),
    );
    let e = device.set_pkey(0, 1).unwrap_err();
    assert!(e.to_string().contains("tag 57005"), "{e}");
    // The tag of the command before is outstanding for good; later ones work.
    device.set_pkey(0, 1).unwrap();
}

#[test]
fn reset_frees_everything_and_makes_handles_stale() {
    let (mock, device) = open();
    let fresh = mock.with(|s| s.bufs.len());
    let (pd, cq, init) = rc_init(&device);
    let mr = pd.register(&MrInit::new(100, Access::LOCAL_WRITE)).unwrap();
    mr.write(0, b"hello").unwrap();
    assert_eq!(mr.read(0, 5).unwrap(), b"hello");
    assert!(mr.read(96, 5).is_err() && mr.write(usize::MAX, b"x").is_err());
    let qp = pd.create_qp(&init).unwrap();
    device.reset().unwrap();
    assert_eq!(mock.with(|s| (s.resets, s.bufs.len())), (1, fresh));
    assert!(matches!(qp.query(), Err(Error::Stale { .. })));
    assert!(matches!(cq.poll(1), Err(Error::Stale { .. })));
    assert!(matches!(mr.read(0, 1), Err(Error::Stale { .. })));
    assert!(matches!(pd.create_qp(&init), Err(Error::Stale { .. })));
    let (pd, ..) = rc_init(&device);
    assert!(pd.handle() == PdHandle(1));
    device.shutdown().unwrap();
    assert_eq!(mock.with(|s| s.bufs.len()), 0);
    assert!(device.set_pkey(0, 1).is_err());
}

#[test]
fn a_neighbour_gives_the_mac_address() {
    let (mock, device) = open();
    let (pd, _, init) = rc_init(&device);
    let qp = pd.create_qp(&init).unwrap();
    qp.modify(&init_attr(), INIT_MASK).unwrap();
    let gid = Gid::from_ipv4([10, 0, 0, 2]);
    let rtr = Attr {
        qp_state: QpState::Rtr,
        av: AddressVector {
            dgid: gid,
            ..Default::default()
        },
        ..Attr::default()
    };
    assert_eq!(qp.modify(&rtr, RTR_MASK).unwrap_err(), Error::NoNeighbour { gid });
    device.add_neighbour(gid, [2, 0, 0, 0, 0, 2]).unwrap();
    qp.modify(&rtr, RTR_MASK).unwrap();
    assert_eq!(mock.with(|s| s.qps[&qp.qpn().0].attr.dmac()), [2, 0, 0, 0, 0, 2]);
}

#[test]
fn the_driver_called_from_inside_with_bus_is_an_error() {
    let (_, device) = open();
    let inner = device.clone();
    let got = device.with_bus(|_| inner.set_pkey(0, 1)).unwrap();
    assert_eq!(got, Err(Error::Reentered));
}

#[test]
fn phy_and_mac_are_told_where_the_device_has_them() {
    let (mock, device) = open();
    assert_eq!(device.mac_status().unwrap(), None);
    let status = |state| u32::from_le_bytes(PhyStatus::new().with_present(true).with_address(7).with_state(state).0);
    mock.0
        .borrow_mut()
        .regs
        .insert(regs::MAC_PHY_STATUS.into(), status(PhyState::NoLink.into()));
    for (n, reg) in (regs::MAC_RX_GOOD..=regs::MAC_TX_LONG).step_by(4).enumerate() {
        mock.0.borrow_mut().regs.insert(reg.into(), 100 + n as u32);
    }
    let told = device.mac_status().unwrap().unwrap();
    let expected = MacStatus {
        phy_state: PhyState::NoLink,
        phy_address: 7,
        rx_good: 100,
        rx_fcs: 101,
        rx_runt: 102,
        rx_oversize: 103,
        rx_er: 104,
        rx_junk: 105,
        rx_drop: 106,
        tx_sent: 107,
        tx_underrun: 108,
        tx_no_link: 109,
        tx_long: 110,
    };
    assert_eq!(told, expected);
    assert!(
        told.to_string()
            .starts_with("PHY NO_LINK at MDIO address 7; received 100 (bad: FCS 101,"),
        "{told}"
    );
    // A state that nobody knows is an error, and no guess.
    mock.0.borrow_mut().regs.insert(regs::MAC_PHY_STATUS.into(), status(6));
    let e = device.mac_status().unwrap_err();
    assert!(
        matches!(&e, Error::Protocol { what } if what.contains("MAC.PHY_STATUS has state 6")),
        "{e}"
    );
}
