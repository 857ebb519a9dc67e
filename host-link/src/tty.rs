// SPDX-License-Identifier: Apache-2.0
//! A serial port of the operating system.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use serialport::{ClearBuffer, DataBits, FlowControl, Parity, SerialPort, StopBits};

use crate::line::{Line, LineError};

/// A tick of such a line: 100 µs.
pub const TICK_PS: u64 = 100_000_000;

/// A serial port (`/dev/ttyUSB0`), 8N1 without flow control of its own.
pub struct Tty {
    port: Box<dyn SerialPort>,
    next: Instant,
    arrived: Vec<Option<u8>>,
}

impl Tty {
    /// Opens a port.
    ///
    /// # Errors
    /// [`LineError`] with what the system says.
    pub fn open(path: &str, baud: u32) -> Result<Self, LineError> {
        let port = serialport::new(path, baud)
            .data_bits(DataBits::Eight)
            .parity(Parity::None)
            .stop_bits(StopBits::One)
            .flow_control(FlowControl::None)
            .timeout(Duration::from_millis(1))
            .open()
            .map_err(|e| LineError::new("opening", format!("{path} at {baud} baud: {e}")))?;
        port.clear(ClearBuffer::All)
            .map_err(|e| LineError::new("clearing", e.to_string()))?;
        Ok(Self {
            port,
            next: Instant::now(),
            arrived: Vec::new(),
        })
    }
}

impl Line for Tty {
    fn tick_ps(&self) -> u64 {
        TICK_PS
    }

    fn tick(&mut self) -> Result<(), LineError> {
        // A late tick is not made up for: nothing here needs exact time.
        let now = Instant::now();
        if let Some(wait) = self.next.checked_duration_since(now) {
            std::thread::sleep(wait);
        }
        self.next = now.max(self.next) + Duration::from_nanos(TICK_PS / 1000);
        let waiting = self
            .port
            .bytes_to_read()
            .map_err(|e| LineError::new("reading", e.to_string()))?;
        if waiting > 0 {
            let mut bytes = vec![0; waiting as usize];
            match self.port.read(&mut bytes) {
                Ok(n) => self.arrived.extend(bytes[..n].iter().copied().map(Some)),
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::TimedOut | ErrorKind::Interrupted | ErrorKind::WouldBlock
                    ) => {}
                Err(e) => return Err(LineError::new("reading", e.to_string())),
            }
        }
        Ok(())
    }

    fn ready(&self) -> bool {
        // A frame or two in the system's buffer keep the line busy; more would only be stale.
        self.port.bytes_to_write().is_ok_and(|n| n < 64)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), LineError> {
        self.port
            .write_all(bytes)
            .map_err(|e| LineError::new("writing", e.to_string()))
    }

    fn receive(&mut self) -> Vec<Option<u8>> {
        std::mem::take(&mut self.arrived)
    }
}
