// SPDX-License-Identifier: Apache-2.0
//! One simulated NIC that stands in for an end of a recorded conversation: its queue pair, its memory, the wire before it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use openrnic_driver::{
    AddressVector, CompletionQueue, CqInit, Device, Iova, MemoryRegion, MrInit, OpenParams, ProtectionDomain, Psn,
    QpAttr, QpCap, QpInit, Qpn, QueuePair, attr,
};
use openrnic_sim::model::NicSpec;
use openrnic_sim::pcie::HostParams;
use openrnic_sim::wire::{Direction, TapPoints};
use openrnic_sim::{NicBus, SharedWorld, World, WorldParams};
use openrnic_spec::{Access, MrKind, Mtu, QpState, QpType};
use openrnic_testbench::wire::{Frame, Roce};

use super::flow::Flow;

/// Everything that a region can allow.
fn all_access() -> Access {
    Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC
}

/// Cycles without any activity after which a NIC counts as done.
const QUIET: u64 = 400;
/// Longest wait for that.
const QUIET_BUDGET: u64 = 2_000_000;

/// How to make the NIC.
#[derive(Debug, Clone)]
pub struct BedParams {
    /// Width of the data path in bits.
    pub data_width: usize,
    /// Seed of the world.
    pub seed: u64,
    /// Capture of what happens.
    pub pcap: Option<PathBuf>,
    /// Trace (FST).
    pub wave: Option<PathBuf>,
    /// Defines of the RTL build.
    pub defines: Vec<String>,
}

/// What the queue pair shall be.
#[derive(Debug, Clone, Copy)]
pub struct QpPlan {
    /// The NIC is the responder; otherwise the requester.
    pub responder: bool,
    /// Its number; `None`: any.
    pub qpn: Option<u32>,
    /// Number of the peer's queue pair.
    pub peer_qpn: u32,
    /// First PSN of the requests.
    pub psn: u32,
    /// Code of the RNR NAK timer.
    pub rnr_timer: u8,
}

/// The NIC and what it has sent.
pub struct Bed {
    world: SharedWorld,
    /// Its protection domain.
    pub pd: ProtectionDomain<NicBus>,
    /// Where sends and receives complete.
    pub cq: CompletionQueue<NicBus>,
    /// The queue pair.
    pub qp: QueuePair<NicBus>,
    sent: Rc<RefCell<VecDeque<Vec<u8>>>>,
    device: Device<NicBus>,
}

/// An MTU by its bytes.
fn mtu(bytes: u32) -> Result<Mtu> {
    Ok(match bytes {
        256 => Mtu::Mtu256,
        512 => Mtu::Mtu512,
        1024 => Mtu::Mtu1024,
        2048 => Mtu::Mtu2048,
        4096 => Mtu::Mtu4096,
        _ => bail!("no MTU has {bytes} bytes"),
    })
}

impl Bed {
    /// Builds the NIC and connects its queue pair as one end of `flow`.
    ///
    /// # Errors
    /// As simulator and driver say.
    pub fn new(params: &BedParams, flow: &Flow, plan: &QpPlan) -> Result<Self> {
        let mut nic = NicSpec::new(params.data_width);
        nic.defines.clone_from(&params.defines);
        let mut world = World::new(&WorldParams {
            seed: params.seed,
            nics: 1,
            nic,
            host: HostParams::ideal(),
            capture: params.pcap.clone(),
            capture_points: TapPoints::BothEnds,
            trace: params.wave.clone(),
            ..WorldParams::default()
        })
        .context("the simulated world cannot be made")?;
        let sent = Rc::new(RefCell::new(VecDeque::new()));
        let log = Rc::clone(&sent);
        world.wire().observe(move |event| {
            if event.direction == Direction::Out {
                log.borrow_mut().push_back(event.frame.to_vec());
            }
        });
        let world = world.shared();
        let device = Device::open(NicBus::new(&world, 0)?, OpenParams::default())?;
        let (own, peer) = if plan.responder {
            (flow.responder, flow.requester)
        } else {
            (flow.requester, flow.responder)
        };
        device.set_port(1, own.mac, Mtu::Mtu4096, true)?;
        device.set_gid(0, own.gid)?;
        let pd = device.alloc_pd()?;
        let cq = device.create_cq(&CqInit::entries(1024))?;
        let init = QpInit {
            qpn: plan.qpn.map(Qpn),
            cap: QpCap {
                max_send_wr: 256,
                max_recv_wr: 256,
                ..QpCap::default()
            },
            ..QpInit::new(QpType::Rc, &cq)
        };
        let qp = pd.create_qp(&init).with_context(|| match plan.qpn {
            Some(qpn) => format!("creating QP {qpn:#08x}, the recorded number"),
            None => "creating the queue pair".to_owned(),
        })?;
        let attr = QpAttr {
            qp_state: QpState::Init,
            access_flags: all_access(),
            av: AddressVector {
                dgid: peer.gid,
                dmac: Some(peer.mac),
                ..AddressVector::default()
            },
            path_mtu: mtu(flow.mtu)?,
            dest_qpn: Qpn(plan.peer_qpn),
            rq_psn: Psn::new(plan.psn),
            sq_psn: Psn::new(plan.psn),
            min_rnr_timer: plan.rnr_timer,
            max_rd_atomic: 16,
            max_dest_rd_atomic: 16,
            // 262 us: long beside what happens between two frames, short beside a user's patience.
            timeout: 6,
            ..QpAttr::default()
        };
        qp.modify(&attr, attr::INIT_MASK)?;
        let rtr = QpAttr {
            qp_state: QpState::Rtr,
            ..attr.clone()
        };
        qp.modify(&rtr, attr::RTR_MASK)?;
        if !plan.responder {
            let rts = QpAttr {
                qp_state: QpState::Rts,
                ..attr
            };
            qp.modify(&rts, attr::RTS_MASK)?;
        }
        Ok(Self {
            world,
            pd,
            cq,
            qp,
            sent,
            device,
        })
    }

