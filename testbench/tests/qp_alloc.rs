// SPDX-License-Identifier: Apache-2.0
//! `rnic_qp`: which numbers new QPs get, and which parameters a command may have. One test per rule.
#![allow(clippy::unwrap_used)]

use openrnic_testbench::model::gate::{Attrs, State, Type};
use openrnic_testbench::model::qp::{Command, Op, Status, flag};
use openrnic_testbench::qp_bench::{Random, Report};
use openrnic_testbench::qp_pair::{ATTR, LIST, Pair, create, legal};

// ---------------------------------------------------------------- creation and numbers

#[test]
fn create_gives_the_lowest_free_numbers_in_order_and_their_rings() {
    let mut p = Pair::new(6, 10);
    assert_eq!(p.create(3), [2, 3, 4]);
    assert_eq!(p.create(59).len(), 59); // the rest of the table
    let full = p.run(&create(1));
    assert_eq!(full.completion.status, Status::NoResources);
}

#[test]
fn a_reused_index_gets_a_new_generation_and_the_old_number_is_refused() {
    let mut p = Pair::new(6, 10);
    let old = p.create(2);
    p.destroy(&old);
    let new = p.create(2);
    assert_eq!(new, [64 + 2, 64 + 3]);
    for op in [Op::Query, Op::Destroy, Op::Modify] {
        p.record(&legal(Type::Rc, State::Init));
        let attr_addr = if op == Op::Destroy { 0 } else { ATTR };
        let stale = p.run(&Command {
            handle: old[0],
            attr_addr,
            ..Command::new(op)
        });
        assert_eq!(stale.completion.status, Status::BadHandle);
        assert_eq!(stale.completion.offender, old[0]);
    }
}

#[test]
fn generations_wrap_one_by_one_and_all_ones_is_never_a_number() {
    let mut p = Pair::new(4, 2);
    for round in 0..10 {
        let qpns = p.create(6);
        assert_eq!(qpns[0] >> 4, round % 4);
        p.destroy(&qpns);
    }
    // With 24 bits in all, index 0xff of generation 0xffff would be the multicast number.
    let mut p = Pair::new(8, 16);
    p.run(&Command {
        handle: 0xff_feff,
        flags: flag::REQUESTED,
        list_addr: 0,
        ..create(1)
    });
    let rest = p.create(253);
    assert_eq!(rest.len(), 253);
    p.destroy(&[0xff_feff]);
    assert_eq!(p.create(1), [0x00_00ff], "0xffffff is skipped");
    let multicast = p.run(&Command {
        handle: 0xff_ffff,
        flags: flag::REQUESTED,
        list_addr: 0,
        ..create(1)
    });
    assert_eq!(
        (multicast.completion.status, multicast.completion.detail),
        (Status::BadParam, 4)
    );
}

#[test]
fn a_range_has_one_generation_new_to_all_its_places() {
    let mut p = Pair::new(6, 10);
    for _ in 0..3 {
        let q = p.create(1);
        p.destroy(&q);
    }
    let q = p.run(&Command {
        flags: flag::CONTIGUOUS,
        list_addr: 0,
        ..create(5)
    });
    assert_eq!((q.completion.status, q.completion.handle), (Status::Ok, 3 << 6 | 2));
}

#[test]
fn without_a_common_generation_the_range_is_refused_and_a_list_is_not() {
    let mut p = Pair::new(4, 2);
    for _ in 0..4 {
        let q = p.create(1);
        p.destroy(&q);
    }
    assert_eq!(p.model.entry(2).generation, 3);
    let range = Command {
        flags: flag::CONTIGUOUS,
        list_addr: 0,
        ..create(14)
    };
    assert_eq!(p.run(&range).completion.status, Status::NoCommonGeneration);
    assert_eq!(p.create(14)[0], 2); // index 2 wraps to generation 0
    // A range that ends with index all ones cannot take generation all ones when that makes 24 ones.
    let mut p = Pair::new(8, 16);
    p.run(&Command {
        handle: 0xff_feff,
        flags: flag::REQUESTED,
        list_addr: 0,
        ..create(1)
    });
    p.destroy(&[0xff_feff]);
    let range = Command {
        flags: flag::CONTIGUOUS,
        list_addr: 0,
        ..create(254)
    };
    assert_eq!(p.run(&range).completion.status, Status::NoCommonGeneration);
    let range = Command {
        flags: flag::CONTIGUOUS,
        list_addr: 0,
        ..create(253)
    };
    assert_eq!(p.run(&range).completion.status, Status::Ok);
}

