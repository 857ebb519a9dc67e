// SPDX-License-Identifier: Apache-2.0
//! The driver's [`Bus`] on a simulated NIC.

use openrnic_driver::bus::{Bus, BusError, DmaBuf, MsiMessage};
use openrnic_spec::{BAR0_BYTES, NUM_MSIX};

use crate::error::SimError;
use crate::pcie::{MmioError, RootPort};
use crate::world::{SharedWorld, World};

/// Cycles that a config access takes: polling config space lets time pass.
const CONFIG_CYCLES: u64 = 8;
/// BAR writes that may be under way; the next one waits until the device took one.
const POSTED_LIMIT: usize = 64;
/// Cycles until a BAR access counts as unanswered.
const MMIO_BUDGET: u64 = 100_000;

/// One NIC of a world as its driver sees it. Every call that lets time pass clocks the whole world.
#[derive(Clone)]
pub struct NicBus {
    world: SharedWorld,
    nic: usize,
}

impl NicBus {
    /// The bus of NIC number `nic`.
    ///
    /// # Errors
    /// [`SimError::Params`] when there is no such NIC.
    pub fn new(world: &SharedWorld, nic: usize) -> Result<Self, SimError> {
        let nics = world.try_borrow().map_or(usize::MAX, |w| w.nics());
        if nic >= nics {
            return Err(SimError::Params {
                what: format!("NIC {nic}: there are {nics}, counted from 0"),
            });
        }
        Ok(Self {
            world: world.clone(),
            nic,
        })
    }

    /// The world it belongs to.
    pub fn world(&self) -> &SharedWorld {
        &self.world
    }

    /// Number of the NIC in its world.
    pub fn nic(&self) -> usize {
        self.nic
    }

    /// Works on the world and this NIC's host.
    fn with<T>(&self, work: impl FnOnce(&mut World, usize) -> Result<T, BusError>) -> Result<T, BusError> {
        let mut world = self
            .world
            .try_borrow_mut()
            .map_err(|_| BusError::Backend("the world is in use by the caller: end its borrow first".to_owned()))?;
        work(&mut world, self.nic)
    }

    fn check_bar(&self, world: &mut World, off: u64, bytes: usize) -> Result<(), BusError> {
        if !off.is_multiple_of(bytes as u64) {
            return Err(BusError::Misaligned {
                what: "BAR access",
                offset: off,
                align: bytes as u64,
            });
        }
        if !crate::pcie::in_bar(off, bytes) {
            return Err(BusError::OutsideBar {
                offset: off,
                bytes,
                bar_bytes: u64::from(BAR0_BYTES),
            });
        }
        if host(world, self.nic)?.bar_mapped() {
            Ok(())
        } else {
            Err(BusError::NotMapped)
        }
    }

    fn read(&self, off: u64, bytes: usize) -> Result<u64, BusError> {
        self.with(|world, nic| {
            self.check_bar(world, off, bytes)?;
            let now = world.cycle();
            let id = host(world, nic)?.mmio_read(now, off, bytes);
            let data = match world.finish_read(nic, id, MMIO_BUDGET) {
                Ok(Ok(data)) => data,
                Ok(Err(error @ (MmioError::Status(_) | MmioError::Reset | MmioError::Garbled))) => {
                    return Err(BusError::Completion {
                        offset: off,
                        status: error.name(),
                    });
                }
                Err(SimError::Timeout { budget, .. }) => {
                    return Err(BusError::Timeout {
                        what: "a BAR read",
                        offset: off,
                        cycles: budget,
                    });
                }
                Err(error) => return Err(backend(error)),
            };
            let mut value = [0; 8];
            let taken = data.len().min(8);
            value[..taken].copy_from_slice(&data[..taken]);
            Ok(u64::from_le_bytes(value))
        })
    }

    fn write(&self, off: u64, data: &[u8]) -> Result<(), BusError> {
        self.with(|world, nic| {
            self.check_bar(world, off, data.len())?;
            for waited in 0.. {
                if host(world, nic)?.mmio_queued() < POSTED_LIMIT {
                    break;
                }
                if waited == MMIO_BUDGET {
                    return Err(BusError::Timeout {
                        what: "room for a BAR write",
                        offset: off,
                        cycles: waited,
                    });
                }
                world.step().map_err(backend)?;
            }
            let now = world.cycle();
            host(world, nic)?.mmio_write(now, off, data);
            Ok(())
        })
    }
}

fn backend(error: SimError) -> BusError {
    BusError::Backend(error.to_string())
}

