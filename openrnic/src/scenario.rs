// SPDX-License-Identifier: Apache-2.0
//! Scenario files: what may stand in them. Meaning is checked in [`crate::check`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use openrnic_spec as spec;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::host_fault::HostFault;
use crate::raw::Command;
use crate::shared::{DestroySrq, ExpectSrq, PostSrq, SrqDef, SrqLimit};
use crate::value::{Amount, Attrs, GidText, Hex, Mac, MtuBytes, Named, QpRef, Rights, nearest};

/// A mistake in a scenario file: one message with file, line and column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadScenario {
    /// The file.
    pub file: PathBuf,
    /// Line and column, from 1; `None` when the file could not be read.
    pub at: Option<(usize, usize)>,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl std::fmt::Display for BadScenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some((line, column)) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for BadScenario {}

/// A scenario that was read.
#[derive(Debug)]
pub struct Scenario {
    /// Its file.
    pub file: PathBuf,
    /// The file's text.
    pub text: String,
    /// All but the steps.
    pub doc: Doc,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// A step with its place in the file.
#[derive(Debug)]
pub struct Step {
    /// Bytes of the file.
    pub span: Range<usize>,
    /// Line, from 1.
    pub line: usize,
    /// What it does, by name.
    pub name: String,
    /// What it does.
    pub what: What,
}

/// The file but its steps.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Doc {
    /// Short name.
    pub name: String,
    /// What it shows.
    #[serde(default)]
    pub description: String,
    /// Simulation.
    #[serde(default)]
    pub sim: SimDef,
    /// The wire.
    #[serde(default)]
    pub wire: WireDef,
    /// NICs.
    pub nic: Vec<Spanned<NicDef>>,
    /// Protection domains.
    #[serde(default)]
    pub pd: Vec<Spanned<PdDef>>,
    /// Memory regions.
    #[serde(default)]
    pub mr: Vec<Spanned<MrDef>>,
    /// Completion queues.
    #[serde(default)]
    pub cq: Vec<Spanned<CqDef>>,
    /// Shared receive queues.
    #[serde(default)]
    pub srq: Vec<Spanned<SrqDef>>,
    /// Groups of queue pairs.
    #[serde(default)]
    pub qp: Vec<Spanned<QpDef>>,
}

macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[$field:meta])* $f:ident: $t:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$field])* pub $f: $t,)* }
    };
}
pub(crate) use table;

