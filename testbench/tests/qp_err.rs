// SPDX-License-Identifier: Apache-2.0
//! `rnic_qp`: what the data path reports: errors and drained send queues.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::model::gate::{Attrs, Rule, State, Type, attr};
use openrnic_testbench::model::qp::{Command, Op, Status};
use openrnic_testbench::qp_bench::{RawChange, Report};
use openrnic_testbench::qp_pair::{ATTR, LIST, Pair, create, legal};

// ---------------------------------------------------------------- errors of the data path, draining

#[test]
fn an_error_report_moves_to_err_from_every_state_but_reset() {
    let mut p = Pair::new(6, 10);
    let q = p.create(7);
    p.bring(q[1], 6, State::Init);
    for (first, state) in [(2, State::Rtr), (3, State::Rts), (4, State::Sqd)] {
        let outcome = p.modify(q[first], 7 - first as u32, &legal(Type::Rc, state));
        assert_eq!(outcome.completion.status, Status::Ok);
    }
    for (i, source) in [0, 1, 2, 0, 1, 2, 0].into_iter().enumerate() {
        let (index, epoch) = (2 + i as u32, p.epoch(q[i]));
        p.bench.changes.clear();
        p.bench.report_idle(&[Report::Error {
            after: 0,
            source,
            index,
            epoch,
            to_sqe: i == 5,
        }]);
        let change = p.model.hardware_error(index, epoch, i == 5);
        assert_eq!(change.is_some(), i != 0);
        assert_eq!(
            p.bench.changes,
            change.into_iter().map(RawChange::from).collect::<Vec<_>>()
        );
        p.check("after an error");
    }
    assert!(q[1..].iter().all(|n| p.model.state(*n) == Some(State::Err)));
}

#[test]
fn a_send_error_of_ud_and_uc_goes_to_sqe_and_back() {
    let mut p = Pair::new(6, 10);
    for t in [Type::Ud, Type::Uc] {
        let out = p.run(&Command {
            qp_type: t as u8,
            ..create(1)
        });
        let (q, index) = (out.completion.handle, out.changes[0].index);
        for step in [State::Init, State::Rtr, State::Rts] {
            p.modify(q, 1, &legal(t, step));
        }
        for _ in 0..3 {
            let epoch = p.epoch(q);
            p.bench.report_idle(&[Report::Error {
                after: 0,
                source: 1,
                index,
                epoch,
                to_sqe: true,
            }]);
            p.model.hardware_error(index, epoch, true);
            assert_eq!(p.model.state(q), Some(State::Sqe));
            p.check("in SQE");
            assert_eq!(
                p.modify(
                    q,
                    1,
                    &Attrs {
                        mask: attr::STATE,
                        qp_state: 3,
                        ..Attrs::default()
                    }
                )
                .completion
                .count,
                1
            );
            // Back in RTS, what another source reports of an earlier life does not bring the old error up again.
            p.bench.report_idle(&[Report::Error {
                after: 0,
                source: 0,
                index,
                epoch: epoch - 1,
                to_sqe: false,
            }]);
            p.check("back in RTS");
        }
        let epoch = p.epoch(q);
        p.bench.report_idle(&[
            Report::Error {
                after: 0,
                source: 1,
                index,
                epoch,
                to_sqe: true,
            },
            Report::Error {
                after: 0,
                source: 2,
                index,
                epoch,
                to_sqe: false,
            },
        ]);
        p.model.hardware_error(index, epoch, false);
        p.check("ERR after SQE");
    }
}

#[test]
fn an_error_of_an_earlier_life_is_dropped() {
    let mut p = Pair::new(6, 10);
    let q = p.create(1)[0];
    p.bring(q, 1, State::Rts);
    let old = p.epoch(q);
    // Reported while the life is being ended: it belongs to the old one.
    p.record(&Attrs {
        mask: attr::STATE,
        ..Attrs::default()
    });
    let cmd = Command {
        handle: q,
        attr_addr: ATTR,
        ..Command::new(Op::Modify)
    };
    p.run_with(
        &cmd,
        &[Report::Error {
            after: 2,
            source: 0,
            index: 2,
            epoch: old,
            to_sqe: false,
        }],
    );
    p.bring(q, 1, State::Rts);
    p.bench.report_idle(&[Report::Error {
        after: 0,
        source: 2,
        index: 2,
        epoch: old,
        to_sqe: false,
    }]);
    p.check("after a stale report");
    assert_eq!(p.model.state(q), Some(State::Rts));
}