#[test]
fn a_range_is_the_lowest_that_fits_at_its_alignment() {
    let mut p = Pair::new(8, 16);
    let taken = p.create(200); // 2..=201
    let keep = |i: &u32| matches!(i, 5 | 19 | 37 | 64 | 101 | 139);
    let gone: Vec<u32> = taken.iter().copied().filter(|i| !keep(i)).collect();
    p.destroy(&gone);
    // Free: 2..=4, 6..=18, 20..=36, 38..=63, 65..=100, 102..=138, 140..=255.
    for (count, align, first) in [
        (1, 0, 2),
        (3, 0, 2),
        (4, 0, 6),
        (4, 2, 8),
        (13, 0, 6),
        (14, 0, 20),
        (17, 0, 20),
        (18, 0, 38),
        (26, 0, 38),
        (27, 0, 65),
        (8, 4, 48),
        (16, 4, 48),
        (32, 5, 160),
        (30, 4, 144),
        (21, 4, 80),
        (36, 0, 65),
        (36, 2, 140),
        (37, 0, 102),
        (37, 1, 102),
        (35, 3, 104),
        (64, 6, 192),
        (65, 6, 0),
        (100, 0, 140),
        (100, 4, 144),
        (112, 4, 144),
        (113, 4, 0),
        (116, 0, 140),
        (117, 0, 0),
        (17, 7, 0),
        (1, 7, 128),
        (1, 8, 0),
        (1, 15, 0),
    ] {
        let cmd = Command {
            flags: flag::CONTIGUOUS,
            align_log2: align,
            list_addr: 0,
            ..create(count)
        };
        let out = p.run(&cmd).completion;
        assert_eq!(out.handle & 0xff, first, "{count} at {align}");
        assert_eq!(
            out.status,
            if first == 0 { Status::NoResources } else { Status::Ok },
            "{count} at {align}"
        );
        if first != 0 {
            let range = Command {
                handle: out.handle,
                count,
                ..Command::new(Op::Destroy)
            };
            assert_eq!(p.run(&range).completion.status, Status::Ok);
        }
    }
}

#[test]
fn a_requested_number_is_given_once() {
    let mut p = Pair::new(6, 10);
    let ask = |handle| Command {
        handle,
        flags: flag::REQUESTED,
        list_addr: 0,
        ..create(1)
    };
    assert_eq!(p.run(&ask(17)).completion.handle, 17);
    assert_eq!(p.run(&ask(17)).completion.status, Status::InUse);
    assert_eq!(p.run(&ask(17 + 5 * 64)).completion.status, Status::InUse);
    p.destroy(&[17]);
    assert_eq!(
        p.run(&ask(17)).completion.status,
        Status::InUse,
        "its last life had that number"
    );
    assert_eq!(p.run(&ask(17 + 5 * 64)).completion.status, Status::Ok);
    // The list goes round it.
    assert_eq!(p.create(20)[14..17], [16, 18, 19]);
    for bad in [0, 64, 65, 1 << 16, 17 | 1 << 24, 0xff_ffff] {
        let out = p.run(&ask(bad));
        assert_eq!(
            (out.completion.status, out.completion.detail),
            (Status::BadParam, 4),
            "{bad:#x}"
        );
    }
}

#[test]
fn qp_1_is_gsi_on_request_and_keeps_its_number() {
    let mut p = Pair::new(6, 10);
    let gsi = Command {
        handle: 1,
        flags: flag::REQUESTED,
        qp_type: Type::Gsi as u8,
        list_addr: 0,
        ..create(1)
    };
    for _ in 0..3 {
        assert_eq!(p.run(&gsi).completion.handle, 1);
        assert_eq!(p.run(&gsi).completion.status, Status::InUse);
        assert_eq!(
            p.modify(1, 1, &legal(Type::Gsi, State::Init)).completion.status,
            Status::Ok
        );
        p.destroy(&[1]);
    }
    assert_eq!(
        p.run(&Command {
            qp_type: Type::Rc as u8,
            ..gsi
        })
        .completion
        .detail,
        4
    );
    assert_eq!(p.run(&Command { handle: 7, ..gsi }).completion.detail, 4);
    assert_eq!(
        p.run(&Command {
            handle: 0,
            flags: 0,
            ..gsi
        })
        .completion
        .detail,
        11
    );
}

#[test]
fn numbers_and_epochs_survive_a_reset_and_lives_do_not() {
    let mut p = Pair::new(6, 10);
    let old = p.create(10);
    p.bring(old[0], 10, State::Rts);
    let epoch = p.epoch(old[0]);
    p.bench.reset();
    p.model.reset();
    p.check("after the second reset");
    let query = Command {
        handle: old[0],
        attr_addr: ATTR,
        ..Command::new(Op::Query)
    };
    assert_eq!(p.run(&query).completion.status, Status::BadHandle);
    // A report of the old life changes nothing of the new one.
    let new = p.create(62);
    assert_eq!(new[0], old[0] + 64);
    p.bring(new[0], 10, State::Rts);
    p.bench.report_idle(&[Report::Error {
        after: 0,
        source: 0,
        index: 2,
        epoch,
        to_sqe: false,
    }]);
    p.check("after a late report");
}

