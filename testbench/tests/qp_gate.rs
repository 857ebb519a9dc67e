// SPDX-License-Identifier: Apache-2.0
//! `rnic_qp_gate` against the reference model: every edge of every type with the masks around its rule, every
//! attribute at the ends of its range, and random requests.
#![allow(clippy::unwrap_used)]

use openrnic_sim::model::BlockModel;
use openrnic_testbench::model::gate::{self, Attrs, Limits, Rule, State, Subject, Type, attr};
use openrnic_testbench::qp_bench::set_port_cfg;

/// The gate on its own, with the model beside it.
struct Gate {
    dut: BlockModel,
    limits: Limits,
    asked: u32,
}

impl Gate {
    fn new() -> Self {
        Self::with_reads(Limits::default().rd_atomic)
    }

    /// Of a build whose QPs have slots for so many READs and atomics.
    fn with_reads(rd_atomic: u8) -> Self {
        let mut builder = BlockModel::builder("rnic_qp_gate").param("MaxRd", u64::from(rd_atomic));
        if let Ok(cut) = std::env::var("OPENRNIC_CUT") {
            builder = builder.define(&cut);
        }
        let mut dut = builder.build().unwrap();
        let limits = Limits {
            pkeys: [0xffff, 0, 0x8000, 0x0001, 0x8001, 0, 0, 0x7fff],
            mtu: 4,
            rd_atomic,
            ..Limits::default()
        };
        set_port_cfg(&mut dut, &limits);
        Self { dut, limits, asked: 0 }
    }

    /// Asks the block and the model; they must agree.
    fn ask(
        &mut self,
        type_code: u8,
        state: State,
        draining: bool,
        port: u8,
        request: &Attrs,
    ) -> Result<(), gate::Refusal> {
        let subject = Subject {
            qp_type: Type::from_code(type_code),
            state,
            draining,
            port,
        };
        let expected = gate::check(&subject, request, &self.limits);
        let words: Vec<u32> = request
            .to_bytes()
            .chunks_exact(4)
            .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
            .collect();
        self.dut.set("qp_type_i", u64::from(type_code));
        self.dut.set("state_i", state as u64);
        self.dut.set("draining_i", u64::from(draining));
        self.dut.set("port_i", u64::from(port));
        self.dut.set_wide("attr_i", &words);
        self.dut.clocks(2);
        let got = match self.dut.get("rule_o") {
            0 => Ok(()),
            rule => Err((rule as u8, self.dut.get("detail_o") as u32)),
        };
        assert_eq!(self.dut.get("ok_o") == 1, got.is_ok());
        assert_eq!(
            got,
            expected.map_err(|r| (r.rule as u8, r.detail)),
            "{subject:?} {:#x} {request:?}: left the block, right the model",
            request.mask
        );
        self.asked += 1;
        expected
    }
}

/// A record whose values are all good.
fn good(state: State) -> Attrs {
    Attrs {
        qp_state: state as u8,
        cur_qp_state: 0,
        access_flags: 0xf,
        path_mig_state: 2,
        pkey_index: 0,
        port: 1,
        path_mtu: 4,
        timeout: 31,
        retry_cnt: 7,
        rnr_retry: 7,
        min_rnr_timer: 31,
        max_rd_atomic: 16,
        max_dest_rd_atomic: 16,
        rq_psn: 0xff_ffff,
        sq_psn: 0xff_ffff,
        dest_qpn: 0xff_ffff,
        qkey: 0xffff_ffff,
        sgid_index: 15,
        av_port: 1,
        is_global: true,
        ..Attrs::default()
    }
}

#[test]
fn every_edge_of_every_type_with_every_mask_one_bit_away() {
    let mut gate = Gate::new();
    let mut legal = 0;
    for type_code in 0..16 {
        for from in State::ALL {
            for next in 0..8u8 {
                let mut request = good(State::Reset);
                request.qp_state = next;
                request.cur_qp_state = from as u8;
                let way = Type::from_code(type_code)
                    .zip(State::from_code(next))
                    .and_then(|(t, to)| gate::edge(t, from, to));
                let (required, optional) = way.map_or((0, 0), |e| (e.required, e.optional));
                let alt = optional & attr::ALT_PATH; // never accepted: no path migration
                for base in [required, required | optional & !alt, required | optional] {
                    for flip in (0..32).map(|b| 1u32 << b).chain([0]) {
                        request.mask = attr::STATE | base ^ flip;
                        let answer = gate.ask(type_code, from, false, 1, &request);
                        legal += u32::from(answer.is_ok());
                    }
                }
                // Without STATE: from the state to itself.
                for mask in [0, required, optional & !alt] {
                    request.mask = mask & !attr::STATE;
                    let _ = gate.ask(type_code, from, false, 1, &request);
                }
            }
        }
    }
    assert!(legal > 1000 && gate.asked > 70_000, "{legal} of {}", gate.asked);
}

