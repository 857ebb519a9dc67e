// SPDX-License-Identifier: Apache-2.0
//! `rnic_qp`: LIST_QP tells which QPs live, all or by state, type and PD, in as many commands as its caller likes.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::model::gate::{State, Type};
use openrnic_testbench::model::qp::{Command, Op, Status};
use openrnic_testbench::qp_pair::{LIST, Pair, create, legal};

const WIDTHS: [u32; 2] = [64, 512];

fn list(p: &mut Pair, cmd: &Command) -> (Vec<u32>, u32) {
    let out = p.run(cmd).completion;
    assert_eq!(out.status, Status::Ok, "{cmd:?}");
    (p.bench.host.words(LIST, out.count as usize), out.handle)
}

fn all(p: &Pair) -> Command {
    Command {
        count: p.model.len() as u32,
        list_addr: LIST,
        ..Command::new(Op::List)
    }
}

/// Four RC QPs (RESET, INIT, RTR, INIT in PD 3), two UD (INIT, PD 255), one RC in PD 255; a hole in the middle.
fn populate(p: &mut Pair) -> Vec<u32> {
    let mut made = p.create(5);
    p.bring(made[1], 1, State::Init);
    p.bring(made[2], 1, State::Rtr);
    p.bring(made[4], 1, State::Init);
    p.destroy(&[made.remove(3)]);
    for (qp_type, count) in [(Type::Ud, 2), (Type::Rc, 1)] {
        let cmd = Command {
            pd: 255,
            qp_type: qp_type as u8,
            ..create(count)
        };
        assert_eq!(p.run(&cmd).completion.status, Status::Ok);
        made.extend(p.bench.host.words(LIST, count as usize));
    }
    let uds = p.model.qpns().into_iter().filter(|q| {
        let index = p.model.find(*q).unwrap();
        p.model.entry(index).qp_type == Type::Ud as u8
    });
    for qpn in uds.collect::<Vec<_>>() {
        p.modify(qpn, 1, &legal(Type::Ud, State::Init));
    }
    made.sort_by_key(|q| q & 63);
    made
}

#[test]
fn list_tells_every_living_qp_in_the_order_of_the_table() {
    for width in WIDTHS {
        let mut p = Pair::wide(width, 6, 10);
        let none = all(&p);
        assert_eq!(list(&mut p, &none), (vec![], 0));
        let made = populate(&mut p);
        let cmd = all(&p);
        assert_eq!(list(&mut p, &cmd), (made, 0));
    }
}

#[test]
fn list_chooses_by_state_type_and_pd_together() {
    for width in WIDTHS {
        let mut p = Pair::wide(width, 6, 10);
        populate(&mut p);
        let cmd = all(&p);
        let counts = |p: &mut Pair, cmd: Command| list(p, &cmd).0.len();
        let state = |s: State| Some(s as u8);
        assert_eq!(
            counts(
                &mut p,
                Command {
                    by_state: state(State::Init),
                    ..cmd
                }
            ),
            4
        );
        assert_eq!(
            counts(
                &mut p,
                Command {
                    by_state: state(State::Err),
                    ..cmd
                }
            ),
            0
        );
        let rc = Command {
            by_type: true,
            qp_type: Type::Rc as u8,
            ..cmd
        };
        assert_eq!(counts(&mut p, rc), 5);
        let pd = Command {
            by_pd: true,
            pd: 255,
            ..cmd
        };
        assert_eq!(counts(&mut p, pd), 3);
        let both = Command {
            by_type: true,
            qp_type: Type::Rc as u8,
            ..pd
        };
        assert_eq!(counts(&mut p, both), 1);
        let three = Command {
            by_state: state(State::Init),
            ..both
        };
        assert_eq!(counts(&mut p, three), 0);
    }
}

#[test]
fn list_goes_on_from_where_the_last_one_ended() {
    let mut p = Pair::wide(64, 6, 10);
    let made = populate(&mut p);
    for part in 1..=made.len() as u32 + 1 {
        let (mut seen, mut from) = (Vec::new(), 0);
        loop {
            let cmd = Command {
                handle: from,
                count: part,
                ..all(&p)
            };
            let (some, next) = list(&mut p, &cmd);
            assert!(some.len() <= part as usize);
            seen.extend(some);
            if next == 0 {
                break;
            }
            from = next;
        }
        assert_eq!(seen, made, "{part} at a time");
    }
}

#[test]
fn a_full_table_is_listed_whole_with_a_slow_host() {
    for width in WIDTHS {
        let mut p = Pair::wide(width, 8, 16);
        let made = p.create(254);
        p.bench.manners.stall_one_in = 3;
        p.bench.manners.read_latency = 90;
        let cmd = all(&p);
        assert_eq!(list(&mut p, &cmd), (made.clone(), 0));
        let by_pd = Command {
            by_pd: true,
            pd: 3,
            ..cmd
        };
        assert_eq!(list(&mut p, &by_pd), (made.clone(), 0));
        // So slow that what was found has no room and has to wait.
        p.bench.manners.move_one_in = 40;
        assert_eq!(list(&mut p, &cmd), (made, 0));
    }
}

#[test]
fn every_bad_parameter_of_list_is_named_by_its_offset() {
    let mut p = Pair::new(6, 10);
    let good = all(&p);
    let cases = [
        (Command { handle: 64, ..good }, 4),
        (Command { count: 0, ..good }, 8),
        (Command { count: 65, ..good }, 8),
        (
            Command {
                by_type: true,
                qp_type: 15,
                ..good
            },
            11,
        ),
        (
            Command {
                by_state: Some(7),
                ..good
            },
            23,
        ),
        (
            Command {
                list_addr: LIST + 4,
                ..good
            },
            48,
        ),
    ];
    for (cmd, detail) in cases {
        let c = p.run(&cmd).completion;
        assert_eq!((c.status, c.detail), (Status::BadParam, detail), "{cmd:?}");
    }
    assert_eq!(
        p.run(&Command { flags: 1, ..good }).completion.status,
        Status::ReservedSet
    );
}
