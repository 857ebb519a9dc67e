// SPDX-License-Identifier: Apache-2.0
//! `rnic_qp`: transitions and batches, all or nothing; barrier, references, host memory that fails; cycle budgets.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::model::gate::{Attrs, Limits, Rule, State, Type, attr};
use openrnic_testbench::model::qp::{Change, Command, Op, Status, flag};
use openrnic_testbench::qp_bench::{BASE, PROMPT, RawChange, Times};
use openrnic_testbench::qp_pair::{ATTR, LIST, Pair, create, legal};

// ---------------------------------------------------------------- transitions and batches

#[test]
fn a_qp_walks_through_its_states_and_query_shows_it() {
    for data_width in [64, 512] {
        let mut p = Pair::wide(data_width, 8, 16);
        let q = p.create(5)[3];
        for step in [State::Init, State::Rtr, State::Rts, State::Sqd] {
            assert_eq!(p.modify(q, 1, &legal(Type::Rc, step)).completion.status, Status::Ok);
            let query = Command {
                handle: q,
                attr_addr: BASE + 0x2000,
                ..Command::new(Op::Query)
            };
            assert_eq!(p.run(&query).completion.status, Status::Ok);
        }
        // What a request does not name keeps its value.
        let some = Attrs {
            mask: attr::STATE | attr::CUR_STATE,
            qp_state: 6,
            cur_qp_state: 4,
            ..legal(Type::Rc, State::Rts)
        };
        assert_eq!(p.modify(q, 1, &some).completion.rule, Rule::ExcessAttrs as u8);
        let to_err = Attrs {
            mask: attr::STATE,
            qp_state: 6,
            timeout: 1,
            ..Attrs::default()
        };
        assert_eq!(p.modify(q, 1, &to_err).completion.status, Status::Ok);
        let query = Command {
            handle: q,
            attr_addr: BASE + 0x2000,
            ..Command::new(Op::Query)
        };
        p.run(&query);
    }
}

/// In every cycle of a command that writes it: what RTR sets lies in one half of a section, what RTS sets here in both, which are written in turn.
#[test]
fn a_section_read_while_it_is_written_is_never_a_mix() {
    for (data_width, count, to) in [64, 512].into_iter().flat_map(|w| {
        [1, 2]
            .into_iter()
            .flat_map(move |n| [(w, n, State::Rtr), (w, n, State::Rts)])
    }) {
        let (mut old, mut new) = (0, 0);
        for after in 0..60 {
            let mut p = Pair::wide(data_width, 8, 16);
            let q = p.create(5)[3];
            p.bring(q, count, if to == State::Rtr { State::Init } else { State::Rtr });
            let before = p.bench.section(q & 0xff, 0);
            let mut request = legal(Type::Rc, to);
            if to == State::Rts {
                request.mask |= attr::MIN_RNR_TIMER;
                request.min_rnr_timer = 21;
            }
            p.record(&request);
            p.bench.start(&Command {
                handle: q,
                count,
                attr_addr: ATTR,
                ..Command::new(Op::Modify)
            });
            let seen = p.bench.section(q & 0xff, after);
            p.bench.wait("the completion", 200, |b| b.completed());
            let then = p.bench.section(q & 0xff, 0);
            assert_ne!(before, then);
            assert!(
                seen == before || seen == then,
                "{data_width} bits, {count} QPs to {to:?}, {after} cycles after the command"
            );
            old += u32::from(seen == before);
            new += u32::from(seen == then);
        }
        assert!(old > 5 && new > 5, "the change was not met: {old} before, {new} after");
    }
}

#[test]
fn a_refused_transition_changes_nothing_and_counts_its_rule() {
    let mut p = Pair::new(6, 10);
    let q = p.create(10);
    let mut request = legal(Type::Rc, State::Init);
    request.mask &= !attr::PORT;
    let out = p.modify(q[0], 10, &request);
    let c = out.completion;
    assert_eq!(
        (c.status, c.rule, c.detail),
        (Status::GateRefused, Rule::MissingAttrs as u8, attr::PORT)
    );
    assert_eq!((c.offender, c.offender_index, c.count), (q[0], 0, 0));
    assert_eq!(p.bench.pulses[51], 1, "once per command");
    assert_eq!(p.bench.pulses.iter().sum::<u32>(), 1);
}

