// SPDX-License-Identifier: Apache-2.0
//! Regions whose pages lie anywhere in host memory, on whole NICs: every byte of SEND, WRITE and READ at any alignment, at both
//! ends, and what comes of a page list that cannot be read or an access beyond it.
#![allow(clippy::unwrap_used)]

use openrnic_driver::spec::{EventType, Mtu, QpState, WcStatus, WqeOpcode};
use openrnic_driver::{Iova, MemoryRegion, MrInit, OpenParams, Pages, RecvWr, SendWr};
use openrnic_sim::NicBus;
use openrnic_sim::pcie::{CompletionFault, Which};
use openrnic_sim::rng::Stream;
use openrnic_testbench::e2e::{End, Pair, PairParams, all_access};

const BUDGET: u64 = 600_000;
const SPAN: usize = 60_000;

fn each_width(test: impl Fn(Pair, Stream)) {
    let seed = openrnic_testbench::seed(1);
    for width in [64, 512] {
        println!("width {width}");
        let rng = Stream::new(seed, "pages", width as u64);
        test(Pair::new(PairParams::new(width, seed)).unwrap(), rng);
    }
}

fn scattered(end: &End, pages: Pages, iova: Option<u64>, fill: &[u8]) -> MemoryRegion<NicBus> {
    let region = end
        .pd
        .register(&MrInit {
            pages: Some(pages),
            iova: iova.map(Iova),
            ..MrInit::new(fill.len(), all_access())
        })
        .unwrap();
    region.write(0, fill).unwrap();
    region
}

fn bytes(rng: &mut Stream, n: usize) -> Vec<u8> {
    (0..n).map(|_| rng.bits() as u8).collect()
}

