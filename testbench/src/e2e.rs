// SPDX-License-Identifier: Apache-2.0
//! Two whole NICs on one wire, with a driver on each: what the end-to-end tests and the benches stand on.

use openrnic_driver::spec::{Access, EventType, Mtu, QpState, QpType, WqeOpcode};
use openrnic_driver::{
    AddressVector, BatchInit, CompletionQueue, CqInit, Device, Gid, MemoryRegion, MrInit, OpenParams, ProtectionDomain,
    Psn, QpAttr, QpBatch, QpCap, QpInit, QueuePair, attr,
};
use openrnic_sim::NicBus;
use openrnic_sim::model::NicSpec;
use openrnic_sim::pcie::HostParams;
use openrnic_sim::wire::WireParams;
use openrnic_sim::world::{SharedWorld, World, WorldParams};

/// Why a bench could not be set up or run: the message of whoever failed.
pub type Fail = Box<dyn std::error::Error>;

/// How the two NICs and their world are made.
pub struct PairParams {
    /// Datapath width in bits: 64, 128, 256 or 512.
    pub data_width: usize,
    /// Seed of the world.
    pub seed: u64,
    /// Both hosts.
    pub host: HostParams,
    /// The wire.
    pub wire: WireParams,
    /// log2 of the QP table.
    pub log_qp: u32,
    /// Defines of the RTL build.
    pub defines: Vec<String>,
    /// How the drivers bring their devices up.
    pub open: OpenParams,
    /// Capture file.
    pub capture: Option<std::path::PathBuf>,
}

impl PairParams {
    /// A busy, random host; everything else plain.
    pub fn new(data_width: usize, seed: u64) -> Self {
        Self {
            data_width,
            seed,
            host: HostParams::default(),
            wire: WireParams::default(),
            log_qp: 10,
            defines: Vec::new(),
            open: OpenParams::default(),
            capture: None,
        }
    }
}

/// One NIC with its driver and the objects every test needs.
pub struct End {
    /// The device.
    pub device: Device<NicBus>,
    /// Its protection domain.
    pub pd: ProtectionDomain<NicBus>,
    /// Completion queue of sends.
    pub send_cq: CompletionQueue<NicBus>,
    /// Completion queue of receives.
    pub recv_cq: CompletionQueue<NicBus>,
    /// MAC address.
    pub mac: [u8; 6],
    /// GID 0: IPv4-mapped, unless [`Pair::over_ipv6`] changed it.
    pub gid: Gid,
}

impl End {
    /// What end `n` needs on a device that was just brought up: its port, a protection domain, two completion queues.
    ///
    /// # Errors
    /// As the driver says.
    pub fn set_up(device: Device<NicBus>, n: usize) -> Result<Self, Fail> {
        let mac = [2, 0, 0, 0, 0, n as u8 + 1];
        let gid = Gid::from_ipv4([10, 0, 0, n as u8 + 1]);
        device.set_port(1, mac, Mtu::Mtu4096, true)?;
        device.set_gid(0, gid)?;
        let pd = device.alloc_pd()?;
        let send_cq = device.create_cq(&CqInit::entries(1024))?;
        let recv_cq = device.create_cq(&CqInit::entries(1024))?;
        Ok(Self {
            device,
            pd,
            send_cq,
            recv_cq,
            mac,
            gid,
        })
    }

    /// Creation parameters of an RC QP on this end.
    pub fn qp_init(&self) -> QpInit {
        QpInit {
            recv_cq: self.recv_cq.cqn(),
            cap: QpCap {
                max_send_sge: 4,
                max_recv_sge: 4,
                ..QpCap::default()
            },
            ..QpInit::new(QpType::Rc, &self.send_cq)
        }
    }