#[test]
fn an_error_in_the_middle_of_a_batch_comes_after_it_and_does_not_tear_it() {
    let mut p = Pair::new(8, 16);
    let q = p.create(100);
    p.bring(q[0], 100, State::Rtr);
    p.record(&legal(Type::Rc, State::Rts));
    let cmd = Command {
        handle: q[0],
        count: 100,
        attr_addr: ATTR,
        ..Command::new(Op::Modify)
    };
    let reports: Vec<Report> = (0..100)
        .map(|i| Report::Error {
            after: 5 + 2 * u64::from(i),
            source: i as usize % 3,
            index: 2 + (i * 31) % 100,
            epoch: p.epoch(q[0]),
            to_sqe: false,
        })
        .collect();
    // All 100 go to RTS by the command, then all to ERR; more reports than any queue holds.
    let (out, _) = p.run_with(&cmd, &reports);
    assert_eq!(out.completion.count, 100);
    assert!(q.iter().all(|n| p.model.state(*n) == Some(State::Err)));
}

#[test]
fn draining_ends_with_an_event_and_holds_off_all_but_err_and_reset() {
    let mut p = Pair::new(6, 10);
    let q = p.create(3);
    p.bring(q[0], 3, State::Rts);
    assert_eq!(p.bench.events, [0; 0], "none without a cause, also after the reset");
    let notify = Attrs {
        mask: attr::STATE | attr::EN_SQD_ASYNC_NOTIFY,
        en_sqd_async_notify: true,
        ..legal(Type::Rc, State::Sqd)
    };
    p.modify(q[0], 2, &notify);
    p.modify(q[2], 1, &legal(Type::Rc, State::Sqd));
    let back = Attrs {
        mask: attr::STATE,
        qp_state: 3,
        ..Attrs::default()
    };
    assert_eq!(p.modify(q[0], 3, &back).completion.rule, Rule::Draining as u8);
    let same = Attrs {
        mask: attr::STATE | attr::TIMEOUT,
        ..legal(Type::Rc, State::Sqd)
    };
    assert_eq!(p.modify(q[0], 1, &same).completion.rule, Rule::Draining as u8);
    p.bench.events.clear();
    for (index, qpn) in (2..).zip(&q) {
        let epoch = p.epoch(*qpn);
        let old = Report::Drained {
            after: 0,
            index,
            epoch: epoch - 1,
        };
        p.bench.report_idle(&[old, Report::Drained { after: 0, index, epoch }]);
        p.model.drained(index, epoch);
        p.check("drained");
    }
    assert_eq!(p.bench.events, [q[0], q[1]], "the third did not ask for it");
    assert_eq!(p.modify(q[0], 1, &same).completion.count, 1);
    assert_eq!(p.modify(q[0], 3, &back).completion.count, 3);
    // The next drain asks anew; →ERR leaves it early.
    p.modify(q[0], 1, &legal(Type::Rc, State::Sqd));
    p.modify(
        q[0],
        1,
        &Attrs {
            mask: attr::STATE,
            qp_state: 6,
            ..Attrs::default()
        },
    );
    let epoch = p.epoch(q[0]);
    p.bench.report_idle(&[Report::Drained {
        after: 0,
        index: 2,
        epoch,
    }]);
    p.check("a drained report in ERR means nothing");
    assert_eq!(p.bench.events.len(), 2);
}

#[test]
fn more_reports_than_a_queue_holds_do_not_hold_the_next_command_up_for_the_whole_table() {
    const N: u32 = 300;
    // Words that are clean before those that are not, too.
    for lowest in [2, 130] {
        let mut p = Pair::new(11, 13);
        let q = p.create(N);
        p.bring(q[0], N, State::Rts);
        let epoch = p.epoch(q[0]);
        p.record(&legal(Type::Rc, State::Sqd));
        let to_sqd = Command {
            handle: q[0],
            count: N,
            attr_addr: ATTR,
            ..Command::new(Op::Modify)
        };
        // Not all: places in the middle and at both ends of words of 64, in no order.
        let reported: Vec<u32> = (0..N)
            .map(|i| 2 + i * 37 % N)
            .filter(|i| i % 5 != 0 && *i >= lowest)
            .collect();
        let reports: Vec<Report> = (500..)
            .zip(&reported)
            .map(|(after, &index)| Report::Drained { after, index, epoch })
            .collect();
        p.model.execute(&to_sqd, &p.bench.host);
        p.bench.run_with(&to_sqd, &reports);
        for &index in &reported {
            p.model.drained(index, epoch);
        }
        let start = p.bench.cycles();
        p.bench.start(&Command {
            handle: q[0],
            attr_addr: LIST,
            ..Command::new(Op::Query)
        });
        let waited = p.bench.cycles() - start;
        // Four cycles for each place in the words that were reported, one for each of the other words.
        assert!(waited < 4 * (320 + 16) + 2048 / 64 + 64, "waited {waited} cycles");
        p.bench.wait("the query", 1000, |b| b.completed());
        p.bench.take_completion();
        p.check("all reports are applied");
    }
}