macro_rules! options {
    ($(#[$doc:meta])* $name:ident { $($(#[$field:meta])* $f:ident: $t:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$field])* pub $f: Option<$t>,)* }
    };
}

options! {
    /// `[sim]`
    SimDef {
        /// Seed of all randomness.
        seed: u64,
        /// Width of the data path in bits.
        data_width: Spanned<usize>,
        /// Longest wait of a step in clock cycles.
        wait_cycles: u64,
        /// `"senders"`: the capture holds every frame once; `"both_ends"`: also where it arrives.
        capture: Spanned<String>,
    }
}

options! {
    /// `[wire]`
    WireDef {
        /// From last byte sent to first byte received.
        latency_ns: u64,
        /// Line rate; without it, all byte lanes in every cycle.
        rate_gbps: Spanned<f64>,
        /// Chance that a frame is lost.
        loss: Spanned<f64>,
        /// Chance that it arrives twice.
        duplicate: Spanned<f64>,
        /// Chance that it is held back.
        reorder: Spanned<f64>,
        /// Longest time that it is held back.
        reorder_ns: u64,
        /// Chance of a flipped bit that the MAC does not see.
        corrupt: Spanned<f64>,
        /// Chance of a flipped bit that the MAC sees.
        mac_error: Spanned<f64>,
        /// Chance of a congestion mark.
        congestion: Spanned<f64>,
    }
}

options! {
    /// `[nic.host]`: the machine around a NIC.
    HostDef {
        /// An ideal host answers in the next cycle; the other keys change that.
        ideal: bool,
        /// Memory for DMA buffers.
        memory_mib: Spanned<usize>,
        /// Least latency of a DMA read.
        read_latency_ns: u64,
        /// Random time on top.
        read_jitter_ns: u64,
        /// Time until a DMA write is seen.
        write_latency_ns: u64,
        /// Random time on top.
        write_jitter_ns: u64,
        /// Time until the device sees a register access.
        mmio_latency_ns: u64,
        /// Random time on top.
        mmio_jitter_ns: u64,
        /// `"never"`, `"always"`, `"random"`: how completions are cut.
        split: Spanned<String>,
        /// Answers to different reads overtake each other.
        reorder: bool,
        /// Share of cycles in which the host takes nothing.
        stall: Spanned<f64>,
        /// Max payload size of the link in bytes.
        max_payload: Spanned<u32>,
        /// Max read request size in bytes.
        max_read_request: Spanned<u32>,
    }
}

table! {
    /// `[[nic]]`
    NicDef {
        /// Its name.
        name: Spanned<String>,
        /// MAC address; by default 02:00:00:00:00:01 and so on.
        #[serde(default)]
        mac: Option<Mac>,
        /// GIDs from index 0 on; by default 10.0.0.1 and so on.
        #[serde(default)]
        gids: Option<Vec<GidText>>,
        /// P_Keys from index 0 on; by default 0xffff.
        #[serde(default)]
        pkeys: Option<Vec<u16>>,
        /// Largest path MTU of the port.
        #[serde(default)]
        mtu: Option<MtuBytes>,
        /// Its host.
        #[serde(default)]
        host: Option<HostDef>,
        /// Entries of the command ring.
        #[serde(default)]
        command_ring: Option<Spanned<u32>>,
        /// Completion time-out of DMA reads in clock cycles.
        #[serde(default)]
        dma_timeout_cycles: Option<u32>,
    }
}

table! {
    /// `[[pd]]`
    PdDef {
        /// Its name.
        name: Spanned<String>,
        /// NIC.
        nic: Spanned<String>,
    }
}

table! {
    /// `[[mr]]`
    MrDef {
        /// Its name.
        name: Spanned<String>,
        /// NIC.
        nic: Spanned<String>,
        /// Protection domain; by default the NIC's own.
        #[serde(default)]
        pd: Option<Spanned<String>>,
        /// Length.
        bytes: Spanned<usize>,
        /// Rights; by default all but atomics.
        #[serde(default)]
        access: Option<Rights>,
        /// What it holds at first.
        #[serde(default)]
        fill: Option<Spanned<Fill>>,
        /// Address of the first byte; by default its bus address.
        #[serde(default)]
        iova: Option<u64>,
        /// A key for fast registration: peers and work requests may invalidate it.
        #[serde(default)]
        fast_reg: bool,
    }
}

/// Content of memory.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Fill {
    /// One value in every byte.
    Byte(u8),
    /// `"zero"`, `"random"` (by the seed), `"count"` (byte n holds n modulo 251).
    Kind(String),
}

table! {
    /// `[[cq]]`
    CqDef {
        /// Its name.
        name: Spanned<String>,
        /// NIC.
        nic: Spanned<String>,
        /// Entries.
        entries: Spanned<u32>,
        /// Completion vector.
        #[serde(default)]
        vector: Option<u8>,
    }
}

table! {
    /// `[[qp]]`: a group of queue pairs, made by a step `create` or `install`.
    QpDef {
        /// Its name.
        name: Spanned<String>,
        /// NIC.
        nic: Spanned<String>,
        /// Type; by default RC.
        #[serde(default, rename = "type")]
        qp_type: Option<Named<spec::QpType>>,
        /// How many; by default 1.
        #[serde(default)]
        count: Option<Spanned<u32>>,
        /// `"prefer"`, `"require"` or `"no"`: one range of numbers. By default preferred.
        #[serde(default)]
        contiguous: Option<Spanned<String>>,
        /// First number of the range is a multiple of 2^n.
        #[serde(default)]
        align_log2: Option<Spanned<u8>>,
        /// Number wanted (a group of one).
        #[serde(default)]
        qpn: Option<Spanned<u32>>,
        /// Protection domain; by default the NIC's own.
        #[serde(default)]
        pd: Option<Spanned<String>>,
        /// Completion queue of sends and receives; by default the NIC's own.
        #[serde(default)]
        cq: Option<Spanned<String>>,
        /// Completion queue of receives, if another.
        #[serde(default)]
        recv_cq: Option<Spanned<String>>,
        /// Shared receive queue instead of a receive queue.
        #[serde(default)]
        srq: Option<Spanned<String>>,
        /// Sends outstanding.
        #[serde(default)]
        max_send_wr: Option<u32>,
        /// Receives outstanding.
        #[serde(default)]
        max_recv_wr: Option<u32>,
        /// SGEs of a send.
        #[serde(default)]
        max_send_sge: Option<u32>,
        /// SGEs of a receive.
        #[serde(default)]
        max_recv_sge: Option<u32>,
        /// Inline bytes.
        #[serde(default)]
        max_inline: Option<u32>,
        /// Every send completes with a completion.
        #[serde(default)]
        sig_all: Option<bool>,
        /// Doorbell page.
        #[serde(default)]
        page: Option<u8>,
    }
}

