// SPDX-License-Identifier: Apache-2.0
//! Commands of shared receive queues and XRC domains at the control block.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use openrnic_testbench::ctrl_bench::{BASE, Cmd, CtrlBench, Mr, QpAnswer, Ref, seed};
use openrnic_testbench::ctrl_model::status::*;
use openrnic_testbench::ctrl_srq::{LEFT, Made, NUM_SRQ};

const WIDTHS: [u32; 2] = [64, 512];
const NONE: Ref = Ref {
    inc: true,
    n: 1,
    pd: 0,
    send_cq: 0xffff,
    recv_cq: 0xffff,
    srq: 0xffff,
    in_xrcd: false,
};

fn ok(b: &mut CtrlBench, cmd: &Cmd) -> u32 {
    let c = b.exec(cmd);
    assert_eq!(c.status, OK, "{cmd:02x?}");
    c.handle
}

fn refused(b: &mut CtrlBench, cmd: &Cmd, status: u8, detail: u32) {
    let c = b.exec(cmd);
    assert_eq!((c.status, c.detail, c.handle), (status, detail, 0), "{cmd:02x?}");
}

fn refer(b: &mut CtrlBench, r: Ref) {
    b.qp_answers.push_back(QpAnswer {
        refs: Some(r),
        ..QpAnswer::default()
    });
    ok(b, &Cmd::new(0x40, 0));
}

#[test]
fn a_queue_is_made_as_asked_changed_and_told() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        let pd = ok(&mut b, &Cmd::create_pd());
        let pd = pd + ok(&mut b, &Cmd::create_pd());
        for delay in [0, 1, 40] {
            b.srqs.delay = delay;
            let srq = ok(&mut b, &Cmd::create_srq(pd, 31, 15, 4, 0x1234_5678_9abc_0040));
            let made = Made {
                pd: pd as u16,
                uar: 31,
                log_size: 15,
                log_stride: 4,
                base: 0x1234_5678_9abc_0040,
                limit: 0,
            };
            assert_eq!(b.srqs.made[srq as usize], Some(made));
            assert_eq!(ok(&mut b, &Cmd::modify_srq(srq, 0xbeef)), srq);
            let c = b.exec(&Cmd::query_srq(srq));
            assert_eq!((c.status, c.handle, c.count), (OK, u32::from(LEFT), 0xbeef));
        }
    }
}

#[test]
fn parameters_are_judged_and_the_first_wrong_one_is_named() {
    let mut b = CtrlBench::new(64, seed());
    let pd = ok(&mut b, &Cmd::create_pd());
    for (cmd, status, detail) in [
        (Cmd::create_srq(pd + 1, 0, 4, 0, BASE), BAD_HANDLE, 8),
        (Cmd::create_srq(256, 0, 4, 0, BASE), BAD_HANDLE, 8),
        (Cmd::create_srq(pd, 32, 4, 0, BASE), BAD_PARAM, 10),
        (Cmd::create_srq(pd, 0, 0, 0, BASE), BAD_PARAM, 11),
        (Cmd::create_srq(pd, 0, 4, 5, BASE), BAD_PARAM, 11),
        (Cmd::create_srq(pd, 0, 4, 0, BASE + 32), BAD_PARAM, 16),
        (Cmd::create_srq(pd, 0, 4, 0, BASE).with(4, &[1]), RESERVED_SET, 0),
        (Cmd::create_srq(pd, 0, 4, 0, BASE).with(12, &[1]), RESERVED_SET, 0),
        (Cmd::create_srq(pd, 0, 4, 0, BASE).with(1, &[1]), RESERVED_SET, 0),
        (Cmd::modify_srq(0, 1), BAD_HANDLE, 4),
        (Cmd::modify_srq(0, 1).with(8, &[1]), RESERVED_SET, 0),
        (Cmd::query_srq(NUM_SRQ), BAD_HANDLE, 4),
        (Cmd::destroy_srq(0x100), BAD_HANDLE, 4),
        (Cmd::destroy_xrcd(0), BAD_HANDLE, 4),
        (Cmd::destroy_xrcd(16), BAD_HANDLE, 4),
    ] {
        refused(&mut b, &cmd, status, detail);
    }
    assert_eq!(b.srqs.made, [None; NUM_SRQ as usize]);
}

