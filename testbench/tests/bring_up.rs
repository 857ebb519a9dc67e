// SPDX-License-Identifier: Apache-2.0
//! The whole NIC seen from its driver: enumeration, capabilities, objects, queue pairs in batches.
#![allow(clippy::unwrap_used)]

use openrnic_driver::spec::{CounterId, GateRule, Mtu, QpAttrBit, QpState};
use openrnic_driver::{BatchInit, Error, QpAttr, attr};
use openrnic_testbench::e2e::{Pair, PairParams};

fn widths(test: impl Fn(Pair)) {
    for width in [64, 512] {
        test(Pair::new(PairParams::new(width, 1)).unwrap());
    }
}

#[test]
fn the_device_describes_itself() {
    widths(|pair| {
        let caps = pair.ends[0].device.caps().unwrap();
        println!("{caps:?}");
        pair.ends[0].device.counters().unwrap();
    });
}

#[test]
fn sixty_four_qps_are_created_by_one_command_and_moved_by_another() {
    widths(|pair| {
        let end = &pair.ends[0];
        let batch = end.pd.create_qps(64, &end.qp_init(), &BatchInit::range()).unwrap();
        assert_eq!(batch.qpns().len(), 64);
        assert!(batch.is_range());
        let init = QpAttr {
            qp_state: QpState::Init,
            ..QpAttr::default()
        };
        let before = end.device.counters().unwrap();
        let refused = batch.modify(&init, QpAttrBit(attr::INIT_MASK.0 & !QpAttrBit::PORT.0));
        let Err(Error::Gate(refusal)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(refusal.rule, GateRule::MissingAttrs);
        assert!(
            batch
                .qps()
                .iter()
                .all(|qp| qp.query().unwrap().attr.qp_state == QpState::Reset)
        );
        let done = batch.modify(&init, attr::INIT_MASK).unwrap();
        println!("{} cycles for 64 QPs", done.exec_cycles);
        for qp in batch.qps() {
            assert_eq!(qp.query().unwrap().attr.qp_state, QpState::Init);
        }
        let counted = end.device.counters().unwrap().since(&before);
        assert_eq!(counted.get(CounterId::GateMissingAttrs), 1);
        batch.destroy().unwrap();
    });
}

#[test]
fn a_pair_is_connected() {
    widths(|pair| {
        let qps = pair.connected(Mtu::Mtu1024, [100, 200]).unwrap();
        for qp in &qps {
            assert_eq!(qp.query().unwrap().attr.qp_state, QpState::Rts);
        }
    });
}