options! {
    /// Attributes of a queue pair. What stands here is in the mask.
    AttrDef {
        /// CUR_STATE.
        cur_state: Named<spec::QpState>,
        /// EN_SQD_ASYNC_NOTIFY.
        en_sqd_async_notify: bool,
        /// ACCESS_FLAGS.
        access: Rights,
        /// PKEY_INDEX.
        pkey_index: u16,
        /// PORT.
        port: u8,
        /// QKEY.
        qkey: u32,
        /// AV.
        av: AvDef,
        /// PATH_MTU in bytes.
        path_mtu: MtuBytes,
        /// PATH_MTU as the code that the device reads, wrong ones included.
        path_mtu_code: u8,
        /// TIMEOUT.
        timeout: u8,
        /// RETRY_CNT.
        retry_cnt: u8,
        /// RNR_RETRY.
        rnr_retry: u8,
        /// RQ_PSN.
        rq_psn: u32,
        /// MAX_QP_RD_ATOMIC.
        max_rd_atomic: u8,
        /// MIN_RNR_TIMER.
        min_rnr_timer: u8,
        /// SQ_PSN.
        sq_psn: u32,
        /// MAX_DEST_RD_ATOMIC.
        max_dest_rd_atomic: u8,
        /// PATH_MIG_STATE.
        path_mig_state: Spanned<u8>,
        /// DEST_QPN as one queue pair.
        dest: Spanned<QpRef>,
        /// DEST_QPN as a number.
        dest_qpn: u32,
    }
}

options! {
    /// An address vector.
    AvDef {
        /// The peer: its GID 0 and MAC address.
        nic: Spanned<String>,
        /// GID instead.
        gid: GidText,
        /// MAC address instead.
        mac: Mac,
        /// Index of the own GID.
        sgid_index: u8,
        /// TTL.
        hop_limit: u8,
        /// TOS.
        traffic_class: u8,
        /// Flow label.
        flow_label: Spanned<u32>,
        /// VLAN tag.
        vlan: Spanned<u16>,
        /// Port.
        port: u8,
        /// Global route.
        is_global: bool,
    }
}

/// What a step does.
#[derive(Debug)]
pub enum What {
    /// `create`
    Create(Create),
    /// `install`
    Install(Create),
    /// `modify`
    Modify(Modify),
    /// `connect`
    Connect(Connect),
    /// `transfer`
    Transfer(Transfer),
    /// `post_send`
    PostSend(PostSend),
    /// `post_recv`
    PostRecv(PostRecv),
    /// `post_srq`
    PostSrq(PostSrq),
    /// `srq_limit`
    SrqLimit(SrqLimit),
    /// `expect_srq`
    ExpectSrq(ExpectSrq),
    /// `destroy_srq`
    DestroySrq(DestroySrq),
    /// `expect_completions`
    Completions(Completions),
    /// `expect_qp`
    ExpectQp(ExpectQp),
    /// `expect_memory`
    ExpectMemory(ExpectMemory),
    /// `expect_frames`
    ExpectFrames(ExpectFrames),
    /// `expect_counters`
    ExpectCounters(ExpectCounters),
    /// `expect_event`
    ExpectEvent(ExpectEvent),
    /// `inject`
    Inject(Inject),
    /// `disturb`
    Disturb(Disturb),
    /// `host_fault`
    HostFault(HostFault),
    /// `wait`
    Wait(Wait),
    /// `doorbell`
    Doorbell(Doorbell),
    /// `command`
    Command(Command),
    /// `fill`
    Fill(FillStep),
    /// `destroy`
    Destroy(Destroy),
    /// `deregister`
    Deregister(Deregister),
    /// `reset_nic`
    ResetNic(ResetNic),
    /// `mark`
    Mark(Mark),
}