#[test]
fn tables_can_be_filled_and_numbers_come_back() {
    let mut b = CtrlBench::new(512, seed());
    let pd = ok(&mut b, &Cmd::create_pd());
    let create = Cmd::create_srq(pd, 0, 1, 0, BASE);
    let all: Vec<u32> = (0..NUM_SRQ).map(|_| ok(&mut b, &create)).collect();
    assert_eq!(all, (0..NUM_SRQ).collect::<Vec<_>>());
    refused(&mut b, &create, NO_RESOURCES, 0);
    ok(&mut b, &Cmd::destroy_srq(5));
    assert_eq!(ok(&mut b, &create), 5);
    let all: Vec<u32> = (0..16).map(|_| ok(&mut b, &Cmd::create_xrcd())).collect();
    assert_eq!(all, (0..16).collect::<Vec<_>>());
    refused(&mut b, &Cmd::create_xrcd(), NO_RESOURCES, 0);
    assert_eq!(b.dut.get("xrcd_valid_o"), 0xffff);
    ok(&mut b, &Cmd::destroy_xrcd(9));
    assert_eq!(b.dut.get("xrcd_valid_o"), 0xfdff);
    assert_eq!(ok(&mut b, &Cmd::create_xrcd()), 9);
}

#[test]
fn a_queue_that_qps_receive_from_stays_and_keeps_its_pd() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        let pd = ok(&mut b, &Cmd::create_pd());
        let other = ok(&mut b, &Cmd::create_pd());
        let srq = ok(&mut b, &Cmd::create_srq(pd, 0, 4, 0, BASE));
        refused(&mut b, &Cmd::destroy_pd(pd), IN_USE, 0);
        let used = Ref {
            n: 70_000,
            pd: other as u16,
            srq: srq as u16,
            ..NONE
        };
        refer(&mut b, used);
        refused(&mut b, &Cmd::destroy_srq(srq), IN_USE, 0);
        refer(
            &mut b,
            Ref {
                inc: false,
                n: 69_999,
                ..used
            },
        );
        refused(&mut b, &Cmd::destroy_srq(srq), IN_USE, 0);
        refer(
            &mut b,
            Ref {
                inc: false,
                n: 1,
                ..used
            },
        );
        ok(&mut b, &Cmd::destroy_pd(other));
        // A region of the same PD counts beside it.
        let key = ok(
            &mut b,
            &Cmd::create_mr(&Mr {
                kind: 0,
                pd: pd as u16,
                access: 1,
                key: 0x5a,
                va: 0,
                length: 4096,
                host_addr: BASE,
                log_page: 0,
                page_offset: 0,
            }),
        );
        ok(&mut b, &Cmd::destroy_srq(srq));
        refused(&mut b, &Cmd::destroy_pd(pd), IN_USE, 0);
        ok(&mut b, &Cmd::destroy_mr(key));
        ok(&mut b, &Cmd::destroy_pd(pd));
    }
}

#[test]
fn an_xrc_domain_in_use_stays_and_counts_apart_from_pds() {
    let mut b = CtrlBench::new(64, seed());
    let pd = ok(&mut b, &Cmd::create_pd());
    let xrcd = ok(&mut b, &Cmd::create_xrcd());
    assert_eq!(pd, xrcd, "the same number in two tables");
    let used = Ref {
        n: 3,
        in_xrcd: true,
        pd: xrcd as u16,
        ..NONE
    };
    refer(&mut b, used);
    refused(&mut b, &Cmd::destroy_xrcd(xrcd), IN_USE, 0);
    ok(&mut b, &Cmd::destroy_pd(pd));
    refer(&mut b, Ref { inc: false, ..used });
    ok(&mut b, &Cmd::destroy_xrcd(xrcd));
    refused(&mut b, &Cmd::destroy_xrcd(xrcd), BAD_HANDLE, 4);
}

#[test]
fn destroying_a_queue_waits_for_a_barrier() {
    for width in WIDTHS {
        let mut b = CtrlBench::new(width, seed());
        let pd = ok(&mut b, &Cmd::create_pd());
        b.manners.drain = Some(100);
        let srq = ok(&mut b, &Cmd::create_srq(pd, 0, 4, 0, BASE));
        let before = b.barriers;
        let c = b.exec(&Cmd::destroy_srq(srq));
        assert_eq!((c.status, b.barriers), (OK, before + 1));
        assert!(c.exec_cycles >= 100, "{} cycles", c.exec_cycles);
        // Its number is free only then, and a barrier that is not answered ends the device.
        assert_eq!(ok(&mut b, &Cmd::create_srq(pd, 0, 4, 0, BASE)), srq + 1);
        b.manners.drain = None;
        assert_eq!(b.exec(&Cmd::destroy_srq(srq + 1)).status, FATAL);
    }
}