#[test]
fn one_bad_qp_in_a_batch_keeps_all_from_moving() {
    let mut p = Pair::new(8, 16);
    let q = p.create(100);
    p.bring(q[70], 1, State::Rtr);
    // The 71st of the range is in RTR already: it is the offender, and nobody has moved.
    let out = p.modify(q[0], 100, &legal(Type::Rc, State::Init));
    assert_eq!(out.completion.rule, Rule::IllegalEdge as u8);
    assert_eq!((out.completion.offender, out.completion.offender_index), (q[70], 70));
    // The same by list, in an order of its own, and with a record for each.
    let mut order: Vec<u32> = q[10..74].iter().rev().copied().collect();
    order.swap(5, 60);
    p.list(&order);
    p.record(&legal(Type::Rc, State::Init));
    let cmd = Command {
        flags: flag::LIST,
        count: 64,
        list_addr: LIST,
        attr_addr: ATTR,
        ..Command::new(Op::Modify)
    };
    let out = p.run(&cmd);
    assert_eq!(
        (out.completion.status, out.completion.offender),
        (Status::GateRefused, q[70])
    );
    for k in 0..64 {
        p.bench
            .host
            .write(ATTR + 64 * k, &legal(Type::Rc, State::Init).to_bytes());
    }
    let out = p.run(&Command {
        flags: flag::LIST | flag::RECORDS,
        ..cmd
    });
    assert_eq!(
        (out.completion.status, out.completion.offender),
        (Status::GateRefused, q[70])
    );
    // Without it all of them move; the marks of the refused batches are gone.
    order.retain(|n| *n != q[70]);
    p.list(&order);
    let out = p.run(&Command { count: 63, ..cmd });
    assert_eq!(out.completion.count, 63);
}

#[test]
fn a_record_per_qp_gives_each_its_own_values() {
    for data_width in [64, 512] {
        let mut p = Pair::wide(data_width, 8, 16);
        let q = p.create(64);
        let records = |p: &mut Pair, base: Attrs, change: fn(&mut Attrs, u32)| {
            for k in 0..64u32 {
                let mut r = base;
                change(&mut r, k);
                p.bench.host.write(ATTR + 64 * u64::from(k), &r.to_bytes());
            }
        };
        records(&mut p, legal(Type::Rc, State::Init), |r, k| {
            r.access_flags = k as u8 & 15
        });
        let range = Command {
            handle: q[0],
            count: 64,
            flags: flag::RECORDS,
            attr_addr: ATTR,
            ..Command::new(Op::Modify)
        };
        assert_eq!(p.run(&range).completion.count, 64);
        records(&mut p, legal(Type::Rc, State::Rtr), |r, k| {
            r.dest_qpn = 1000 + k;
            r.rq_psn = k << 16;
            r.dgid[15] = k as u8;
        });
        // Record k goes to the k-th of the list, not to the k-th in the table.
        let order: Vec<u32> = (0..64).map(|k| q[(k * 37 + 5) % 64]).collect();
        p.list(&order);
        let out = p.run(&Command {
            handle: 0,
            flags: flag::RECORDS | flag::LIST,
            list_addr: LIST,
            ..range
        });
        assert_eq!(out.completion.count, 64);
        let third = p.model.find(order[3]).unwrap();
        assert_eq!(p.model.entry(third).attrs.dest_qpn, 1003);
        // One bad value in the last record: nothing moves.
        records(&mut p, legal(Type::Rc, State::Rts), |r, k| {
            r.timeout = if k == 63 { 32 } else { 9 }
        });
        let out = p.run(&range);
        assert_eq!(
            (out.completion.detail, out.completion.offender_index),
            (attr::TIMEOUT, 63)
        );
    }
}