table! {
    /// Step `create` (CREATE_QP) or `install` (INSTALL_QP): a whole group by one command.
    Create {
        /// The group.
        qps: Spanned<String>,
        /// Attributes of `install`; by default those that the transition to INIT needs.
        #[serde(default)]
        attrs: Option<AttrDef>,
        /// Mask of `install` instead of what `attrs` names.
        #[serde(default)]
        mask: Option<Attrs>,
        /// The gate must refuse.
        #[serde(default)]
        refused: Option<Refused>,
        /// The command must fail with this status.
        #[serde(default)]
        fails: Option<Named<spec::CmdStatus>>,
    }
}

options! {
    /// A refusal by the gate.
    Refused {
        /// The rule.
        rule: Named<spec::GateRule>,
        /// The attributes that it names.
        attrs: Attrs,
        /// The first queue pair refused.
        offender: Spanned<QpRef>,
    }
}

table! {
    /// Step `modify`: one MODIFY_QP for all queue pairs named.
    Modify {
        /// Which: one reference or a list.
        qps: Spanned<Refs>,
        /// Next state (STATE).
        #[serde(default)]
        to: Option<Named<spec::QpState>>,
        /// Attributes; without `attrs` and `mask`, those that the transition needs, with usual values.
        #[serde(default)]
        attrs: Option<AttrDef>,
        /// Records, one per queue pair, instead of `attrs`.
        #[serde(default)]
        each: Option<Spanned<Vec<AttrDef>>>,
        /// Mask instead of what `to` and `attrs` name, wrong ones included.
        #[serde(default)]
        mask: Option<Attrs>,
        /// One command per queue pair.
        #[serde(default)]
        one_by_one: bool,
        /// The gate must refuse, and nothing may change.
        #[serde(default)]
        refused: Option<Refused>,
        /// The command must fail with this status, and nothing may change.
        #[serde(default)]
        fails: Option<Named<spec::CmdStatus>>,
    }
}

/// One reference or a list of them.
#[derive(Debug, Clone)]
pub struct Refs(pub Vec<QpRef>);

impl<'de> Deserialize<'de> for Refs {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> serde::de::Visitor<'de> for V {
            type Value = Refs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("queue pairs like \"a[0]\", or a list of them")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Refs, E> {
                let one = serde::de::value::StrDeserializer::<E>::new(text);
                QpRef::deserialize(one).map(|r| Refs(vec![r]))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Refs, A::Error> {
                let mut out = Vec::new();
                while let Some(one) = list.next_element()? {
                    out.push(one);
                }
                Ok(Refs(out))
            }
        }
        d.deserialize_any(V)
    }
}

table! {
    /// Step `connect`: INIT to RTR to RTS, each queue pair with its peer.
    Connect {
        /// One side.
        a: Spanned<QpRef>,
        /// The other side, as many.
        b: Spanned<QpRef>,
        /// Path MTU; by default 1024.
        #[serde(default)]
        path_mtu: Option<MtuBytes>,
        /// READs and atomics outstanding; by default 4.
        #[serde(default)]
        rd_atomic: Option<u8>,
        /// First PSN of the first pair's both sides; by default drawn from the seed.
        #[serde(default)]
        psn: Option<Spanned<u32>>,
        /// TIMEOUT; by default 8 (1 ms).
        #[serde(default)]
        timeout: Option<u8>,
        /// RETRY_CNT; by default 7.
        #[serde(default)]
        retry_cnt: Option<u8>,
        /// RNR_RETRY; by default 7.
        #[serde(default)]
        rnr_retry: Option<u8>,
        /// MIN_RNR_TIMER; by default 12.
        #[serde(default)]
        min_rnr_timer: Option<u8>,
        /// One command per queue pair instead of record batches.
        #[serde(default)]
        one_by_one: bool,
    }
}

