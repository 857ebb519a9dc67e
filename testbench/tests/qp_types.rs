// SPDX-License-Identifier: Apache-2.0
//! Every QP type that the device knows is created, moved through the states of its table and destroyed on a whole NIC; posting
//! to one that the device moves no data for is refused by name.
#![allow(clippy::unwrap_used)]

use openrnic_driver::spec::{CmdStatus, GateRule, Mtu, QpAttrBit, QpState, QpType};
use openrnic_driver::{
    AddressVector, Error, PostErrorKind, QpAttr, QpFilter, QpInit, Qpn, QueuePair, RecvWr, SendWr, SrqInit, attr,
};
use openrnic_sim::NicBus;
use openrnic_testbench::e2e::{Pair, PairParams};
use openrnic_testbench::model::gate::{State, Type, edge};

/// Types that need nothing but a PD and CQs, as verbs number them and as the model does.
const TYPES: [(QpType, Type); 7] = [
    (QpType::Rc, Type::Rc),
    (QpType::Uc, Type::Uc),
    (QpType::Ud, Type::Ud),
    (QpType::Gsi, Type::Gsi),
    (QpType::RawPacket, Type::RawPacket),
    (QpType::XrcIni, Type::XrcIni),
    (QpType::Dci, Type::Dci),
];

/// A good value of every attribute.
fn good(pair: &Pair) -> QpAttr {
    QpAttr {
        av: AddressVector {
            dgid: pair.ends[1].gid,
            dmac: Some(pair.ends[1].mac),
            ..AddressVector::default()
        },
        path_mtu: Mtu::Mtu1024,
        dest_qpn: Qpn(77),
        ..QpAttr::default()
    }
}

fn create(pair: &Pair, qp_type: QpType) -> QueuePair<NicBus> {
    let init = QpInit {
        qp_type,
        qpn: (qp_type == QpType::Gsi).then_some(Qpn(1)),
        ..pair.ends[0].qp_init()
    };
    pair.ends[0].pd.create_qp(&init).unwrap()
}

/// One step of the model's table; the mask is what the table requires.
fn step(qp: &QueuePair<NicBus>, base: &QpAttr, t: Type, from: State, to: State, next: QpState) {
    let required = edge(t, from, to).unwrap().required;
    let attr = QpAttr {
        qp_state: next,
        ..base.clone()
    };
    qp.modify(&attr, QpAttrBit(required) | QpAttrBit::STATE).unwrap();
    assert_eq!(qp.query().unwrap().state, next, "{t:?} {from:?}->{to:?}");
}

#[test]
fn every_type_is_created_moved_along_its_table_and_destroyed() {
    for width in [64, 512] {
        let pair = Pair::new(PairParams::new(width, 1)).unwrap();
        let caps = pair.ends[0].device.caps().unwrap();
        let base = good(&pair);
        for (qp_type, t) in TYPES {
            assert!(caps.supports_type(qp_type), "{qp_type}");
            let qp = create(&pair, qp_type);
            assert_eq!(qp.qpn() == Qpn(1), qp_type == QpType::Gsi);
            step(&qp, &base, t, State::Reset, State::Init, QpState::Init);
            step(&qp, &base, t, State::Init, State::Rtr, QpState::Rtr);
            step(&qp, &base, t, State::Rtr, State::Rts, QpState::Rts);
            if t == Type::Dci {
                // It knows no SQD.
                let sqd = QpAttr {
                    qp_state: QpState::Sqd,
                    ..base.clone()
                };
                let refused = qp.modify(&sqd, QpAttrBit::STATE).unwrap_err();
                assert_eq!(refused.gate().map(|g| g.rule), Some(GateRule::IllegalEdge));
            } else {
                step(&qp, &base, t, State::Rts, State::Sqd, QpState::Sqd);
                let mut patience = 100;
                while qp.query().unwrap().sq_draining {
                    patience -= 1;
                    assert!(patience > 0, "{qp_type}: an idle queue drains at once");
                }
                step(&qp, &base, t, State::Sqd, State::Rts, QpState::Rts);
            }
            qp.to_err().unwrap();
            qp.to_reset().unwrap();
            step(&qp, &base, t, State::Reset, State::Init, QpState::Init);
            let init = qp.query().unwrap().init;
            assert_eq!(init.qp_type(), u8::from(qp_type));
            qp.destroy().unwrap();
        }
        // Nothing holds their domain and queues any more.
        pair.ends[0].send_cq.destroy().unwrap();
        pair.ends[0].recv_cq.destroy().unwrap();
        pair.ends[0].pd.dealloc().unwrap();
    }
}

#[test]
fn posting_on_a_type_without_a_data_path_is_refused_by_name() {
    let pair = Pair::new(PairParams::new(64, 1)).unwrap();
    let caps = pair.ends[0].device.caps().unwrap();
    let base = good(&pair);
    for (qp_type, t) in TYPES {
        let qp = create(&pair, qp_type);
        step(&qp, &base, t, State::Reset, State::Init, QpState::Init);
        step(&qp, &base, t, State::Init, State::Rtr, QpState::Rtr);
        step(&qp, &base, t, State::Rtr, State::Rts, QpState::Rts);
        let outcomes = [
            qp.post_send(&[SendWr::send(1, vec![])]),
            qp.post_recv(&[RecvWr { wr_id: 2, sges: vec![] }]),
        ];
        for outcome in outcomes {
            if caps.has_data_path(qp_type) {
                outcome.unwrap();
                continue;
            }
            let Err(Error::Post(e)) = &outcome else {
                panic!("{qp_type}: {outcome:?}")
            };
            assert!(
                matches!(e.kind, PostErrorKind::NoDataPath { qp_type: named } if named == qp_type),
                "{e}"
            );
            assert_eq!((e.bad_wr, e.kind.errno()), (0, 22));
        }
    }
    assert!(!caps.has_data_path(QpType::Ud) && caps.has_data_path(QpType::Rc));
}