fn host(world: &mut World, nic: usize) -> Result<&mut RootPort, BusError> {
    world.host(nic).map_err(backend)
}

fn check_config(off: u16) -> Result<(), BusError> {
    if !off.is_multiple_of(4) {
        return Err(BusError::Misaligned {
            what: "config access",
            offset: u64::from(off),
            align: 4,
        });
    }
    if off >= 4096 {
        return Err(BusError::Invalid {
            what: format!("config offset {off:#x}: config space has 4096 bytes"),
        });
    }
    Ok(())
}

impl Bus for NicBus {
    fn config_read(&mut self, off: u16) -> Result<u32, BusError> {
        check_config(off)?;
        self.with(|world, nic| {
            world.run(CONFIG_CYCLES).map_err(backend)?;
            Ok(host(world, nic)?.config_read(off))
        })
    }

    fn config_write(&mut self, off: u16, value: u32) -> Result<(), BusError> {
        check_config(off)?;
        self.with(|world, nic| {
            world.run(CONFIG_CYCLES).map_err(backend)?;
            world.config_write(nic, off, value).map_err(backend)
        })
    }

    fn mmio_read32(&mut self, off: u64) -> Result<u32, BusError> {
        self.read(off, 4).map(|value| value as u32)
    }

    fn mmio_read64(&mut self, off: u64) -> Result<u64, BusError> {
        self.read(off, 8)
    }

    fn mmio_write32(&mut self, off: u64, value: u32) -> Result<(), BusError> {
        self.write(off, &value.to_le_bytes())
    }

    fn mmio_write64(&mut self, off: u64, value: u64) -> Result<(), BusError> {
        self.write(off, &value.to_le_bytes())
    }

    fn dma_alloc(&mut self, bytes: usize, align: usize) -> Result<DmaBuf, BusError> {
        if bytes == 0 || !align.is_power_of_two() {
            let what = format!(
                "a DMA buffer of {bytes} bytes aligned to {align}: it takes at least a byte and a power of two"
            );
            return Err(BusError::Invalid { what });
        }
        self.with(|world, nic| {
            let memory = &mut host(world, nic)?.memory;
            match memory.alloc(bytes, align) {
                Some(addr) => Ok(DmaBuf { addr, len: bytes }),
                None => Err(BusError::OutOfMemory {
                    bytes,
                    free: memory.free_bytes(),
                    total: memory.size(),
                }),
            }
        })
    }

    fn dma_free(&mut self, buf: DmaBuf) -> Result<(), BusError> {
        self.with(|world, nic| {
            let memory = &mut host(world, nic)?.memory;
            let freed = memory.is_mapped(buf.addr, buf.len as u64) && memory.free(buf.addr);
            if freed {
                Ok(())
            } else {
                Err(BusError::NotAllocated {
                    addr: buf.addr,
                    bytes: buf.len,
                })
            }
        })
    }

    fn dma_read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), BusError> {
        self.with(|world, nic| match host(world, nic)?.memory.get(addr, out.len()) {
            Some(bytes) => {
                out.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(BusError::NotAllocated { addr, bytes: out.len() }),
        })
    }

    fn dma_write(&mut self, addr: u64, data: &[u8]) -> Result<(), BusError> {
        self.with(|world, nic| match host(world, nic)?.memory.get_mut(addr, data.len()) {
            Some(bytes) => {
                bytes.copy_from_slice(data);
                Ok(())
            }
            None => Err(BusError::NotAllocated {
                addr,
                bytes: data.len(),
            }),
        })
    }

    fn msix_message(&mut self, vector: u16) -> Result<Option<MsiMessage>, BusError> {
        if u32::from(vector) >= NUM_MSIX {
            return Err(BusError::Invalid {
                what: format!("MSI-X vector {vector}: there are {NUM_MSIX}, counted from 0"),
            });
        }
        let (addr, data) = RootPort::msix_message(vector);
        Ok(Some(MsiMessage { addr, data }))
    }

    fn take_interrupts(&mut self) -> Vec<u16> {
        let taken = self.with(|world, nic| {
            let host = host(world, nic)?;
            Ok(std::iter::from_fn(|| host.take_interrupt()).collect())
        });
        taken.unwrap_or_default()
    }

    fn advance(&mut self, cycles: u64) -> Result<(), BusError> {
        self.with(|world, _| world.run(cycles).map_err(backend))
    }

    fn now_cycles(&self) -> u64 {
        self.world.try_borrow().map_or(0, |world| world.cycle())
    }

    fn clk_period_ps(&self) -> u64 {
        self.world.try_borrow().map_or(1, |world| world.clk_period_ps())
    }
}