table! {
    /// Step `transfer`: moves messages between pairs and checks every byte, guard bytes included.
    Transfer {
        /// SEND, SEND_WITH_IMM, RDMA_WRITE, RDMA_WRITE_WITH_IMM or RDMA_READ.
        op: Spanned<Named<spec::WqeOpcode>>,
        /// Queue pairs that post the operation.
        from: Spanned<QpRef>,
        /// Their peers.
        to: Spanned<QpRef>,
        /// Lengths: each pair moves one message of each.
        bytes: Spanned<Vec<usize>>,
        /// SGEs of the sender (READ: of the reader); by default 1.
        #[serde(default)]
        sges: Option<Spanned<usize>>,
        /// SGEs of the receiver (SEND); by default 1.
        #[serde(default)]
        recv_sges: Option<Spanned<usize>>,
        /// Payload in the WQE.
        #[serde(default)]
        inline: bool,
        /// Shift of the buffers against 64-byte alignment.
        #[serde(default)]
        misalign: Option<Spanned<usize>>,
    }
}

table! {
    /// A piece of memory.
    Piece {
        /// Region.
        mr: Spanned<String>,
        /// First byte.
        #[serde(default)]
        offset: u64,
        /// Length.
        bytes: u32,
        /// Key instead of the region's own.
        #[serde(default)]
        lkey: Option<u32>,
    }
}

table! {
    /// Step `post_send`: one work request on every queue pair named.
    PostSend {
        /// Which.
        qps: Spanned<QpRef>,
        /// The operation.
        op: Named<spec::WqeOpcode>,
        /// Local memory.
        #[serde(default)]
        sg: Vec<Piece>,
        /// Payload in the WQE instead.
        #[serde(default)]
        inline: Option<Hex>,
        /// Remote region.
        #[serde(default)]
        remote: Option<Spanned<String>>,
        /// First byte in it; may lie outside.
        #[serde(default)]
        remote_offset: i64,
        /// Remote key instead of the region's own.
        #[serde(default)]
        rkey: Option<u32>,
        /// Immediate.
        #[serde(default)]
        imm: u32,
        /// Region whose key a SEND_WITH_INV invalidates.
        #[serde(default)]
        invalidate: Option<Spanned<String>>,
        /// Atomics: what the memory is compared with.
        #[serde(default)]
        compare: Option<u64>,
        /// Atomics: what is swapped in or added.
        #[serde(default)]
        swap_add: Option<u64>,
        /// Without a completion of its own.
        #[serde(default)]
        unsignaled: bool,
        /// Solicited event.
        #[serde(default)]
        solicited: bool,
        /// Wait for earlier READs and atomics.
        #[serde(default)]
        fence: bool,
        /// How many of them; by default 1.
        #[serde(default)]
        count: Option<Spanned<u32>>,
        /// The post must fail: `"full"`, `"state"`, `"sges"`, `"opcode"`, `"inline"`, `"atomic"` or `"data_path"`.
        #[serde(default)]
        fails: Option<Spanned<String>>,
    }
}

table! {
    /// Step `post_recv`: one receive on every queue pair named.
    PostRecv {
        /// Which.
        qps: Spanned<QpRef>,
        /// Where the message goes.
        #[serde(default)]
        sg: Vec<Piece>,
        /// How many of them; by default 1.
        #[serde(default)]
        count: Option<Spanned<u32>>,
        /// The post must fail: `"full"`, `"state"`, `"sges"`, `"shared"` or `"data_path"`.
        #[serde(default)]
        fails: Option<Spanned<String>>,
    }
}

table! {
    /// Step `expect_completions`: the next completions of a queue, in order, all alike.
    Completions {
        /// Queue; or name the NIC for its own.
        #[serde(default)]
        cq: Option<Spanned<String>>,
        /// NIC.
        #[serde(default)]
        nic: Option<Spanned<String>>,
        /// How many; by default 1. 0: none may come while `wait_cycles` pass.
        #[serde(default)]
        count: Option<usize>,
        /// Of which queue pairs.
        #[serde(default)]
        qps: Option<Spanned<QpRef>>,
        /// How they ended; by default SUCCESS.
        #[serde(default)]
        status: Option<Named<spec::WcStatus>>,
        /// The operation.
        #[serde(default)]
        opcode: Option<Named<spec::WcOpcode>>,
        /// Length.
        #[serde(default)]
        bytes: Option<u32>,
        /// Immediate.
        #[serde(default)]
        imm: Option<u32>,
        /// Region whose key was invalidated.
        #[serde(default)]
        invalidated: Option<Spanned<String>>,
        /// Longest wait.
        #[serde(default)]
        wait_cycles: Option<u64>,
    }
}

