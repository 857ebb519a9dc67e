// SPDX-License-Identifier: Apache-2.0
//! `rnic_qp` and the reference model side by side: each command goes to both, and completion, host memory, references,
//! told changes and the whole table must agree afterwards. Made for tests: it panics when they do not.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use crate::model::gate::{Attrs, State, Type, attr, edge};
use crate::model::qp::{Command, Op, Outcome, Params, QpEngine, Status, flag};
use crate::qp_bench::{BASE, QpBench, RawChange, RawCompletion, Report, Times};

/// Where QPN lists stand.
pub const LIST: u64 = BASE + 0x8000;
/// Where attribute records stand.
pub const ATTR: u64 = BASE + 0x4000;

/// Block and model side by side.
pub struct Pair {
    /// The block on its bench.
    pub bench: QpBench,
    /// The model.
    pub model: QpEngine,
}

impl Pair {
    /// 64 bits wide: log2 of the table, generation bits.
    #[track_caller]
    pub fn new(log_table: u32, gen_bits: u32) -> Self {
        Self::wide(64, log_table, gen_bits)
    }

    /// Data width, log2 of the table, generation bits.
    #[track_caller]
    pub fn wide(data_width: u32, log_table: u32, gen_bits: u32) -> Self {
        let mut model = QpEngine::new(Params {
            log_table,
            gen_bits,
            ..Params::default()
        });
        model.pds = [3, 255].into();
        model.cqs = [0, 5, 200].into();
        let mut bench = QpBench::new(data_width, log_table, gen_bits);
        model.srqs = [0, 9, 63].into();
        model.xrcds = [3, 15].into();
        bench.configure(model.pds.clone(), model.cqs.clone(), &model.limits);
        bench.share(model.srqs.clone(), model.xrcds.clone());
        let mut pair = Self { bench, model };
        pair.check("after reset");
        pair
    }

    /// Compares the whole table.
    #[track_caller]
    pub fn check(&mut self, when: &str) {
        self.bench.check_table(&self.model, when);
    }

    /// Runs a command on both and compares all that it did.
    #[track_caller]
    pub fn run(&mut self, cmd: &Command) -> Outcome {
        self.run_with(cmd, &[]).0
    }

    /// As [`run`](Self::run), while the data path reports errors; they take effect afterwards.
    #[track_caller]
    pub fn run_with(&mut self, cmd: &Command, reports: &[Report]) -> (Outcome, Times) {
        let mut memory = self.bench.host.clone();
        let outcome = self.model.execute(cmd, &memory);
        for (addr, bytes) in &outcome.writes {
            memory.write(*addr, bytes);
        }
        let barriers = self.bench.barriers;
        let (completion, times) = self.bench.run_with(cmd, reports);
        let changes: Vec<RawChange> = outcome.changes.iter().map(|c| RawChange::from(*c)).collect();
        assert_eq!(completion, RawCompletion::from(outcome.completion), "{cmd:?}");
        assert_eq!(self.bench.changes, changes, "{cmd:?}");
        assert!(self.bench.host == memory, "what {cmd:?} wrote");
        assert_eq!(self.bench.barriers - barriers, u32::from(outcome.drained), "{cmd:?}");
        let refs: Vec<_> = outcome
            .refs
            .iter()
            .map(|r| (r.n, r.pd, r.send_cq.unwrap_or(0xffff), r.recv_cq.unwrap_or(0xffff)))
            .collect();
        assert_eq!(self.bench.refs, refs, "{cmd:?}");
        let shared: Vec<_> = outcome.refs.iter().map(|r| (r.in_xrcd, r.srq)).collect();
        assert_eq!(self.bench.shared, shared, "{cmd:?}");
        for r in reports {
            if let Report::Error {
                index, epoch, to_sqe, ..
            } = *r
            {
                self.model.hardware_error(index, epoch, to_sqe);
            }
        }
        for _ in 0..8 + 6 * reports.len() {
            self.bench.cycle();
        }
        self.check(&format!("after {cmd:?}"));
        (outcome, times)
    }