#[test]
fn a_qp_named_twice_is_refused() {
    let mut p = Pair::new(8, 16);
    let q = p.create(100);
    let mut order: Vec<u32> = q.clone();
    for (a, b) in [(0, 1), (0, 99), (63, 64), (30, 31), (98, 99)] {
        let mut twice = order.clone();
        twice[b] = twice[a];
        p.list(&twice);
        p.record(&legal(Type::Rc, State::Init));
        let cmd = Command {
            flags: flag::LIST,
            count: 100,
            list_addr: LIST,
            attr_addr: ATTR,
            ..Command::new(Op::Modify)
        };
        let out = p.run(&cmd);
        assert_eq!(
            (out.completion.status, out.completion.offender_index),
            (Status::Duplicate, b as u32)
        );
        let destroy = Command {
            op: Op::Destroy,
            attr_addr: 0,
            ..cmd
        };
        assert_eq!(p.run(&destroy).completion.status, Status::Duplicate);
    }
    order.reverse();
    p.destroy(&order);
}

#[test]
fn a_bad_handle_anywhere_in_a_batch_is_the_offender() {
    let mut p = Pair::new(6, 10);
    let q = p.create(62);
    p.destroy(&[q[40]]);
    let past_end = p.modify(q[50], 20, &legal(Type::Rc, State::Init));
    assert_eq!(past_end.completion.status, Status::BadHandle);
    assert_eq!(past_end.completion.offender_index, 12, "the table ends there");
    let gap = p.modify(q[30], 20, &legal(Type::Rc, State::Init));
    assert_eq!(
        (gap.completion.status, gap.completion.offender_index),
        (Status::BadHandle, 10)
    );
    for bad in [0, 1, 64, q[0] | 1 << 16, q[0] | 1 << 24, 0xffff_ffff] {
        let out = p.modify(bad, 1, &legal(Type::Rc, State::Init));
        assert_eq!(
            (out.completion.status, out.completion.offender),
            (Status::BadHandle, bad),
            "{bad:#x}"
        );
        let mut list = q[..20].to_vec();
        list[17] = bad;
        p.list(&list);
        let cmd = Command {
            flags: flag::LIST,
            count: 20,
            list_addr: LIST,
            ..Command::new(Op::Destroy)
        };
        let out = p.run(&cmd);
        assert_eq!(
            (out.completion.status, out.completion.offender_index),
            (Status::BadHandle, 17)
        );
    }
}

#[test]
fn install_creates_in_init_or_not_at_all() {
    let mut p = Pair::new(6, 10);
    p.record(&legal(Type::Rc, State::Init));
    let install = Command {
        op: Op::Install,
        attr_addr: ATTR,
        ..create(20)
    };
    assert_eq!(p.run(&install).completion.count, 20);
    let range = Command {
        flags: flag::CONTIGUOUS | flag::SIG_ALL | flag::FAST_REG,
        list_addr: 0,
        count: 8,
        align_log2: 3,
        ..install
    };
    assert_eq!(p.run(&range).completion.handle, 24);
    let one = Command {
        flags: flag::REQUESTED,
        handle: 50,
        list_addr: 0,
        count: 1,
        ..install
    };
    assert_eq!(p.run(&one).completion.handle, 50);
    for (bad, rule) in [
        (
            Attrs {
                port: 2,
                ..legal(Type::Rc, State::Init)
            },
            Rule::BadValue,
        ),
        (legal(Type::Rc, State::Rtr), Rule::IllegalEdge),
        (
            Attrs {
                mask: attr::STATE | attr::PORT,
                ..legal(Type::Rc, State::Init)
            },
            Rule::MissingAttrs,
        ),
        (legal(Type::Ud, State::Init), Rule::MissingAttrs),
        (
            Attrs {
                mask: 0,
                ..Attrs::default()
            },
            Rule::IllegalEdge,
        ),
    ] {
        p.record(&bad);
        let out = p.run(&install);
        assert_eq!(
            (out.completion.status, out.completion.rule),
            (Status::GateRefused, rule as u8)
        );
    }
}