    /// The asynchronous events that came and were not fetched, with what each is about; but for PORT_ACTIVE, which
    /// [`Self::set_up`] causes.
    ///
    /// # Errors
    /// As the driver says.
    pub fn events(&self) -> Result<Vec<(EventType, u32)>, Fail> {
        let mut out = Vec::new();
        while let Some(event) = self.device.get_async_event()? {
            if event.event != EventType::PortActive {
                out.push((event.event, event.number));
            }
        }
        Ok(out)
    }

    /// Registers a region of its own, filled from `fill`.
    ///
    /// # Errors
    /// As the driver says.
    pub fn region(
        &self,
        length: usize,
        access: Access,
        fill: impl Fn(usize) -> u8,
    ) -> Result<MemoryRegion<NicBus>, Fail> {
        let region = self.pd.register(&MrInit::new(length, access))?;
        region.write(0, &(0..length).map(fill).collect::<Vec<_>>())?;
        Ok(region)
    }
}

/// The operations that move data between two queue pairs and need nothing prepared but regions (and receives).
pub const OPERATIONS: [WqeOpcode; 7] = [
    WqeOpcode::Send,
    WqeOpcode::SendWithImm,
    WqeOpcode::RdmaWrite,
    WqeOpcode::RdmaWriteWithImm,
    WqeOpcode::RdmaRead,
    WqeOpcode::AtomicFetchAndAdd,
    WqeOpcode::AtomicCmpAndSwp,
];

/// Everything a region may allow.
pub fn all_access() -> Access {
    Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ
}

/// Runs a test on two NICs at 64 and 512 bits, with the seed of the run.
///
/// # Panics
/// When the NICs cannot be made or brought up.
pub fn each_width(test: impl Fn(Pair, u64)) {
    let seed = crate::seed(1);
    for width in [64, 512] {
        println!("width {width}");
        match Pair::new(PairParams::new(width, seed)) {
            Ok(pair) => test(pair, seed),
            Err(e) => panic!("two NICs of {width} bits: {e}"),
        }
    }
}

/// Two NICs on one wire.
pub struct Pair {
    /// The simulated world.
    pub world: SharedWorld,
    /// The two ends.
    pub ends: [End; 2],
}

impl Pair {
    /// Builds the world and brings both devices up.
    ///
    /// # Errors
    /// As model, world and driver say.
    pub fn new(params: PairParams) -> Result<Self, Fail> {
        let mut nic = NicSpec::new(params.data_width);
        // The default build is the one that the scenarios use.
        if params.log_qp != 10 {
            nic.params.push(("QpIdxW".to_owned(), params.log_qp.to_string()));
        }
        nic.defines.clone_from(&params.defines);
        let world = World::new(&WorldParams {
            seed: params.seed,
            nics: 2,
            nic,
            host: params.host.clone(),
            wire: params.wire.clone(),
            capture: params.capture.clone(),
            ..WorldParams::default()
        })?
        .shared();
        Self::opened(world, params.open)
    }

    /// Brings both devices of a world up.
    ///
    /// # Errors
    /// As world and driver say.
    pub fn in_world(world: SharedWorld) -> Result<Self, Fail> {
        Self::opened(world, OpenParams::default())
    }

    /// As [`in_world`](Self::in_world), with the driver's settings.
    ///
    /// # Errors
    /// As world and driver say.
    pub fn opened(world: SharedWorld, params: OpenParams) -> Result<Self, Fail> {
        let end =
            |n: usize| -> Result<End, Fail> { End::set_up(Device::open(NicBus::new(&world, n)?, params.clone())?, n) };
        let ends = [end(0)?, end(1)?];
        Ok(Self { world, ends })
    }

    /// Gives both ends an IPv6 address as GID 0 instead; queue pairs that are connected from now on use it.
    ///
    /// # Errors
    /// As the driver says.
    pub fn over_ipv6(&mut self) -> Result<(), Fail> {
        for (n, end) in self.ends.iter_mut().enumerate() {
            let ip = std::net::Ipv6Addr::new(0xfd77, 0, 0x1234, 0, 0xabcd, 0, 0, n as u16 + 1);
            end.gid = Gid(ip.octets());
            end.device.set_gid(0, end.gid)?;
        }
        Ok(())
    }