#[test]
fn a_reset_in_the_middle_of_any_command_leaves_nothing_of_it_behind() {
    for width in [64, 512] {
        let mut p = Pair::wide(width, 6, 10);
        p.bench.manners.read_latency = 9;
        // A list and records that the host takes long to give; one cut for about each cycle of the longest of them.
        let everything = |p: &mut Pair, q: &[u32]| {
            for k in 0..20 {
                let attrs = legal(Type::Rc, State::Init);
                p.bench.host.write(ATTR + 64 * k, &attrs.to_bytes());
            }
            p.list(q);
            let by_list = Command {
                count: 20,
                flags: flag::LIST | flag::RECORDS,
                attr_addr: ATTR,
                list_addr: LIST,
                ..Command::new(Op::Modify)
            };
            let query = Command {
                handle: q[7],
                attr_addr: ATTR + 4096,
                ..Command::new(Op::Query)
            };
            let list = Command {
                count: 64,
                list_addr: LIST + 4096,
                ..Command::new(Op::List)
            };
            let one_for_all = Command {
                flags: flag::LIST,
                ..by_list
            };
            [by_list, query, list, one_for_all]
        };
        let mut rng = Random::new(7);
        for round in 0..160 {
            let q = p.create(20);
            let commands = everything(&mut p, &q);
            let under_way = commands[round % 4];
            let cycles = rng.below(if round % 4 == 1 { 40 } else { 160 });
            if round % 8 == 3 {
                // What is read fails: the command has its error when the reset comes.
                p.bench.host.break_at(LIST, 4);
            }
            p.bench.start(&under_way);
            for _ in 0..cycles {
                p.bench.cycle();
            }
            p.bench.host.mend();
            p.bench.reset();
            p.model.reset();
            p.check(&format!("after a reset {cycles} cycles into {under_way:?}"));
            // Everything works, on new numbers.
            let q = p.create(20);
            for cmd in everything(&mut p, &q) {
                assert_eq!(
                    p.run(&cmd).completion.status,
                    Status::Ok,
                    "{cmd:?}, {cycles} cycles into {under_way:?}"
                );
            }
            p.destroy(&q);
        }
    }
}

// ---------------------------------------------------------------- parameters

#[test]
fn every_bad_parameter_of_create_is_named_by_its_offset() {
    let mut p = Pair::new(6, 10);
    let good = create(4);
    let cases: Vec<(Command, Status, u32)> = vec![
        (Command { count: 0, ..good }, Status::BadParam, 8),
        (Command { count: 65, ..good }, Status::BadParam, 8),
        (
            Command {
                count: 0xff_ffff,
                ..good
            },
            Status::BadParam,
            8,
        ),
        (
            Command {
                flags: flag::REQUESTED,
                handle: 9,
                ..good
            },
            Status::BadParam,
            8,
        ),
        (Command { qp_type: 0, ..good }, Status::BadParam, 11),
        (Command { qp_type: 7, ..good }, Status::BadParam, 11),
        (Command { qp_type: 15, ..good }, Status::BadParam, 11),
        (
            Command {
                qp_type: Type::Dct as u8,
                ..good
            },
            Status::BadParam,
            1,
        ),
        (
            Command {
                flags: flag::USE_SRQ,
                srq: 8,
                ..good
            },
            Status::BadHandle,
            18,
        ),
        (
            Command {
                flags: flag::USE_SRQ,
                srq: 64,
                ..good
            },
            Status::BadHandle,
            18,
        ),
        (
            Command {
                flags: flag::USE_SRQ,
                qp_type: Type::RawPacket as u8,
                ..good
            },
            Status::BadParam,
            1,
        ),
        (
            Command {
                qp_type: Type::XrcTgt as u8,
                pd: 255,
                ..good
            },
            Status::BadHandle,
            12,
        ),
        (Command { pd: 4, ..good }, Status::BadHandle, 12),
        (Command { pd: 0x103, ..good }, Status::BadHandle, 12),
        (Command { send_cq: 6, ..good }, Status::BadHandle, 14),
        (Command { send_cq: 0x105, ..good }, Status::BadHandle, 14),
        (Command { recv_cq: 1, ..good }, Status::BadHandle, 16),
        (Command { recv_cq: 0x1c8, ..good }, Status::BadHandle, 16),
        (Command { uar: 32, ..good }, Status::BadParam, 20),
        (
            Command {
                log_sq_stride: 5,
                ..good
            },
            Status::BadParam,
            22,
        ),
        (
            Command {
                log_rq_stride: 5,
                ..good
            },
            Status::BadParam,
            22,
        ),
        (Command { sq_base: 32, ..good }, Status::BadParam, 24),
        (Command { rq_base: 1, ..good }, Status::BadParam, 32),
        (Command { sq_pitch: 32, ..good }, Status::BadParam, 40),
        (Command { rq_pitch: 1, ..good }, Status::BadParam, 44),
        (
            Command {
                list_addr: LIST + 4,
                ..good
            },
            Status::BadParam,
            48,
        ),
        (Command { list_addr: 0, ..good }, Status::BadParam, 48),
        (
            Command {
                op: Op::Install,
                attr_addr: ATTR + 8,
                ..good
            },
            Status::BadParam,
            56,
        ),
        (
            Command {
                flags: flag::LIST,
                ..good
            },
            Status::ReservedSet,
            0,
        ),
        (
            Command {
                flags: flag::RECORDS,
                ..good
            },
            Status::ReservedSet,
            0,
        ),
        (Command { flags: 0x80, ..good }, Status::ReservedSet, 0),
    ];
    for (cmd, status, detail) in cases {
        let out = p.run(&cmd);
        assert_eq!(
            (out.completion.status, out.completion.detail),
            (status, detail),
            "{cmd:?}"
        );
    }
    assert_eq!(p.create(4), [2, 3, 4, 5], "nothing of all that took a number");
}