table! {
    /// Step `expect_qp`: state and attributes, as the device answers a query.
    ExpectQp {
        /// Which.
        qps: Spanned<QpRef>,
        /// State.
        #[serde(default)]
        state: Option<Named<spec::QpState>>,
        /// Attributes.
        #[serde(default)]
        attrs: Option<AttrDef>,
        /// Wait for the state at most this long.
        #[serde(default)]
        wait_cycles: Option<u64>,
        /// The query must fail with this status.
        #[serde(default)]
        fails: Option<Named<spec::CmdStatus>>,
    }
}

table! {
    /// Step `expect_memory`
    ExpectMemory {
        /// Region.
        mr: Spanned<String>,
        /// First byte.
        #[serde(default)]
        offset: usize,
        /// Length; by default up to the region's end.
        #[serde(default)]
        bytes: Option<usize>,
        /// Same as this region...
        #[serde(default)]
        same_as: Option<Spanned<String>>,
        /// ...from this byte on.
        #[serde(default)]
        same_offset: usize,
        /// Or: one value in every byte.
        #[serde(default)]
        byte: Option<u8>,
        /// Or: these bytes.
        #[serde(default)]
        hex: Option<Hex>,
    }
}

table! {
    /// Step `expect_frames`: frames at a NIC's port since the start or the last `mark`.
    ExpectFrames {
        /// NIC.
        nic: Spanned<String>,
        /// `"sent"` or `"received"`; by default sent.
        #[serde(default)]
        direction: Option<Spanned<String>>,
        /// Packet opcodes and how many.
        opcodes: BTreeMap<Spanned<String>, Amount>,
        /// Wait for the fewest that are meant.
        #[serde(default)]
        wait_cycles: Option<u64>,
    }
}

table! {
    /// Step `expect_counters`: counters of a device since the start or the last `mark`.
    ExpectCounters {
        /// NIC.
        nic: Spanned<String>,
        /// Counters and their values.
        counters: BTreeMap<Spanned<String>, Amount>,
        /// Wait for the smallest values that are meant.
        #[serde(default)]
        wait_cycles: Option<u64>,
    }
}

table! {
    /// Step `expect_event`: the next asynchronous event of a device.
    ExpectEvent {
        /// NIC.
        nic: Spanned<String>,
        /// The event; others before it are skipped.
        event: Named<spec::EventType>,
        /// Queue pair that it names.
        #[serde(default)]
        qp: Option<Spanned<QpRef>>,
        /// Shared receive queue that it names.
        #[serde(default)]
        srq: Option<Spanned<String>>,
        /// Longest wait.
        #[serde(default)]
        wait_cycles: Option<u64>,
    }
}

table! {
    /// Step `inject`: a frame that nobody sent.
    Inject {
        /// NIC that receives it.
        nic: Spanned<String>,
        /// The whole frame without check sequence.
        #[serde(default)]
        hex: Option<Hex>,
        /// Or: a good RC packet for this queue pair, from its peer, with the next expected PSN.
        #[serde(default)]
        to: Option<Spanned<QpRef>>,
        /// Its opcode; by default RC_SEND_ONLY.
        #[serde(default)]
        opcode: Option<Named<spec::Opcode>>,
        /// Its payload in bytes.
        #[serde(default)]
        payload: Option<Spanned<usize>>,
        /// PSN instead.
        #[serde(default)]
        psn: Option<u32>,
        /// P_Key instead.
        #[serde(default)]
        pkey: Option<u16>,
        /// Destination QPN instead.
        #[serde(default)]
        qpn: Option<u32>,
        /// Transport version instead of 0.
        #[serde(default)]
        tver: Option<Spanned<u8>>,
        /// Opcode as a number instead.
        #[serde(default)]
        opcode_byte: Option<u8>,
        /// Destination MAC address instead.
        #[serde(default)]
        dmac: Option<Mac>,
        /// Destination UDP port instead.
        #[serde(default)]
        udp_port: Option<u16>,
        /// Source address instead.
        #[serde(default)]
        sip: Option<GidText>,
        /// Destination address instead.
        #[serde(default)]
        dip: Option<GidText>,
        /// A wrong ICRC.
        #[serde(default)]
        bad_icrc: bool,
        /// A wrong IPv4 header checksum.
        #[serde(default)]
        bad_checksum: bool,
        /// Only the first bytes of the frame.
        #[serde(default)]
        cut: Option<Spanned<usize>>,
        /// The MAC flags it.
        #[serde(default)]
        mac_error: bool,
        /// How often; by default 1.
        #[serde(default)]
        count: Option<Spanned<u32>>,
    }
}