    /// Creates RC QPs by list; their numbers.
    #[track_caller]
    pub fn create(&mut self, n: u32) -> Vec<u32> {
        let outcome = self.run(&create(n));
        assert_eq!(outcome.completion.status, Status::Ok);
        self.bench.host.words(LIST, n as usize)
    }

    /// Puts a record at [`ATTR`].
    #[track_caller]
    pub fn record(&mut self, attrs: &Attrs) {
        self.bench.host.write(ATTR, &attrs.to_bytes());
    }

    /// MODIFY of a range with one record.
    #[track_caller]
    pub fn modify(&mut self, qpn: u32, count: u32, attrs: &Attrs) -> Outcome {
        self.record(attrs);
        self.run(&Command {
            handle: qpn,
            count,
            attr_addr: ATTR,
            ..Command::new(Op::Modify)
        })
    }

    /// Puts a QPN list at [`LIST`].
    #[track_caller]
    pub fn list(&mut self, qpns: &[u32]) {
        for (i, qpn) in qpns.iter().enumerate() {
            self.bench.host.write(LIST + 4 * i as u64, &qpn.to_le_bytes());
        }
    }

    /// Destroys by list; it must succeed.
    #[track_caller]
    pub fn destroy(&mut self, qpns: &[u32]) {
        self.list(qpns);
        let cmd = Command {
            flags: flag::LIST,
            count: qpns.len() as u32,
            list_addr: LIST,
            ..Command::new(Op::Destroy)
        };
        assert_eq!(self.run(&cmd).completion.status, Status::Ok);
    }

    /// Moves RC QPs along the states to `to`.
    #[track_caller]
    pub fn bring(&mut self, qpn: u32, count: u32, to: State) {
        for step in [State::Init, State::Rtr, State::Rts, State::Sqd] {
            let outcome = self.modify(qpn, count, &legal(Type::Rc, step));
            assert_eq!(outcome.completion.status, Status::Ok, "{step:?}");
            if step == to {
                return;
            }
        }
    }

    /// Life epoch of a QP that exists.
    #[track_caller]
    pub fn epoch(&self, qpn: u32) -> u16 {
        self.model.entry(self.model.find(qpn).unwrap()).epoch
    }
}

/// A good CREATE of that many RC QPs by list.
pub fn create(n: u32) -> Command {
    Command {
        count: n,
        qp_type: Type::Rc as u8,
        pd: 3,
        send_cq: 5,
        recv_cq: 200,
        uar: 31,
        log_sq: 4,
        log_rq: 15,
        log_sq_stride: 3,
        log_rq_stride: 4,
        sq_base: 0x1234_5678_0000_0000,
        rq_base: 0xffff_ffff_ffff_ff00,
        sq_pitch: 0xffff_ffc0,
        rq_pitch: 0x40,
        list_addr: LIST,
        ..Command::new(Op::Create)
    }
}

/// A good request for the usual transition into `to`.
pub fn legal(t: Type, to: State) -> Attrs {
    let from = match to {
        State::Init => State::Reset,
        State::Rtr => State::Init,
        State::Rts => State::Rtr,
        State::Sqd => State::Rts,
        _ => State::Rts,
    };
    Attrs {
        mask: attr::STATE | edge(t, from, to).unwrap().required,
        qp_state: to as u8,
        access_flags: 0xf,
        port: 1,
        path_mtu: 3,
        dest_qpn: 0xabcdef,
        rq_psn: 0x123456,
        sq_psn: 0x654321,
        min_rnr_timer: 12,
        max_dest_rd_atomic: 16,
        max_rd_atomic: 16,
        timeout: 14,
        retry_cnt: 7,
        rnr_retry: 6,
        qkey: 0x1111_1111,
        dgid: *b"0123456789abcdef",
        dmac: *b"ABCDEF",
        vlan: 0x9234,
        sgid_index: 9,
        hop_limit: 64,
        traffic_class: 0x68,
        av_port: 1,
        flow_label: 0xabcde,
        is_global: true,
        ..Attrs::default()
    }
}