#[test]
fn every_value_at_the_ends_of_its_range() {
    let mut gate = Gate::new();
    // Each attribute alone on top of an edge that takes it, with values around its bound.
    type Set = fn(&mut Attrs, u32);
    type Case = (u32, Type, State, State, Set, &'static [u32]);
    let cases: [Case; 15] = [
        (
            attr::PKEY_INDEX,
            Type::Rc,
            State::Init,
            State::Init,
            |a, v| a.pkey_index = v as u16,
            &[0, 1, 2, 3, 4, 6, 7, 8, 9, 16, 0x100, 0xffff],
        ),
        (
            attr::PORT,
            Type::Rc,
            State::Init,
            State::Init,
            |a, v| a.port = v as u8,
            &[0, 1, 2, 3, 0x81, 0xff],
        ),
        (
            attr::ACCESS_FLAGS,
            Type::Rc,
            State::Init,
            State::Init,
            |a, v| a.access_flags = v as u8,
            &[0, 1, 2, 4, 8, 15],
        ),
        (
            attr::QKEY,
            Type::Ud,
            State::Init,
            State::Init,
            |a, v| a.qkey = v,
            &[0, 0x8000_0000, u32::MAX],
        ),
        (
            attr::PATH_MTU,
            Type::Rc,
            State::Init,
            State::Rtr,
            |a, v| a.path_mtu = v as u8,
            &[0, 1, 2, 3, 4, 5, 6, 7, 8, 0x84, 0xff],
        ),
        (
            attr::RQ_PSN,
            Type::Rc,
            State::Init,
            State::Rtr,
            |a, v| a.rq_psn = v,
            &[0, 0xff_ffff, 0x100_0000, 0x8000_0000],
        ),
        (
            attr::DEST_QPN,
            Type::Rc,
            State::Init,
            State::Rtr,
            |a, v| a.dest_qpn = v,
            &[0, 0xff_ffff, 0x100_0000, 0x8000_0000],
        ),
        (
            attr::MAX_DEST_RD_ATOMIC,
            Type::Rc,
            State::Init,
            State::Rtr,
            |a, v| a.max_dest_rd_atomic = v as u8,
            &[0, 1, 16, 17, 128, 255],
        ),
        (
            attr::MIN_RNR_TIMER,
            Type::Rc,
            State::Init,
            State::Rtr,
            |a, v| a.min_rnr_timer = v as u8,
            &[0, 31, 32, 64, 255],
        ),
        (
            attr::TIMEOUT,
            Type::Rc,
            State::Rtr,
            State::Rts,
            |a, v| a.timeout = v as u8,
            &[0, 31, 32, 255],
        ),
        (
            attr::RETRY_CNT,
            Type::Rc,
            State::Rtr,
            State::Rts,
            |a, v| a.retry_cnt = v as u8,
            &[0, 7, 8, 255],
        ),
        (
            attr::RNR_RETRY,
            Type::Rc,
            State::Rtr,
            State::Rts,
            |a, v| a.rnr_retry = v as u8,
            &[0, 7, 8, 255],
        ),
        (
            attr::MAX_QP_RD_ATOMIC,
            Type::Rc,
            State::Rtr,
            State::Rts,
            |a, v| a.max_rd_atomic = v as u8,
            &[0, 16, 17, 255],
        ),
        (
            attr::SQ_PSN,
            Type::Rc,
            State::Rtr,
            State::Rts,
            |a, v| a.sq_psn = v,
            &[0, 0xff_ffff, 0x100_0000, u32::MAX],
        ),
        (
            attr::PATH_MIG_STATE,
            Type::Rc,
            State::Rtr,
            State::Rts,
            |a, v| a.path_mig_state = v as u8,
            &[0, 1, 2, 3],
        ),
    ];
    for (bit, t, from, to, set, values) in cases {
        let (mut ok, mut bad) = (0, 0);
        for v in values {
            let mut request = good(to);
            request.mask = attr::STATE | gate::edge(t, from, to).unwrap().required | bit;
            set(&mut request, *v);
            match gate.ask(t as u8, from, false, 1, &request) {
                Ok(()) => ok += 1,
                Err(r) => {
                    assert_eq!((r.rule, r.detail), (Rule::BadValue, bit));
                    bad += 1;
                }
            }
        }
        let has_bad = !matches!(bit, attr::ACCESS_FLAGS | attr::QKEY);
        assert!(ok > 0 && (bad > 0) == has_bad, "{bit:#x}: {ok} accepted, {bad} refused");
    }
}

#[test]
fn an_address_vector_is_global_from_a_gid_of_the_qps_own_port() {
    let mut gate = Gate::new();
    let required = gate::edge(Type::Rc, State::Init, State::Rtr).unwrap().required;
    for (is_global, sgid, av_port, own_port, fits) in [
        (true, 15, 1, 1, true),
        (false, 15, 1, 1, false),
        (true, 16, 1, 1, false),
        (true, 255, 1, 1, false),
        (true, 0, 0, 1, false),
        (true, 0, 2, 1, false),
        (true, 0, 1, 0, false),
        (true, 0, 0, 0, false),
    ] {
        let request = Attrs {
            mask: attr::STATE | required,
            is_global,
            sgid_index: sgid,
            av_port,
            ..good(State::Rtr)
        };
        let answer = gate.ask(Type::Rc as u8, State::Init, false, own_port, &request);
        assert_eq!(answer.is_ok(), fits);
        // With PORT in the same request that is the port it must match.
        let request = Attrs {
            mask: attr::PORT | attr::AV,
            port: own_port,
            ..request
        };
        let _ = gate.ask(Type::Rc as u8, State::Sqd, false, 1, &request);
    }
}

#[test]
fn an_address_vector_goes_to_an_address_of_the_version_of_ip_that_it_comes_from() {
    let mut gate = Gate::new();
    gate.limits.gids_v4 = 1 << 3;
    gate.limits.gids_v6 = 1 << 12 | 1 << 15;
    set_port_cfg(&mut gate.dut, &gate.limits.clone());
    let required = gate::edge(Type::Rc, State::Init, State::Rtr).unwrap().required;
    let mapped = *b"\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x02";
    let mut dgids = vec![mapped];
    for bit in 0..128 {
        let mut dgid = mapped;
        dgid[bit / 8] ^= 1 << (bit % 8);
        dgids.push(dgid);
    }
    for (n, dgid) in dgids.into_iter().enumerate() {
        // The mapped prefix is the first 96 bits.
        let v6 = (1..=96).contains(&n);
        for (sgid_index, fits) in [(3, !v6), (12, v6), (15, v6), (0, true), (11, true)] {
            let request = Attrs {
                mask: attr::STATE | required,
                dgid,
                sgid_index,
                ..good(State::Rtr)
            };
            let answer = gate.ask(Type::Rc as u8, State::Init, false, 1, &request);
            assert_eq!(answer.is_ok(), fits, "{dgid:02x?} from entry {sgid_index}");
            // Not judged when it is not given.
            let request = Attrs {
                mask: attr::STATE | attr::CUR_STATE,
                qp_state: State::Rts as u8,
                cur_qp_state: State::Sqd as u8,
                ..request
            };
            assert!(gate.ask(Type::Rc as u8, State::Sqd, false, 1, &request).is_ok());
        }
    }
}

#[test]
fn a_path_mtu_beyond_the_ports_is_a_bad_value() {
    let mut gate = Gate::new();
    let required = gate::edge(Type::Uc, State::Init, State::Rtr).unwrap().required;
    for port_mtu in 0..=7 {
        gate.limits.mtu = port_mtu;
        set_port_cfg(&mut gate.dut, &gate.limits.clone());
        for path_mtu in 0..=8 {
            let request = Attrs {
                mask: attr::STATE | required,
                path_mtu,
                ..good(State::Rtr)
            };
            let answer = gate.ask(Type::Uc as u8, State::Init, false, 1, &request);
            assert_eq!(
                answer.is_ok(),
                (1..=5).contains(&path_mtu) && path_mtu <= port_mtu,
                "{path_mtu} of {port_mtu}"
            );
        }
    }
}

#[test]
fn no_more_reads_are_taken_than_the_build_has_slots_for() {
    let mut gate = Gate::with_reads(4);
    for (from, to) in [(State::Init, State::Rtr), (State::Rtr, State::Rts)] {
        let required = gate::edge(Type::Rc, from, to).unwrap().required;
        for reads in [0, 1, 3, 4, 5, 8, 16, 17, 255] {
            let request = Attrs {
                mask: attr::STATE | required,
                max_rd_atomic: reads,
                max_dest_rd_atomic: reads,
                ..good(to)
            };
            let answer = gate.ask(Type::Rc as u8, from, false, 1, &request);
            assert_eq!(answer.is_ok(), reads <= 4, "{reads} on the way to {to:?}");
        }
    }
}

#[test]
fn cur_state_must_be_the_qps_own() {
    let mut gate = Gate::new();
    for from in State::ALL {
        for cur in 0..8 {
            let request = Attrs {
                mask: attr::STATE | attr::CUR_STATE,
                cur_qp_state: cur,
                ..good(State::Rts)
            };
            let answer = gate.ask(Type::Ud as u8, from, false, 1, &request);
            if cur != from as u8 {
                assert_eq!(answer.unwrap_err().rule, Rule::WrongCurState);
            }
        }
    }
}

#[test]
fn while_draining_only_err_and_reset() {
    let mut gate = Gate::new();
    for next in 0..8 {
        let request = Attrs {
            mask: attr::STATE,
            qp_state: next,
            ..Attrs::default()
        };
        let answer = gate.ask(Type::Rc as u8, State::Sqd, true, 1, &request);
        assert_eq!(answer.is_ok(), next == 0 || next == 6, "{next}");
        if next == 3 || next == 4 {
            assert_eq!(answer.unwrap_err().rule, Rule::Draining);
        }
    }
    assert_eq!(
        gate.ask(Type::Rc as u8, State::Sqd, true, 1, &Attrs::default())
            .unwrap_err()
            .rule,
        Rule::Draining
    );
}

#[test]
fn the_first_rule_in_order_refuses_and_the_lowest_bad_attribute_is_named() {
    let mut gate = Gate::new();
    let mut request = Attrs {
        mask: attr::STATE | attr::CUR_STATE | attr::CAP,
        cur_qp_state: 6,
        ..good(State::Rts)
    };
    let mut ask = |r: &Attrs| gate.ask(Type::Rc as u8, State::Rtr, false, 1, r).unwrap_err();
    assert_eq!(ask(&request).rule, Rule::WrongCurState);
    request.cur_qp_state = State::Rtr as u8;
    request.qp_state = State::Init as u8;
    assert_eq!(ask(&request).rule, Rule::IllegalEdge);
    request.qp_state = State::Rts as u8;
    assert_eq!(ask(&request).rule, Rule::MissingAttrs);
    request.mask |= attr::TIMEOUT | attr::RETRY_CNT | attr::RNR_RETRY | attr::SQ_PSN | attr::MAX_QP_RD_ATOMIC;
    let r = ask(&request);
    assert_eq!((r.rule, r.detail), (Rule::ExcessAttrs, attr::CAP));
    request.mask &= !attr::CAP;
    request.mask |= attr::ALT_PATH;
    request.sq_psn = 1 << 24;
    let r = ask(&request);
    assert_eq!((r.rule, r.detail), (Rule::BadValue, attr::ALT_PATH));
    request.retry_cnt = 8;
    assert_eq!(ask(&request).detail, attr::RETRY_CNT);
}

#[test]
fn random_requests_are_answered_as_by_the_model() {
    let seed = openrnic_testbench::seed(1);
    let mut gate = Gate::new();
    let mut rng = openrnic_testbench::qp_bench::Random::new(seed);
    let mut accepted = 0;
    for _ in 0..40_000 {
        let qp_type = *rng.pick(&Type::ALL);
        let from = *rng.pick(&State::ALL);
        let mut request = rng.attrs();
        // Mostly near a legal request.
        if rng.chance(3, 4) {
            let to = *rng.pick(&State::ALL);
            request.qp_state = to as u8;
            if let Some(way) = gate::edge(qp_type, from, to) {
                request.mask = attr::STATE | way.required | way.optional & rng.bits() as u32;
                if rng.chance(1, 4) {
                    request.mask ^= 1 << rng.below(32);
                }
            }
            if rng.chance(3, 4) {
                request.cur_qp_state = from as u8;
            }
        }
        let draining = from == State::Sqd && rng.chance(1, 4);
        let port = rng.below(3) as u8;
        accepted += u32::from(gate.ask(qp_type as u8, from, draining, port, &request).is_ok());
    }
    println!("{accepted} accepted");
    assert!(accepted > 1000, "{accepted}");
}