#[test]
fn every_byte_between_scattered_regions_arrives_where_it_belongs() {
    each_width(|pair, mut rng| {
        for (mtu, log_page) in [
            (Mtu::Mtu256, 12),
            (Mtu::Mtu1024, 13),
            (Mtu::Mtu4096, 12),
            (Mtu::Mtu4096, 14),
        ] {
            let [a, b] = pair.connected(mtu, [0xff_fff0, 0x10]).unwrap();
            let mut pages = |offset: usize| Pages {
                log_page,
                offset,
                scatter: rng.bits(),
            };
            // One begins inside its first page, the other is zero-based.
            let (at0, at1) = (pages(3000), pages(0));
            let mut near = bytes(&mut rng, SPAN);
            let mut far = bytes(&mut rng, SPAN);
            let here = scattered(&pair.ends[0], at0, None, &near);
            let there = scattered(&pair.ends[1], at1, Some(0), &far);
            for turn in 0..24 {
                let kind = [WqeOpcode::Send, WqeOpcode::RdmaWrite, WqeOpcode::RdmaRead][turn % 3];
                let what = format!("turn {turn}: {kind:?}, {mtu:?}, pages of 2^{log_page}");
                // Up to four elements; they and the remote end lie around page boundaries or anywhere.
                let mut place = |len: usize| {
                    let at = rng.below((SPAN - len - 5000) as u64) as usize;
                    match turn % 2 {
                        0 => at,
                        _ => ((at | 0xfff) + 1)
                            .saturating_sub(rng.below(len as u64 + 2) as usize)
                            .min(SPAN - len),
                    }
                };
                let lens: Vec<usize> = match turn % 4 {
                    0 => vec![1 + turn],
                    1 => vec![9000],
                    2 => vec![4096, 1, 333],
                    _ => vec![700, 4097, 5, 2000],
                };
                let total: usize = lens.iter().sum();
                // Elements of a READ must not overlap.
                let mut froms: Vec<usize> = Vec::new();
                for len in &lens {
                    loop {
                        let at = place(*len);
                        let free = |(o, l): (&usize, &usize)| at + len <= *o || o + l <= at;
                        if froms.iter().zip(&lens).all(free) {
                            froms.push(at);
                            break;
                        }
                    }
                }
                let to = place(total);
                let sges = froms
                    .iter()
                    .zip(&lens)
                    .map(|(at, len)| here.sge(*at, *len as u32))
                    .collect();
                let mut wr = SendWr::new(turn as u64, kind, sges);
                wr.rkey = there.rkey();
                wr.remote_addr = Iova(to as u64);
                if kind == WqeOpcode::Send {
                    let first = total / 3;
                    let mut sges = vec![
                        there.sge(to, first as u32),
                        there.sge(to + first, (total - first) as u32),
                    ];
                    sges.retain(|s| s.length > 0);
                    b.post_recv(&[RecvWr { wr_id: 7, sges }]).unwrap();
                }
                a.post_send(&[wr]).unwrap();
                let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
                assert_eq!(done[0].status, WcStatus::Success, "{what}");
                if kind == WqeOpcode::Send {
                    let got = pair.ends[1].recv_cq.wait(1, BUDGET).unwrap();
                    assert_eq!((got[0].status, got[0].byte_len as usize), (WcStatus::Success, total));
                }
                let mut remote = to;
                for (at, len) in froms.iter().zip(&lens) {
                    let (local, other) = (*at..at + len, remote..remote + len);
                    if kind == WqeOpcode::RdmaRead {
                        near[local].copy_from_slice(&far[other]);
                    } else {
                        far[other].copy_from_slice(&near[local]);
                    }
                    remote += len;
                }
                assert!(here.read(0, SPAN).unwrap() == near, "{what}: the local region");
                assert!(there.read(0, SPAN).unwrap() == far, "{what}: the remote region");
            }
            for region in [here, there] {
                region.deregister().unwrap();
            }
            a.destroy().unwrap();
            b.destroy().unwrap();
        }
        // Nothing outside of what is mapped was touched, and the pages were given back.
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

#[test]
fn an_access_past_the_page_list_is_a_remote_access_error_and_touches_nothing() {
    each_width(|pair, mut rng| {
        for kind in [WqeOpcode::RdmaRead, WqeOpcode::RdmaWrite] {
            let [a, b] = pair.connected(Mtu::Mtu1024, [5, 9]).unwrap();
            let here = pair.ends[0].region(9000, all_access(), |_| 0x11).unwrap();
            let fill = bytes(&mut rng, 8192 - 100);
            let pages = Pages {
                offset: 100,
                scatter: rng.bits(),
                ..Pages::default()
            };
            let there = scattered(&pair.ends[1], pages, Some(0x5000), &fill);
            let mut wr = SendWr::new(1, kind, vec![here.sge(0, 5000)]);
            wr.rkey = there.rkey();
            // The last byte is the first one behind the list's pages.
            wr.remote_addr = Iova(0x5000 + fill.len() as u64 - 4999);
            a.post_send(&[wr]).unwrap();
            let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
            assert_eq!(done[0].status, WcStatus::RemAccessErr, "{kind:?}");
            pair.run(3000).unwrap();
            let events = pair.ends[1].events().unwrap();
            assert!(events.contains(&(EventType::QpAccessErr, b.qpn().0)), "{events:?}");
            assert!(there.read(0, fill.len()).unwrap() == fill);
            assert!(here.read(0, 9000).unwrap().iter().all(|b| *b == 0x11));
            assert!(pair.world.borrow_mut().take_violations().is_empty());
            a.destroy().unwrap();
            b.destroy().unwrap();
        }
    });
}

#[test]
fn a_page_list_that_the_host_does_not_deliver_costs_the_qp_that_needed_it() {
    each_width(|pair, mut rng| {
        for (n, kind) in [
            CompletionFault::Abort,
            CompletionFault::Poison,
            CompletionFault::Unsupported,
        ]
        .into_iter()
        .enumerate()
        {
            for op in [WqeOpcode::RdmaRead, WqeOpcode::RdmaWrite, WqeOpcode::Send] {
                let what = format!("{kind:?}, {op:?}");
                let [a, b] = pair.connected(Mtu::Mtu1024, [5, 9]).unwrap();
                let here = pair.ends[0].region(9000, all_access(), |_| 0x11).unwrap();
                let fill = bytes(&mut rng, 20_000);
                let pages = Pages {
                    scatter: rng.bits(),
                    ..Pages::default()
                };
                // The list of the remote region, or (a SEND) that of the local one.
                let end = usize::from(op != WqeOpcode::Send);
                let listed = scattered(&pair.ends[end], pages, None, &fill);
                let list = listed.page_list_addr().unwrap().unwrap();
                let which = Which::Range {
                    start: list,
                    len: 64,
                    times: 1,
                };
                pair.world.borrow_mut().host(end).unwrap().inject_fault(which, kind);
                let sge = if end == 0 {
                    listed.sge(n, 3000)
                } else {
                    here.sge(0, 3000)
                };
                let mut wr = SendWr::new(1, op, vec![sge]);
                wr.rkey = listed.rkey();
                wr.remote_addr = listed.iova();
                a.post_send(&[wr]).unwrap();
                let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
                if end == 0 {
                    assert_eq!(
                        (done[0].status, done[0].vendor_err),
                        (WcStatus::LocProtErr, 0x17),
                        "{what}"
                    );
                } else {
                    assert_eq!(done[0].status, WcStatus::RemOpErr, "{what}");
                    pair.run(3000).unwrap();
                    let events = pair.ends[1].events().unwrap();
                    assert!(events.contains(&(EventType::QpFatal, b.qpn().0)), "{what}: {events:?}");
                }
                assert!(listed.read(0, fill.len()).unwrap() == fill, "{what}");
                // The device and the region are sound: another QP uses them.
                let [c, d] = pair.connected(Mtu::Mtu1024, [5, 9]).unwrap();
                let mut wr = SendWr::new(2, WqeOpcode::RdmaWrite, vec![sge]);
                wr.rkey = listed.rkey();
                wr.remote_addr = listed.iova();
                if end == 1 {
                    c.post_send(&[wr]).unwrap();
                    let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
                    assert_eq!(done[0].status, WcStatus::Success, "{what}");
                    assert!(listed.read(0, 3000).unwrap().iter().all(|b| *b == 0x11), "{what}");
                }
                for qp in [a, b, c, d] {
                    qp.destroy().unwrap();
                }
            }
        }
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

/// Whose page list fails while a message of many packets is under way.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Listed {
    Source,
    Sink,
}

#[test]
fn a_page_list_that_fails_in_the_middle_of_a_message_ends_it_there_at_both_ends() {
    const LEN: usize = 20_480;
    // The message begins in the sixth page of the region: the list's second line, of eight pages, is needed after these bytes.
    const FIRST: usize = 5 * 4096;
    const GOOD: usize = 3 * 4096;
    for width in [64, 512] {
        for fault in [CompletionFault::Abort, CompletionFault::Poison, CompletionFault::Drop] {
            let seed = openrnic_testbench::seed(1);
            let mut params = PairParams::new(width, seed);
            params.open = OpenParams {
                dma_timeout_cycles: Some(4000),
                ..OpenParams::default()
            };
            let pair = Pair::new(params).unwrap();
            let mut rng = Stream::new(seed, "lists", width as u64);
            for (op, listed) in [
                (WqeOpcode::RdmaWrite, Listed::Source),
                (WqeOpcode::RdmaWrite, Listed::Sink),
                (WqeOpcode::RdmaWriteWithImm, Listed::Sink),
                (WqeOpcode::Send, Listed::Source),
                (WqeOpcode::Send, Listed::Sink),
                (WqeOpcode::RdmaRead, Listed::Source),
                (WqeOpcode::RdmaRead, Listed::Sink),
            ] {
                let what = format!("{width} bits, {fault:?}, {op:?}, list of the {listed:?}");
                let [a, b] = pair.connected(Mtu::Mtu1024, [0xff_fffa, 9]).unwrap();
                let read = op == WqeOpcode::RdmaRead;
                // Who has the source, who has the sink, whose list fails.
                let (from, to) = if read { (1, 0) } else { (0, 1) };
                let end = if listed == Listed::Source { from } else { to };
                let mut region = |n: usize, fill: u8| {
                    let pages = Pages {
                        scatter: rng.bits(),
                        ..Pages::default()
                    };
                    scattered(&pair.ends[n], pages, None, &[fill; FIRST + LEN])
                };
                let (source, sink) = (region(from, 0x11), region(to, 0x22));
                let bad = if listed == Listed::Source { &source } else { &sink };
                let which = Which::Range {
                    start: bad.page_list_addr().unwrap().unwrap() + 64,
                    len: 8,
                    times: 1,
                };
                pair.world.borrow_mut().host(end).unwrap().inject_fault(which, fault);
                for end in &pair.ends {
                    end.events().unwrap();
                }
                // Receives: that of a SEND, and others that nobody uses.
                let sges = if op == WqeOpcode::Send {
                    vec![sink.sge(FIRST, LEN as u32)]
                } else {
                    vec![]
                };
                for wr_id in [20, 21] {
                    let sges = sges.clone();
                    b.post_recv(&[RecvWr { wr_id, sges }]).unwrap();
                }
                let (near, far) = if read { (&sink, &source) } else { (&source, &sink) };
                let mut wr = SendWr::new(1, op, vec![near.sge(FIRST, LEN as u32)]);
                wr.rkey = far.rkey();
                wr.remote_addr = far.iova().offset(FIRST as u64);
                a.post_send(&[wr, SendWr::send(2, vec![])]).unwrap();
                let done = pair.ends[0].send_cq.wait(2, BUDGET).unwrap();
                pair.run(3000).unwrap();
                let mine = end == 0;
                let got: Vec<_> = done.iter().map(|c| (c.wr_id, c.status, c.vendor_err)).collect();
                let first = if mine {
                    (1, WcStatus::LocProtErr, 0x17)
                } else {
                    (1, WcStatus::RemOpErr, 0)
                };
                assert_eq!(got, [first, (2, WcStatus::WrFlushErr, 0)], "{what}");
                // The peer of an end that fails by itself knows nothing of it: its receives wait until it is told.
                let state = b.query().unwrap().state;
                assert_eq!(state, if mine { QpState::Rts } else { QpState::Err }, "{what}");
                assert_eq!(a.query().unwrap().state, QpState::Err, "{what}");
                if mine {
                    b.to_err().unwrap();
                }
                let got = pair.ends[1].recv_cq.wait(2, BUDGET).unwrap();
                let got: Vec<_> = got.iter().map(|c| (c.wr_id, c.status, c.vendor_err)).collect();
                let used = match op {
                    WqeOpcode::Send if !mine => (20, WcStatus::LocProtErr, 0x17),
                    // The SEND behind the READ was executed while the READ was still being answered: its receive tells so, although
                    // the requester's end of it is flushed.
                    WqeOpcode::RdmaRead => (20, WcStatus::Success, 0),
                    _ => (20, WcStatus::WrFlushErr, 0),
                };
                assert_eq!(got, [used, (21, WcStatus::WrFlushErr, 0)], "{what}");
                // The receive tells of it, else an event does.
                let mut events = pair.ends[1].events().unwrap();
                events.retain(|e| e.0 != EventType::CommEst);
                let told = !mine && op != WqeOpcode::Send;
                let want: Vec<_> = told.then_some((EventType::QpFatal, b.qpn().0)).into_iter().collect();
                assert_eq!((events, pair.ends[0].events().unwrap()), (want, vec![]), "{what}");
                // What came before is there, nothing behind it.
                let got = sink.read(0, FIRST + LEN).unwrap();
                let end = got.iter().rposition(|b| *b != 0x22).map_or(FIRST, |i| i + 1);
                assert_eq!(end, FIRST + GOOD, "{what}");
                assert!(got[FIRST..end].iter().all(|b| *b == 0x11), "{what}");
                assert!(got[..FIRST].iter().all(|b| *b == 0x22), "{what}");
                for qp in [a, b] {
                    qp.destroy().unwrap();
                }
                for region in [source, sink] {
                    region.deregister().unwrap();
                }
            }
            // The device is sound.
            let [a, b] = pair.connected(Mtu::Mtu1024, [5, 9]).unwrap();
            b.post_recv(&[RecvWr { wr_id: 7, sges: vec![] }]).unwrap();
            a.post_send(&[SendWr::send(8, vec![])]).unwrap();
            assert_eq!(
                pair.ends[1].recv_cq.wait(1, BUDGET).unwrap()[0].status,
                WcStatus::Success
            );
            assert_eq!(
                pair.ends[0].send_cq.wait(1, BUDGET).unwrap()[0].status,
                WcStatus::Success
            );
            assert!(pair.world.borrow_mut().take_violations().is_empty());
        }
    }
}