#[test]
fn every_bad_parameter_of_the_others_is_named_by_its_offset() {
    let mut p = Pair::new(6, 10);
    let q = p.create(4)[0];
    for op in [Op::Modify, Op::Query, Op::Destroy] {
        let good = Command {
            handle: q,
            attr_addr: if op == Op::Destroy { 0 } else { ATTR },
            ..Command::new(op)
        };
        let mut cases = vec![
            (Command { count: 0, ..good }, Status::BadParam, 8),
            (Command { count: 65, ..good }, Status::BadParam, 8),
            (
                Command {
                    flags: flag::CONTIGUOUS,
                    ..good
                },
                Status::ReservedSet,
                0,
            ),
            (Command { flags: 0x40, ..good }, Status::ReservedSet, 0),
        ];
        match op {
            Op::Query => cases.extend([
                (Command { count: 2, ..good }, Status::BadParam, 8),
                (
                    Command {
                        flags: flag::LIST,
                        ..good
                    },
                    Status::ReservedSet,
                    0,
                ),
                (
                    Command {
                        attr_addr: ATTR + 32,
                        ..good
                    },
                    Status::BadParam,
                    56,
                ),
            ]),
            Op::Modify => cases.extend([
                (
                    Command {
                        attr_addr: ATTR + 1,
                        ..good
                    },
                    Status::BadParam,
                    56,
                ),
                (
                    Command {
                        flags: flag::RECORDS,
                        count: 65,
                        ..good
                    },
                    Status::BadParam,
                    8,
                ),
                (
                    Command {
                        flags: flag::LIST,
                        list_addr: LIST + 4,
                        ..good
                    },
                    Status::BadParam,
                    48,
                ),
            ]),
            _ => cases.extend([
                (
                    Command {
                        flags: flag::RECORDS,
                        ..good
                    },
                    Status::ReservedSet,
                    0,
                ),
                (
                    Command {
                        flags: flag::LIST,
                        list_addr: LIST + 63,
                        ..good
                    },
                    Status::BadParam,
                    48,
                ),
            ]),
        }
        for (cmd, status, detail) in cases {
            let out = p.run(&cmd);
            assert_eq!(
                (out.completion.status, out.completion.detail),
                (status, detail),
                "{cmd:?}"
            );
        }
    }
}

#[test]
fn a_type_without_queues_needs_no_cq_and_refers_to_none() {
    let mut p = Pair::new(6, 10);
    let ini = Command {
        qp_type: Type::XrcIni as u8,
        recv_cq: 77,
        ..create(2)
    };
    assert_eq!(p.run(&ini).refs[0].recv_cq, None);
    let tgt = Command {
        qp_type: Type::XrcTgt as u8,
        recv_cq: 77,
        send_cq: 0x4242,
        ..create(2)
    };
    assert_eq!(p.run(&tgt).refs[0].send_cq, None);
    p.destroy(&[2, 4, 3, 5]);
}

#[test]
fn reserved_bits_of_a_record_are_refused() {
    let mut p = Pair::new(6, 10);
    let q = p.create(3);
    let out = p.modify(
        q[0],
        3,
        &Attrs {
            reserved: true,
            ..legal(Type::Rc, State::Init)
        },
    );
    assert_eq!(out.completion.status, Status::ReservedSet);
    let install = Command {
        op: Op::Install,
        attr_addr: ATTR,
        ..create(2)
    };
    assert_eq!(p.run(&install).completion.status, Status::ReservedSet);
}