#[test]
fn reset_leaves_nothing_of_the_old_life() {
    let mut p = Pair::new(6, 10);
    let q = p.create(6);
    p.bring(q[0], 6, State::Rts);
    let reset = Attrs {
        mask: attr::STATE,
        ..Attrs::default()
    };
    let out = p.modify(q[1], 4, &reset);
    assert!(out.drained && out.changes.iter().all(|c| c.new_life));
    assert_eq!(p.model.entry(3).attrs, Attrs::default());
    // By record: only one of them ends its life, and the barrier is there for it.
    for k in 0..4u64 {
        let r = if k == 2 {
            reset
        } else {
            Attrs {
                mask: attr::STATE,
                qp_state: 1,
                ..legal(Type::Rc, State::Init)
            }
        };
        let r = if k == 2 {
            r
        } else {
            Attrs {
                mask: legal(Type::Rc, State::Init).mask,
                ..r
            }
        };
        p.bench.host.write(ATTR + 64 * k, &r.to_bytes());
    }
    let cmd = Command {
        handle: q[1],
        count: 4,
        flags: flag::RECORDS,
        attr_addr: ATTR,
        ..Command::new(Op::Modify)
    };
    let out = p.run(&cmd);
    assert_eq!(out.changes.iter().filter(|c| c.new_life).count(), 1);
}

// ---------------------------------------------------------------- barrier and references

#[test]
fn destroy_and_reset_complete_only_after_the_barrier() {
    let mut p = Pair::new(6, 10);
    let q = p.create(4);
    p.bring(q[0], 4, State::Rts);
    p.record(&Attrs {
        mask: attr::STATE,
        ..Attrs::default()
    });
    for cmd in [
        Command {
            handle: q[0],
            count: 4,
            attr_addr: ATTR,
            ..Command::new(Op::Modify)
        },
        Command {
            handle: q[0],
            count: 4,
            ..Command::new(Op::Destroy)
        },
    ] {
        p.bench.manners.drain_latency = 500;
        let (out, times) = p.run_with(&cmd, &[]);
        assert!(out.drained);
        assert!(
            times.drain > times.first_change,
            "halted first, then the barrier: {times:?}"
        );
        assert!(times.completion >= times.drain + 500, "{times:?}");
    }
    // Nothing else waits for a barrier.
    let q = p.create(4);
    for step in [State::Init, State::Rtr, State::Rts] {
        assert!(!p.modify(q[0], 4, &legal(Type::Rc, step)).drained);
    }
    assert!(
        !p.modify(
            q[0],
            4,
            &Attrs {
                mask: attr::STATE,
                qp_state: 6,
                ..Attrs::default()
            }
        )
        .drained
    );
}

#[test]
fn references_are_taken_once_and_given_back_per_qp() {
    let mut p = Pair::new(6, 10);
    let a = p.create(7);
    let other = Command {
        pd: 255,
        send_cq: 0,
        recv_cq: 0,
        ..create(3)
    };
    let out = p.run(&other);
    assert_eq!((out.refs.len(), out.refs[0].n, out.refs[0].pd), (1, 3, 255));
    let b = p.bench.host.words(LIST, 3);
    p.destroy(&[a[0], b[1], a[6]]);
    assert_eq!(p.bench.refs, [(-1, 3, 5, 200), (-1, 3, 5, 200), (-1, 255, 0, 0)]);
}

// ---------------------------------------------------------------- host memory that fails

#[test]
fn after_a_failed_read_the_rest_of_a_list_is_not_asked_for() {
    let mut p = Pair::new(9, 15);
    let q = p.create(500);
    p.list(&q);
    p.bench.host.break_at(LIST, 4);
    let before = p.bench.reads;
    let out = p.run(&Command {
        count: 500,
        flags: flag::LIST,
        list_addr: LIST,
        ..Command::new(Op::Destroy)
    });
    assert_eq!(out.completion.status, Status::DmaError);
    // 64 numbers a read, two under way, and one that was on offer already.
    assert!(p.bench.reads - before <= 3, "{} reads", p.bench.reads - before);
}

