// SPDX-License-Identifier: Apache-2.0
//! A device that writes any bytes into the driver's rings: errors, never a panic, never an endless wait.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod mock;

use mock::Mock;
use openrnic_driver::attr::{INIT_MASK, RTR_MASK, RTS_MASK};
use openrnic_driver::spec::{Cqe, QpState, QpType};
use openrnic_driver::*;
use proptest::prelude::*;

/// Seed of all cases of this file, from OPENRNIC_SEED; printed when a test fails.
fn config() -> ProptestConfig {
    let seed = std::env::var("OPENRNIC_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1);
    println!("OPENRNIC_SEED={seed}");
    let rng_seed = proptest::test_runner::RngSeed::Fixed(seed);
    ProptestConfig {
        cases: 300,
        failure_persistence: None,
        rng_seed,
        ..ProptestConfig::default()
    }
}

fn bytes32() -> impl Strategy<Value = [u8; 32]> {
    any::<[u8; 32]>()
}

fn ready() -> (
    Mock,
    Device<Mock>,
    ProtectionDomain<Mock>,
    CompletionQueue<Mock>,
    QueuePair<Mock>,
) {
    let mock = Mock::new();
    let params = OpenParams {
        command_cycles: 2000,
        ..OpenParams::default()
    };
    let device = Device::open(mock.clone(), params).unwrap();
    let pd = device.alloc_pd().unwrap();
    let cq = device.create_cq(&CqInit::entries(16)).unwrap();
    let qp = pd.create_qp(&QpInit::new(QpType::Rc, &cq)).unwrap();
    let av = AddressVector {
        dmac: Some([2; 6]),
        ..AddressVector::default()
    };
    for (qp_state, mask) in [
        (QpState::Init, INIT_MASK),
        (QpState::Rtr, RTR_MASK),
        (QpState::Rts, RTS_MASK),
    ] {
        qp.modify(
            &QpAttr {
                qp_state,
                av,
                ..QpAttr::default()
            },
            mask,
        )
        .unwrap();
    }
    qp.post_send(&[SendWr::send(1, vec![]), SendWr::send(2, vec![])])
        .unwrap();
    qp.post_recv(&[RecvWr { wr_id: 3, sges: vec![] }]).unwrap();
    (mock, device, pd, cq, qp)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes_as_command_completions(list in proptest::collection::vec((bytes32(), any::<bool>()), 1..8)) {
        let (mock, device, pd, cq, qp) = ready();
        for (mut bytes, keep_tag) in list {
            // A right tag and opcode lets the rest of the bytes be judged.
            if keep_tag {
                let next = mock.with(|s| spec::CmdHeader(*s.commands.last().unwrap()).tag()).wrapping_add(1);
                bytes[0..2].copy_from_slice(&next.to_le_bytes());
                bytes[2] = u8::from(spec::CmdOpcode::CreateQp);
            }
            mock.with(|s| s.lies.completions.push_back(bytes));
            let _ = pd.create_qps(3, &QpInit::new(QpType::Rc, &cq), &BatchInit::default());
        }
        let _ = (qp.query(), device.counters(), device.list_qps(QpFilter::default()), qp.destroy(), cq.destroy(), device.create_cq(&CqInit::default()));
        prop_assert!(device.reset().is_ok());
    }

    #[test]
    fn any_bytes_as_completions_of_work(list in proptest::collection::vec((bytes32(), any::<bool>()), 1..40)) {
        let (mock, _, _, cq, qp) = ready();
        for (bytes, keep_qpn) in list {
            let entry = Cqe(bytes);
            mock.cqe(0, if keep_qpn { entry.with_qpn(qp.qpn().0) } else { entry });
            let _ = cq.poll(4);
        }
        let _ = (cq.poll(usize::MAX), qp.to_reset(), cq.wait(1, 500));
    }

    #[test]
    fn any_bytes_in_all_rings(fill in any::<u8>(), noise in proptest::collection::vec(any::<u8>(), 256)) {
        let (mock, device, _, cq, qp) = ready();
        mock.with(|s| {
            let bufs: Vec<(u64, usize)> = s.bufs.iter().map(|(a, l)| (*a, *l)).collect();
            for (addr, len) in bufs {
                let data: Vec<u8> = (0..len).map(|i| noise[i % 256] ^ fill).collect();
                s.put(addr, &data);
            }
        });
        for _ in 0..4 {
            let _ = (cq.poll(100), device.get_async_event(), device.get_cq_event(1), device.set_pkey(0, 1), qp.query());
        }
        prop_assert!(device.reset().is_ok());
    }

    #[test]
    fn any_events(list in proptest::collection::vec((0u32..4, any::<u8>(), any::<u32>()), 1..100)) {
        let (mock, device, ..) = ready();
        for (eqn, event, number) in list {
            mock.eqe(eqn, event, number);
            let _ = (device.get_async_event(), device.get_cq_event(1));
        }
    }

    #[test]
    fn any_registers_at_bring_up(config in proptest::collection::vec((0usize..64, any::<u32>()), 1..6), magic in any::<u32>()) {
        let mock = Mock::new();
        mock.with(|s| {
            for (at, value) in config {
                s.config[at] = value;
            }
            s.lies.magic = (magic & 1 != 0).then_some(magic);
        });
        let _ = Device::open(mock, OpenParams::default());
    }
}