table! {
    /// Step `disturb`: what the wire does to coming frames.
    Disturb {
        /// NIC that sends them.
        from: Spanned<String>,
        /// `"drop"`, `"duplicate"`, `"delay"`, `"flip_bit"`, `"mac_error"`, `"mark_congestion"`.
        action: Spanned<String>,
        /// Only this opcode.
        #[serde(default)]
        opcode: Option<Named<spec::Opcode>>,
        /// Let so many pass first.
        #[serde(default)]
        skip: u64,
        /// How many; by default 1.
        #[serde(default)]
        count: Option<u64>,
        /// Of `delay`.
        #[serde(default)]
        delay_ns: Option<u64>,
        /// Of `flip_bit`.
        #[serde(default)]
        bit: Option<usize>,
    }
}

options! {
    /// Step `wait`
    Wait {
        /// Clock cycles.
        cycles: u64,
        /// Microseconds of simulated time.
        us: u64,
    }
}

table! {
    /// Step `doorbell`: one raw 64-bit write into a doorbell page.
    Doorbell {
        /// NIC.
        nic: Spanned<String>,
        /// Page; by default 0.
        #[serde(default)]
        page: Option<Spanned<u32>>,
        /// `"send"` or `"recv"`.
        #[serde(default)]
        queue: Option<Spanned<String>>,
        /// Offset in the page instead.
        #[serde(default)]
        offset: Option<Spanned<u32>>,
        /// Queue pair.
        #[serde(default)]
        qp: Option<Spanned<QpRef>>,
        /// QPN instead.
        #[serde(default)]
        qpn: Option<u32>,
        /// Producer index.
        #[serde(default)]
        producer: u16,
    }
}

table! {
    /// Step `fill`
    FillStep {
        /// Region.
        mr: Spanned<String>,
        /// First byte.
        #[serde(default)]
        offset: usize,
        /// Length; by default up to the region's end.
        #[serde(default)]
        bytes: Option<usize>,
        /// Content.
        with: Spanned<Fill>,
    }
}

table! {
    /// Step `destroy`: one DESTROY_QP for all queue pairs named.
    Destroy {
        /// Which.
        qps: Spanned<QpRef>,
        /// The command must fail with this status.
        #[serde(default)]
        fails: Option<Named<spec::CmdStatus>>,
    }
}

table! {
    /// Step `deregister`
    Deregister {
        /// Region.
        mr: Spanned<String>,
    }
}

table! {
    /// Step `reset_nic`: function-level reset; its queue pairs are gone, all other objects of the file are made anew.
    ResetNic {
        /// NIC.
        nic: Spanned<String>,
    }
}

/// Step `mark`: counters and frames count from here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {}

/// Line and column, from 1, of a byte.
pub fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte.min(text.len())).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

const STEPS: &[&str] = &[
    "create",
    "install",
    "modify",
    "connect",
    "transfer",
    "post_send",
    "post_recv",
    "post_srq",
    "srq_limit",
    "expect_srq",
    "destroy_srq",
    "expect_completions",
    "expect_qp",
    "expect_memory",
    "expect_frames",
    "expect_counters",
    "expect_event",
    "inject",
    "disturb",
    "host_fault",
    "wait",
    "doorbell",
    "command",
    "fill",
    "destroy",
    "deregister",
    "reset_nic",
    "mark",
];

impl Scenario {
    /// Reads a file; checks keys and types.
    ///
    /// # Errors
    /// The first mistake.
    pub fn load(file: &Path) -> Result<Self, BadScenario> {
        match std::fs::read_to_string(file) {
            Ok(text) => Self::parse(file, text),
            Err(e) => Err(BadScenario {
                file: file.to_owned(),
                at: None,
                what: format!("cannot be read: {e}"),
            }),
        }
    }