    /// A region that users and the peer name by `va`.
    ///
    /// # Errors
    /// As the driver says.
    pub fn region(&self, va: Option<u64>, length: usize) -> Result<MemoryRegion<NicBus>> {
        self.region_of(MrKind::Region, va, length)
    }

    /// The same, of a kind.
    ///
    /// # Errors
    /// As the driver says.
    pub fn region_of(&self, kind: MrKind, va: Option<u64>, length: usize) -> Result<MemoryRegion<NicBus>> {
        Ok(self.pd.register(&MrInit {
            iova: va.map(Iova),
            kind,
            ..MrInit::new(length.max(1), all_access())
        })?)
    }

    /// Lets the NIC receive a frame and waits until it has done with it.
    ///
    /// # Errors
    /// As the simulator says.
    pub fn inject(&mut self, frame: &[u8]) -> Result<()> {
        self.world.borrow_mut().inject(0, frame)?;
        self.quiet()
    }

    /// Waits until nothing happens any more (timers aside).
    ///
    /// # Errors
    /// As the simulator says; when it never becomes quiet.
    pub fn quiet(&mut self) -> Result<()> {
        let mut world = self.world.borrow_mut();
        let mut still = 0;
        for _ in 0..QUIET_BUDGET {
            still = if world.is_idle() { still + 1 } else { 0 };
            if still >= QUIET {
                return Ok(());
            }
            world.step()?;
        }
        bail!("the NIC is busy {QUIET_BUDGET} cycles after a frame")
    }

    /// The next frame that the NIC sends, or none within `budget` cycles.
    ///
    /// # Errors
    /// As the simulator says; when the frame is no RoCE.
    pub fn next_frame(&mut self, budget: u64) -> Result<Option<Roce>> {
        for _ in 0..budget {
            if !self.sent.borrow().is_empty() {
                break;
            }
            self.world.borrow_mut().step()?;
        }
        let frame = self.sent.borrow_mut().pop_front();
        frame.map(|bytes| parse(&bytes)).transpose()
    }

    /// Everything that it has sent since somebody looked.
    ///
    /// # Errors
    /// When a frame is no RoCE.
    pub fn take_frames(&mut self) -> Result<Vec<Roce>> {
        let frames: Vec<_> = self.sent.borrow_mut().drain(..).collect();
        frames.iter().map(|bytes| parse(bytes)).collect()
    }

    /// Makes capture and trace readable.
    ///
    /// # Errors
    /// As the simulator says.
    pub fn finish(&self) -> Result<()> {
        self.world.borrow_mut().flush()?;
        if let Some(why) = self.device.fatal_reason()? {
            bail!("the device has met a fatal error: {why:?}");
        }
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> Result<Roce> {
    match Frame::parse(bytes) {
        Frame::Roce(roce) => Ok(*roce),
        Frame::Opaque(_, why) => bail!(
            "the NIC sent a frame of {} bytes that is not RoCEv2: {why}",
            bytes.len()
        ),
    }
}