#[test]
fn a_failed_read_changes_nothing() {
    for data_width in [64, 512] {
        let mut p = Pair::wide(data_width, 8, 16);
        let q = p.create(200);
        p.list(&q);
        for k in 0..64 {
            p.bench
                .host
                .write(ATTR + 64 * k, &legal(Type::Rc, State::Init).to_bytes());
        }
        let cmd = Command {
            attr_addr: ATTR,
            ..Command::new(Op::Modify)
        };
        let dma = |p: &mut Pair, broken: std::ops::Range<u64>, cmd: &Command, index: u32| {
            p.bench.host.break_at(broken.start, broken.end - broken.start);
            let out = p.run(cmd);
            assert_eq!(
                (out.completion.status, out.completion.offender_index),
                (Status::DmaError, index),
                "{cmd:?}"
            );
            p.bench.host.mend();
        };
        dma(&mut p, ATTR..ATTR + 1, &Command { handle: q[0], ..cmd }, 0);
        dma(
            &mut p,
            ATTR + 4095..ATTR + 4096,
            &Command {
                handle: q[0],
                flags: flag::RECORDS,
                count: 64,
                ..cmd
            },
            0,
        );
        dma(
            &mut p,
            LIST + 256..LIST + 260,
            &Command {
                flags: flag::LIST,
                count: 200,
                list_addr: LIST,
                ..cmd
            },
            64,
        );
        dma(
            &mut p,
            LIST + 796..LIST + 800,
            &Command {
                op: Op::Destroy,
                attr_addr: 0,
                flags: flag::LIST,
                count: 200,
                list_addr: LIST,
                ..cmd
            },
            192,
        );
        dma(
            &mut p,
            LIST..LIST + 4,
            &Command {
                flags: flag::LIST | flag::RECORDS,
                count: 64,
                list_addr: LIST,
                ..cmd
            },
            0,
        );
        dma(
            &mut p,
            ATTR..ATTR + 64,
            &Command {
                op: Op::Install,
                attr_addr: ATTR,
                ..create(3)
            },
            0,
        );
        // An offender before the part that cannot be read is found all the same.
        p.list(&[q[0], q[0]]);
        p.bench.host.break_at(LIST + 256, 256);
        let out = p.run(&Command {
            flags: flag::LIST,
            count: 200,
            list_addr: LIST,
            ..cmd
        });
        assert_eq!(out.completion.status, Status::Duplicate);
        p.bench.host.mend();
        // And all is well afterwards.
        p.list(&q);
        assert_eq!(
            p.run(&Command {
                flags: flag::LIST,
                count: 200,
                list_addr: LIST,
                ..cmd
            })
            .completion
            .count,
            200
        );
    }
}

// ---------------------------------------------------------------- budgets

/// Cycles of a uniform batch: 2 per QP, 200, and table/64. What a list moves over the bus is counted apart.
fn within_budget(what: &str, times: Times, n: u32, log_table: u32, list_beats: u64) {
    let limit = 2 * u64::from(n) + 200 + (1 << log_table >> 6) + list_beats;
    println!("{what}: {} cycles for {n} QPs, limit {limit}", times.completion);
    assert!(times.completion <= limit, "{what}: {times:?} over {limit}");
}