    /// Lets simulated time pass.
    ///
    /// # Errors
    /// As the world says.
    pub fn run(&self, cycles: u64) -> Result<(), Fail> {
        Ok(self.world.borrow_mut().run(cycles)?)
    }

    /// Connects one QP of each end, both in INIT: INIT→RTR→RTS. `psn[n]` is the first PSN that end n sends.
    ///
    /// # Errors
    /// As the driver says.
    pub fn connect(&self, qps: [&QueuePair<NicBus>; 2], mtu: Mtu, psn: [u32; 2]) -> Result<(), Fail> {
        for n in 0..2 {
            let (rtr, rts) = self.connect_attrs(n, qps[1 - n], mtu, psn);
            qps[n].modify(&rtr, attr::RTR_MASK)?;
            qps[n].modify(&rts, attr::RTS_MASK)?;
        }
        Ok(())
    }

    /// The attributes with which end `n` connects to `peer`.
    pub fn connect_attrs(&self, n: usize, peer: &QueuePair<NicBus>, mtu: Mtu, psn: [u32; 2]) -> (QpAttr, QpAttr) {
        let other = &self.ends[1 - n];
        let rtr = QpAttr {
            qp_state: QpState::Rtr,
            av: AddressVector {
                dgid: other.gid,
                dmac: Some(other.mac),
                ..AddressVector::default()
            },
            path_mtu: mtu,
            dest_qpn: peer.qpn(),
            rq_psn: Psn::new(psn[1 - n]),
            max_dest_rd_atomic: 16,
            ..QpAttr::default()
        };
        let rts = QpAttr {
            qp_state: QpState::Rts,
            sq_psn: Psn::new(psn[n]),
            // 262 us: long beside the wire and the host, short beside a test's patience.
            timeout: 6,
            max_rd_atomic: 16,
            ..QpAttr::default()
        };
        (rtr, rts)
    }

    /// A batch of RC QPs in INIT on each end, with one command each.
    ///
    /// # Errors
    /// As the driver says.
    pub fn install(&self, count: u32) -> Result<[QpBatch<NicBus>; 2], Fail> {
        self.install_with(count, |_| ())
    }

    /// As [`install`](Self::install), with creation parameters of their own.
    ///
    /// # Errors
    /// As the driver says.
    pub fn install_with(&self, count: u32, change: impl Fn(&mut QpInit)) -> Result<[QpBatch<NicBus>; 2], Fail> {
        let one = |end: &End| -> Result<QpBatch<NicBus>, Fail> {
            let attr = QpAttr {
                qp_state: QpState::Init,
                ..QpAttr::default()
            };
            let mut init = end.qp_init();
            change(&mut init);
            Ok(end
                .pd
                .install_qps(count, &init, &BatchInit::range(), &attr, attr::INIT_MASK)?)
        };
        Ok([one(&self.ends[0])?, one(&self.ends[1])?])
    }

    /// One connected pair of RC QPs.
    ///
    /// # Errors
    /// As the driver says.
    pub fn connected(&self, mtu: Mtu, psn: [u32; 2]) -> Result<[QueuePair<NicBus>; 2], Fail> {
        self.connected_with(mtu, psn, |_| ())
    }

    /// As [`connected`](Self::connected), with creation parameters of their own.
    ///
    /// # Errors
    /// As the driver says.
    pub fn connected_with(
        &self,
        mtu: Mtu,
        psn: [u32; 2],
        change: impl Fn(&mut QpInit),
    ) -> Result<[QueuePair<NicBus>; 2], Fail> {
        let [a, b] = self.install_with(1, change)?;
        let (Some(a), Some(b)) = (a.qps().pop(), b.qps().pop()) else {
            return Err("a batch of one QP came without it".into());
        };
        self.connect([&a, &b], mtu, psn)?;
        Ok([a, b])
    }
}
