// SPDX-License-Identifier: Apache-2.0
//! `rnic_qp`: queue pairs that receive from a shared receive queue, DCTs, and XRC targets in their domain.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use openrnic_testbench::model::gate::{State, Type};
use openrnic_testbench::model::qp::{Command, Op, Status, flag};
use openrnic_testbench::qp_pair::{LIST, Pair, legal};

fn create(qp_type: Type, count: u32) -> Command {
    Command {
        qp_type: qp_type as u8,
        count,
        pd: 3,
        send_cq: 5,
        recv_cq: 200,
        list_addr: LIST,
        ..Command::new(Op::Create)
    }
}

fn on_srq(qp_type: Type, srq: u16) -> Command {
    Command {
        flags: flag::USE_SRQ,
        srq,
        ..create(qp_type, 1)
    }
}

#[test]
fn a_qp_with_an_srq_counts_as_its_user_and_needs_no_receive_ring() {
    let mut p = Pair::new(6, 10);
    for qp_type in [Type::Rc, Type::Uc, Type::Ud, Type::Dct] {
        // What would describe a receive ring is not looked at.
        let out = p.run(&Command {
            log_rq_stride: 15,
            rq_base: 0x123,
            rq_pitch: 7,
            count: 2,
            ..on_srq(qp_type, 9)
        });
        assert_eq!(out.completion.status, Status::Ok, "{qp_type:?}");
        assert_eq!(out.refs[0].srq, Some(9));
        let first = out.completion.handle;
        p.check("with an SRQ");
        let out = p.run(&Command {
            handle: first,
            ..Command::new(Op::Destroy)
        });
        assert_eq!((out.refs[0].n, out.refs[0].srq), (-1, Some(9)));
    }
}

#[test]
fn an_srq_must_exist_and_fit_the_type() {
    let mut p = Pair::new(6, 10);
    for srq in [1, 62, 64, 0x109, 0xffff] {
        let out = p.run(&on_srq(Type::Rc, srq));
        assert_eq!(
            (out.completion.status, out.completion.detail),
            (Status::BadHandle, 18),
            "SRQ {srq}"
        );
    }
    for qp_type in [Type::RawPacket, Type::XrcIni, Type::XrcTgt, Type::Dci] {
        let out = p.run(&on_srq(qp_type, 9));
        assert_eq!(
            (out.completion.status, out.completion.detail),
            (Status::BadParam, 1),
            "{qp_type:?}"
        );
    }
}

#[test]
fn a_dct_needs_an_srq_and_goes_no_further_than_rtr() {
    let mut p = Pair::new(6, 10);
    let out = p.run(&create(Type::Dct, 1));
    assert_eq!((out.completion.status, out.completion.detail), (Status::BadParam, 1));
    let out = p.run(&Command {
        send_cq: 0x4242,
        ..on_srq(Type::Dct, 63)
    });
    assert_eq!((out.completion.status, out.refs[0].send_cq), (Status::Ok, None));
    let qpn = out.completion.handle;
    p.modify(qpn, 1, &legal(Type::Dct, State::Init));
    let out = p.modify(qpn, 1, &legal(Type::Dct, State::Rtr));
    assert_eq!(out.completion.status, Status::Ok);
    for next in [State::Rts, State::Reset, State::Err] {
        let out = p.modify(qpn, 1, &legal(Type::Rc, next));
        assert_eq!(out.completion.status, Status::GateRefused, "{next:?}");
    }
    p.destroy(&[qpn]);
}

#[test]
fn the_end_of_a_life_on_an_srq_is_told() {
    let mut p = Pair::new(6, 10);
    let qpn = p.run(&on_srq(Type::Rc, 0)).completion.handle;
    p.bring(qpn, 1, State::Rts);
    let out = p.modify(qpn, 1, &legal(Type::Rc, State::Reset));
    assert!(out.changes[0].left_srq);
    let out = p.run(&Command {
        handle: qpn,
        ..Command::new(Op::Destroy)
    });
    assert!(out.changes[0].left_srq);
}

#[test]
fn an_xrc_target_belongs_to_a_domain_and_not_to_a_pd() {
    let mut p = Pair::new(6, 10);
    for pd in [255, 16, 0x103, 0] {
        let out = p.run(&Command {
            pd,
            ..create(Type::XrcTgt, 1)
        });
        assert_eq!(
            (out.completion.status, out.completion.detail),
            (Status::BadHandle, 12),
            "domain {pd}"
        );
    }
    let out = p.run(&Command {
        pd: 15,
        ..create(Type::XrcTgt, 1)
    });
    assert_eq!(out.completion.status, Status::Ok);
    assert!(out.refs[0].in_xrcd);
    // The other half of XRC keeps its PD.
    let out = p.run(&Command {
        pd: 255,
        ..create(Type::XrcIni, 1)
    });
    assert_eq!((out.completion.status, out.refs[0].in_xrcd), (Status::Ok, false));
}