#[test]
fn batches_keep_to_two_cycles_per_qp() {
    for data_width in [64, 512] {
        let log_table = 11;
        let mut p = Pair::wide(data_width, log_table, 10);
        // The data path reads contexts as fast as it can: no pass waits for it.
        p.bench.manners.busy_readers = true;
        let n = 1500;
        let beats = u64::from(n) * 4 / (u64::from(data_width) / 8);
        let (_, t) = p.run_with(&create(n), &[]);
        within_budget("create, list", t, n, log_table, beats);
        let q = p.bench.host.words(LIST, n as usize);
        p.record(&legal(Type::Rc, State::Init));
        let modify = Command {
            handle: q[0],
            count: n,
            attr_addr: ATTR,
            ..Command::new(Op::Modify)
        };
        let (_, t) = p.run_with(&modify, &[]);
        within_budget("modify, range", t, n, log_table, 0);
        p.record(&legal(Type::Rc, State::Rtr));
        let order: Vec<u32> = (0..n as usize).map(|k| q[(k * 7) % n as usize]).collect();
        p.list(&order);
        let by_list = Command {
            handle: 0,
            flags: flag::LIST,
            list_addr: LIST,
            ..modify
        };
        let (_, t) = p.run_with(&by_list, &[]);
        within_budget("modify, list", t, n, log_table, beats);
        let (_, t) = p.run_with(
            &Command {
                op: Op::Destroy,
                attr_addr: 0,
                ..by_list
            },
            &[],
        );
        within_budget("destroy, list", t, n, log_table, beats);
        let range = Command {
            flags: flag::CONTIGUOUS,
            list_addr: 0,
            align_log2: 4,
            ..create(n)
        };
        let (_, t) = p.run_with(&range, &[]);
        within_budget("create, range", t, n, log_table, 0);
        let first = p.model.qpns()[0];
        let (_, t) = p.run_with(
            &Command {
                handle: first,
                count: n,
                ..Command::new(Op::Destroy)
            },
            &[],
        );
        within_budget("destroy, range", t, n, log_table, 0);
        p.record(&legal(Type::Rc, State::Init));
        let (_, t) = p.run_with(
            &Command {
                op: Op::Install,
                attr_addr: ATTR,
                ..range
            },
            &[],
        );
        within_budget("install, range", t, n, log_table, 0);
        // Records: 2 per QP and the beats of its record.
        let first = p.model.qpns()[0];
        for k in 0..64 {
            p.bench
                .host
                .write(ATTR + 64 * k, &legal(Type::Rc, State::Rtr).to_bytes());
        }
        let records = Command {
            handle: first,
            count: 64,
            flags: flag::RECORDS,
            attr_addr: ATTR,
            ..Command::new(Op::Modify)
        };
        let (_, t) = p.run_with(&records, &[]);
        within_budget("modify, records", t, 64, log_table, 64 * 512 / u64::from(data_width));
    }
}

#[test]
fn one_modify_takes_eight_cycles_from_its_acceptance_to_the_context_beside_the_beats_of_its_record() {
    for data_width in [64, 512] {
        let mut p = Pair::wide(data_width, 8, 16);
        let q = p.create(1)[0];
        p.record(&legal(Type::Rc, State::Init));
        let (_, t) = p.run_with(
            &Command {
                handle: q,
                attr_addr: ATTR,
                ..Command::new(Op::Modify)
            },
            &[],
        );
        println!("{t:?}");
        let beats = 512 / u64::from(data_width);
        assert!(t.first_change - 1 - beats <= 8, "{t:?}");
    }
}

#[test]
fn stalls_of_the_host_change_nothing_but_the_time() {
    for data_width in [64, 512] {
        let mut p = Pair::wide(data_width, 8, 16);
        p.bench.manners.stall_one_in = 3;
        p.bench.manners.read_latency = 90;
        let q = p.create(120);
        p.record(&legal(Type::Rc, State::Init));
        p.list(&q);
        let cmd = Command {
            flags: flag::LIST,
            count: 120,
            list_addr: LIST,
            attr_addr: ATTR,
            ..Command::new(Op::Modify)
        };
        assert_eq!(p.run(&cmd).completion.count, 120);
        p.bench.manners = PROMPT;
        p.destroy(&q);
    }
}

#[test]
fn the_limits_of_the_port_are_those_of_now() {
    let mut p = Pair::new(6, 10);
    let q = p.create(1)[0];
    p.model.limits = Limits {
        pkeys: [0; 8],
        ..Limits::default()
    };
    p.bench
        .configure(p.model.pds.clone(), p.model.cqs.clone(), &p.model.limits);
    assert_eq!(
        p.modify(q, 1, &legal(Type::Rc, State::Init)).completion.detail,
        attr::PKEY_INDEX
    );
    let change = Change {
        index: 2,
        epoch: p.epoch(q),
        state: State::Reset,
        new_life: false,
        left_srq: false,
    };
    assert_eq!(RawChange::from(change).state, 0);
}
