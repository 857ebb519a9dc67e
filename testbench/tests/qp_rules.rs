// SPDX-License-Identifier: Apache-2.0
//! The model's transcription of the transition table against the table that was taken from the Linux
//! kernel by machine (`data/qp_table.json`): two ways from the same source, which must agree.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::model::gate::{Edge, State, Type, attr, edge};
use serde_json::Value;

fn state(name: &str) -> State {
    match name {
        "RESET" => State::Reset,
        "INIT" => State::Init,
        "RTR" => State::Rtr,
        "RTS" => State::Rts,
        "SQD" => State::Sqd,
        "SQE" => State::Sqe,
        "ERR" => State::Err,
        other => panic!("state {other}"),
    }
}

fn qp_type(name: &str) -> Type {
    match name {
        "RC" => Type::Rc,
        "UC" => Type::Uc,
        "UD" => Type::Ud,
        "XRC_INI" => Type::XrcIni,
        "XRC_TGT" => Type::XrcTgt,
        "RAW_PACKET" => Type::RawPacket,
        other => panic!("type {other}"),
    }
}

const KERNEL_TYPES: [Type; 6] = [
    Type::Rc,
    Type::Uc,
    Type::Ud,
    Type::XrcIni,
    Type::XrcTgt,
    Type::RawPacket,
];

fn rows() -> Vec<(State, State, Type, u32, u32)> {
    let table: Value = serde_json::from_str(include_str!("../data/qp_table.json")).unwrap();
    let mask = |v: &Value| u32::try_from(v.as_u64().unwrap()).unwrap();
    table["transitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| {
            let name = |key: &str| r[key].as_str().unwrap();
            (
                state(name("cur")),
                state(name("next")),
                qp_type(name("qpt")),
                mask(&r["req_mask"]),
                mask(&r["allow_mask"]),
            )
        })
        .collect()
}

#[test]
fn every_row_of_the_kernels_table_is_the_models() {
    let rows = rows();
    assert_eq!(rows.len(), 132);
    for (from, to, t, required, allowed) in rows {
        let Some(e) = edge(t, from, to) else {
            panic!("{t:?} {from:?}->{to:?} is missing")
        };
        // The kernel's masks hold STATE where it is implied.
        assert_eq!(
            e.required | attr::STATE,
            required | attr::STATE,
            "{t:?} {from:?}->{to:?} required"
        );
        assert_eq!(
            e.required | e.optional | attr::STATE,
            allowed,
            "{t:?} {from:?}->{to:?} allowed"
        );
    }
}

#[test]
fn what_has_no_row_is_illegal() {
    let rows = rows();
    for t in KERNEL_TYPES {
        for from in State::ALL {
            for to in State::ALL {
                let has_row = rows.iter().any(|r| (r.0, r.1, r.2) == (from, to, t));
                assert_eq!(edge(t, from, to).is_some(), has_row, "{t:?} {from:?}->{to:?}");
            }
        }
    }
}

#[test]
fn the_kernels_attribute_bits_are_the_models() {
    let table: Value = serde_json::from_str(include_str!("../data/qp_table.json")).unwrap();
    for (name, bit) in [
        ("STATE", attr::STATE),
        ("CUR_STATE", attr::CUR_STATE),
        ("EN_SQD_ASYNC_NOTIFY", attr::EN_SQD_ASYNC_NOTIFY),
        ("ACCESS_FLAGS", attr::ACCESS_FLAGS),
        ("PKEY_INDEX", attr::PKEY_INDEX),
        ("PORT", attr::PORT),
        ("QKEY", attr::QKEY),
        ("AV", attr::AV),
        ("PATH_MTU", attr::PATH_MTU),
        ("TIMEOUT", attr::TIMEOUT),
        ("RETRY_CNT", attr::RETRY_CNT),
        ("RNR_RETRY", attr::RNR_RETRY),
        ("RQ_PSN", attr::RQ_PSN),
        ("MAX_QP_RD_ATOMIC", attr::MAX_QP_RD_ATOMIC),
        ("ALT_PATH", attr::ALT_PATH),
        ("MIN_RNR_TIMER", attr::MIN_RNR_TIMER),
        ("SQ_PSN", attr::SQ_PSN),
        ("MAX_DEST_RD_ATOMIC", attr::MAX_DEST_RD_ATOMIC),
        ("PATH_MIG_STATE", attr::PATH_MIG_STATE),
        ("CAP", attr::CAP),
        ("DEST_QPN", attr::DEST_QPN),
        ("RATE_LIMIT", attr::RATE_LIMIT),
    ] {
        assert_eq!(table["bits"][name].as_u64(), Some(u64::from(bit)), "{name}");
    }
}

#[test]
fn gsi_follows_ud_without_port() {
    for from in State::ALL {
        for to in State::ALL {
            let without_port = edge(Type::Ud, from, to).map(|e| Edge {
                required: e.required & !attr::PORT,
                optional: e.optional & !attr::PORT,
            });
            assert_eq!(edge(Type::Gsi, from, to), without_port, "{from:?}->{to:?}");
        }
    }
}

#[test]
fn a_dc_target_only_goes_to_init_and_rtr() {
    for from in State::ALL {
        for to in State::ALL {
            let legal = matches!((from, to), (State::Reset, State::Init) | (State::Init, State::Rtr));
            assert_eq!(edge(Type::Dct, from, to).is_some(), legal, "{from:?}->{to:?}");
        }
    }
}

#[test]
fn a_dc_initiator_knows_no_sqd_and_no_sqe() {
    for from in State::ALL {
        for to in [State::Sqd, State::Sqe] {
            assert_eq!(edge(Type::Dci, from, to), None);
        }
        assert_eq!(
            edge(Type::Dci, from, State::Reset),
            Some(Edge {
                required: 0,
                optional: 0
            })
        );
        assert_eq!(edge(Type::Dci, from, State::Err).is_some(), from != State::Reset);
    }
}