    /// As [`Self::load`], from text.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(file: &Path, text: String) -> Result<Self, BadScenario> {
        let bad = |span: Option<Range<usize>>, what: String| BadScenario {
            file: file.to_owned(),
            at: Some(span.map_or((1, 1), |s| place(&text, s.start))),
            what,
        };
        let toml_error = |e: toml::de::Error| bad(e.span(), e.message().trim().replace('\n', " "));
        let mut table = DeTable::parse(&text).map_err(toml_error)?;
        let mut steps = Vec::new();
        if let Some(list) = table.get_mut().remove("step") {
            let span = list.span();
            let DeValue::Array(list) = list.into_inner() else {
                return Err(bad(Some(span), "steps are written as [[step]] tables".into()));
            };
            for value in list {
                let span = value.span();
                let mut inner = match value.into_inner() {
                    DeValue::Table(inner) => inner,
                    _ => return Err(bad(Some(span), "steps are written as [[step]] tables".into())),
                };
                let Some(name) = inner.remove("do") else {
                    return Err(bad(
                        Some(span),
                        format!("a step needs `do`: one of {}", STEPS.join(", ")),
                    ));
                };
                let at = name.span();
                let Some(name) = name.get_ref().as_str().map(str::to_owned) else {
                    return Err(bad(Some(at), "`do` names what the step does: a string".into()));
                };
                let value = Spanned::new(span.clone(), DeValue::Table(inner));
                let what = match step(&name, value) {
                    Some(Ok(what)) => what,
                    Some(Err(e)) => {
                        let at = e.span().unwrap_or(span.clone());
                        return Err(bad(
                            Some(at),
                            format!("step `{name}`: {}", e.message().trim().replace('\n', " ")),
                        ));
                    }
                    None => {
                        let hint = nearest(&name, STEPS.iter().copied()).map_or_else(
                            || format!("there are {}", STEPS.join(", ")),
                            |n| format!("did you mean `{n}`?"),
                        );
                        return Err(bad(Some(at), format!("unknown step `{name}`; {hint}")));
                    }
                };
                let line = place(&text, span.start).0;
                steps.push(Step { span, line, name, what });
            }
        }
        let doc = Doc::deserialize(toml::de::Deserializer::from(table)).map_err(toml_error)?;
        Ok(Self {
            file: file.to_owned(),
            doc,
            steps,
            text: text.clone(),
        })
    }

    /// A mistake at a place of the file.
    pub fn bad(&self, span: &Range<usize>, what: impl Into<String>) -> BadScenario {
        BadScenario {
            file: self.file.clone(),
            at: Some(place(&self.text, span.start)),
            what: what.into(),
        }
    }
}

fn step(name: &str, value: Spanned<DeValue<'_>>) -> Option<Result<What, toml::de::Error>> {
    fn read<'i, T: Deserialize<'i>>(
        value: Spanned<DeValue<'i>>,
        make: fn(T) -> What,
    ) -> Option<Result<What, toml::de::Error>> {
        Some(T::deserialize(toml::de::ValueDeserializer::from(value)).map(make))
    }
    match name {
        "create" => read(value, What::Create),
        "install" => read(value, What::Install),
        "modify" => read(value, What::Modify),
        "connect" => read(value, What::Connect),
        "transfer" => read(value, What::Transfer),
        "post_send" => read(value, What::PostSend),
        "post_recv" => read(value, What::PostRecv),
        "post_srq" => read(value, What::PostSrq),
        "srq_limit" => read(value, What::SrqLimit),
        "expect_srq" => read(value, What::ExpectSrq),
        "destroy_srq" => read(value, What::DestroySrq),
        "expect_completions" => read(value, What::Completions),
        "expect_qp" => read(value, What::ExpectQp),
        "expect_memory" => read(value, What::ExpectMemory),
        "expect_frames" => read(value, What::ExpectFrames),
        "expect_counters" => read(value, What::ExpectCounters),
        "expect_event" => read(value, What::ExpectEvent),
        "inject" => read(value, What::Inject),
        "disturb" => read(value, What::Disturb),
        "host_fault" => read(value, What::HostFault),
        "wait" => read(value, What::Wait),
        "doorbell" => read(value, What::Doorbell),
        "command" => read(value, What::Command),
        "fill" => read(value, What::Fill),
        "destroy" => read(value, What::Destroy),
        "deregister" => read(value, What::Deregister),
        "reset_nic" => read(value, What::ResetNic),
        "mark" => read(value, What::Mark),
        _ => None,
    }
}