#[test]
fn the_gsi_qp_is_number_1_and_there_is_one() {
    let pair = Pair::new(PairParams::new(64, 1)).unwrap();
    let end = &pair.ends[0];
    let gsi = create(&pair, QpType::Gsi);
    let ask = |qp_type, qpn| {
        let init = QpInit {
            qp_type,
            qpn,
            ..end.qp_init()
        };
        end.pd.create_qp(&init).map(|_| ()).unwrap_err().status()
    };
    assert_eq!(ask(QpType::Gsi, Some(Qpn(1))), Some(CmdStatus::InUse));
    assert_eq!(ask(QpType::Gsi, None), Some(CmdStatus::BadParam));
    assert_eq!(ask(QpType::Gsi, Some(Qpn(2))), Some(CmdStatus::BadParam));
    assert_eq!(ask(QpType::Rc, Some(Qpn(1))), Some(CmdStatus::BadParam));
    // It needs no port, and may have none.
    let attr = QpAttr {
        qp_state: QpState::Init,
        ..QpAttr::default()
    };
    let refused = gsi.modify(&attr, attr::INIT_MASK | QpAttrBit::QKEY).unwrap_err();
    let Some(gate) = refused.gate() else {
        panic!("{refused}")
    };
    assert_eq!(gate.rule, GateRule::ExcessAttrs);
    // The number lives on with its index: the same in its next life.
    gsi.destroy().unwrap();
    assert_eq!(create(&pair, QpType::Gsi).qpn(), Qpn(1));
}

#[test]
fn a_dct_needs_an_srq_takes_its_number_at_rtr_and_goes_no_further() {
    for width in [64, 512] {
        let pair = Pair::new(PairParams::new(width, 1)).unwrap();
        let end = &pair.ends[0];
        let base = good(&pair);
        let init = QpInit {
            qp_type: QpType::Dct,
            ..end.qp_init()
        };
        let without = end.pd.create_qp(&init).map(|_| ()).unwrap_err();
        assert_eq!(without.status(), Some(CmdStatus::BadParam), "{without}");
        let srq = end.pd.create_srq(&SrqInit::default()).unwrap();
        let dct = end
            .pd
            .create_qp(&QpInit {
                srq: Some(srq.srqn()),
                ..init
            })
            .unwrap();
        assert_eq!(dct.peer_qpn().unwrap(), None);
        step(&dct, &base, Type::Dct, State::Reset, State::Init, QpState::Init);
        assert_eq!(dct.peer_qpn().unwrap(), None);
        step(&dct, &base, Type::Dct, State::Init, State::Rtr, QpState::Rtr);
        assert_eq!(dct.peer_qpn().unwrap(), Some(dct.qpn()));
        for next in [QpState::Rts, QpState::Err, QpState::Reset, QpState::Init, QpState::Sqd] {
            let attr = QpAttr {
                qp_state: next,
                ..base.clone()
            };
            let refused = dct.modify(&attr, QpAttrBit::STATE).unwrap_err();
            assert_eq!(refused.gate().map(|g| g.rule), Some(GateRule::IllegalEdge), "{next}");
        }
        let Err(Error::Post(e)) = dct.post_send(&[SendWr::send(1, vec![])]) else {
            panic!("a DCT sends nothing")
        };
        assert_eq!(e.kind.errno(), 22);
        // It holds its queue until it is destroyed, and that is its only end.
        assert_eq!(srq.destroy().unwrap_err().status(), Some(CmdStatus::InUse));
        dct.destroy().unwrap();
        srq.destroy().unwrap();
    }
}

#[test]
fn an_xrc_target_stands_in_a_domain_and_moves_along_its_table() {
    for width in [64, 512] {
        let pair = Pair::new(PairParams::new(width, 1)).unwrap();
        let end = &pair.ends[0];
        let base = good(&pair);
        let domain = end.device.alloc_xrcd().unwrap();
        let init = QpInit {
            qp_type: QpType::XrcTgt,
            xrcd: Some(domain.handle()),
            ..end.qp_init()
        };
        let qp = end.pd.create_qp(&init).unwrap();
        let t = Type::XrcTgt;
        for (from, to, next) in [
            (State::Reset, State::Init, QpState::Init),
            (State::Init, State::Rtr, QpState::Rtr),
            (State::Rtr, State::Rts, QpState::Rts),
        ] {
            step(&qp, &base, t, from, to, next);
        }
        // It belongs to no PD, and to no list of one.
        let of_pd = QpFilter {
            pd: Some(end.pd.handle()),
            ..QpFilter::default()
        };
        assert_eq!(end.device.list_qps(of_pd).unwrap(), []);
        assert_eq!(end.device.list_qps(QpFilter::default()).unwrap(), [qp.qpn()]);
        assert_eq!(domain.dealloc().unwrap_err().status(), Some(CmdStatus::InUse));
        qp.destroy().unwrap();
        domain.dealloc().unwrap();
    }
}
