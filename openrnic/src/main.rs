// SPDX-License-Identifier: Apache-2.0
//! Command line of OpenRNIC.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use openrnic::{Failure, RunOptions, Scenario, replay, report};
use openrnic_sim::model::DATA_WIDTHS;

/// Runs scenarios on simulated RNICs and shows what they are.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    /// Where the device is: `sim`, or `serial:PATH[@BAUD]` for a board behind a serial line (devinfo alone).
    #[arg(long, global = true, default_value = "sim", value_parser = bus)]
    bus: BusName,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario. Exit code 1: it did not go as expected; 2: the file is wrong.
    Run {
        /// The scenario (TOML).
        scenario: PathBuf,
        /// Write a capture for Wireshark.
        #[arg(long, value_name = "FILE")]
        pcap: Option<PathBuf>,
        /// Write a trace (FST) for GTKWave or Surfer; slow.
        #[arg(long, value_name = "FILE")]
        wave: Option<PathBuf>,
        /// Seed of all randomness; the file's own otherwise.
        #[arg(long, env = "OPENRNIC_SEED")]
        seed: Option<u64>,
        /// Width of the data path in bits.
        #[arg(long, value_parser = width)]
        data_width: Option<usize>,
        /// When a wait runs out of its budget, tell of each queue pair what it waits for.
        #[arg(long)]
        on_stall: bool,
        /// Tell each step.
        #[arg(short, long)]
        verbose: bool,
    },
    /// Check scenario files; run nothing.
    Check {
        /// The scenarios.
        #[arg(required = true)]
        scenarios: Vec<PathBuf>,
    },
    /// Play recorded conversations (pcap, pcapng) with the RTL as one of their ends, and compare every field of every
    /// frame. Exit code 1: something differs that the list of reasons does not hold; 2: a file cannot be read.
    Replay {
        /// The captures.
        #[arg(required = true)]
        captures: Vec<PathBuf>,
        /// Give the RTL's queue pair the recorded number.
        #[arg(long)]
        verbatim: bool,
        /// Tell every frame, not only those that differ.
        #[arg(short, long)]
        verbose: bool,
        /// A list of allowed differences to use instead of the project's own (TOML).
        #[arg(long, value_name = "FILE")]
        list: Option<PathBuf>,
        /// These are all captures that the list is about: an entry that none of them needs is an error.
        #[arg(long)]
        complete: bool,
        /// Write the page of the book.
        #[arg(long, value_name = "FILE")]
        book: Option<PathBuf>,
        /// Write a capture of what the RTL does (of the last conversation).
        #[arg(long, value_name = "FILE")]
        pcap: Option<PathBuf>,
        /// Write a trace (FST) of the last conversation; slow.
        #[arg(long, value_name = "FILE")]
        wave: Option<PathBuf>,
        /// Width of the data path in bits.
        #[arg(long, default_value = "64", value_parser = width)]
        data_width: usize,
        /// Seed of the simulation.
        #[arg(long, env = "OPENRNIC_SEED", default_value_t = 1)]
        seed: u64,
    },
    /// Bring up a device and show what it is.
    Devinfo {
        /// Width of the data path of a simulated device, in bits.
        #[arg(long, default_value = "64", value_parser = width)]
        data_width: usize,
        /// Also show all registers.
        #[arg(short, long)]
        verbose: bool,
    },
}

/// Bits a second of a serial line that names no rate.
const BAUD: u32 = 1_000_000;

/// Where a device is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum BusName {
    Sim,
    Serial { path: String, baud: u32 },
}

fn bus(text: &str) -> Result<BusName, String> {
    if text == "sim" {
        return Ok(BusName::Sim);
    }
    let Some(port) = text.strip_prefix("serial:").filter(|p| !p.is_empty()) else {
        return Err("`sim` and `serial:PATH[@BAUD]` (serial:/dev/ttyUSB0) are possible".to_owned());
    };
    let (path, baud) = match port.rsplit_once('@') {
        Some((path, baud)) => (
            path,
            baud.parse()
                .map_err(|_| format!("{baud} is no number of bits a second"))?,
        ),
        None => (port, BAUD),
    };
    Ok(BusName::Serial {
        path: path.to_owned(),
        baud,
    })
}

fn width(text: &str) -> Result<usize, String> {
    DATA_WIDTHS
        .into_iter()
        .find(|w| w.to_string() == text)
        .ok_or_else(|| format!("{} are possible", DATA_WIDTHS.map(|w| w.to_string()).join(", ")))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.bus != BusName::Sim && !matches!(arguments.command, Command::Devinfo { .. }) {
        eprintln!("error: scenarios and captures run on simulated devices: only devinfo takes --bus serial");
        return ExitCode::from(2);
    }
    match arguments.command {
        Command::Run {
            scenario,
            pcap,
            wave,
            seed,
            data_width,
            on_stall,
            verbose,
        } => run(
            &scenario,
            RunOptions {
                seed,
                data_width,
                pcap,
                wave,
                on_stall,
            },
            verbose,
        ),
        Command::Check { scenarios } => check(&scenarios),
        Command::Replay {
            captures,
            verbatim,
            verbose,
            list,
            complete,
            book,
            pcap,
            wave,
            data_width,
            seed,
        } => {
            let options = replay::Options {
                bed: replay::BedParams {
                    data_width,
                    seed,
                    pcap,
                    wave,
                    defines: Vec::new(),
                },
                verbatim,
            };
            match replayed(&captures, &options, list.as_deref(), complete, book.as_deref(), verbose) {
                Ok(true) => ExitCode::SUCCESS,
                Ok(false) => ExitCode::from(1),
                Err(e) => {
                    eprintln!("error: {e:#}");
                    ExitCode::from(2)
                }
            }
        }
        Command::Devinfo { data_width, verbose } => match devinfo(&arguments.bus, data_width, verbose) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("error: {e:#}");
                ExitCode::from(1)
            }
        },
    }
}

/// Whether all captures agree with the RTL but for what the list allows.
fn replayed(
    captures: &[PathBuf],
    options: &replay::Options,
    list: Option<&Path>,
    complete: bool,
    book: Option<&Path>,
    verbose: bool,
) -> anyhow::Result<bool> {
    let mut list = match list {
        Some(file) => {
            let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
            replay::List::parse(&text).with_context(|| file.display().to_string())?
        }
        None => replay::List::standard()?,
    };
    let mut all = Vec::new();
    for capture in captures {
        let r = replay::file(capture, options, &mut list)?;
        for t in &r.transcripts {
            if verbose || t.differences.iter().any(|d| d.reason.is_none()) {
                println!("{}", replay::report::transcript(t, verbose));
            }
        }
        println!("{}", replay::report::verdict(&r));
        all.push(r);
    }
    let names: Vec<String> = all.iter().map(|r| r.name.clone()).collect();
    let unused = list.unused(&names, complete);
    for entry in &unused {
        println!("not needed: {} of {}: {}", entry.field, entry.capture, entry.reason);
    }
    if let Some(file) = book {
        std::fs::write(file, replay::report::page(&all, &list)).with_context(|| file.display().to_string())?;
    }
    let open: usize = all.iter().map(|r| r.unexplained().count()).sum();
    println!("{} captures, {open} differences without a reason", all.len());
    Ok(all.iter().all(replay::Replayed::agrees) && unused.is_empty())
}

fn check(files: &[PathBuf]) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for file in files {
        match openrnic::load(file) {
            Ok(s) => println!("{}: {} NICs, {} steps", file.display(), s.doc.nic.len(), s.steps.len()),
            Err(e) => {
                eprintln!("error: {e}");
                code = ExitCode::from(2);
            }
        }
    }
    code
}

fn run(file: &Path, options: RunOptions, verbose: bool) -> ExitCode {
    let scenario = match openrnic::load(file) {
        Ok(scenario) => scenario,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::from(2);
        }
    };
    let bar = progress(&scenario, verbose);
    let outcome = openrnic::run(&scenario, &options, |i, step, time_ns| {
        bar.set_position(i as u64);
        bar.set_message(format!("line {}: {} ({})", step.line, step.name, report::time(time_ns)));
        if verbose {
            println!("{:>12}  line {:>4}  {}", report::time(time_ns), step.line, step.name);
        }
    });
    bar.finish_and_clear();
    let written = |options: &RunOptions| {
        let mut out = String::new();
        for (what, path) in [("capture", &options.pcap), ("trace", &options.wave)] {
            if let Some(path) = path {
                out += &format!("{what}: {}\n", path.display());
            }
        }
        out
    };
    match outcome {
        Ok(summary) => {
            if !scenario.doc.description.is_empty() {
                println!("{}", scenario.doc.description.trim());
            }
            print!("{}{}", report::summary(&scenario.doc.name, &summary), written(&options));
            println!("{}: passed", file.display());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            explain(file, &options, &failure);
            eprint!("{}", written(&options));
            ExitCode::from(1)
        }
    }
}

/// A bar on a terminal, nothing elsewhere.
fn progress(scenario: &Scenario, verbose: bool) -> ProgressBar {
    if verbose {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(scenario.steps.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}") {
        bar.set_style(style);
    }
    bar
}

fn explain(file: &Path, options: &RunOptions, failure: &Failure) {
    let place = failure.line.map_or_else(
        || file.display().to_string(),
        |line| format!("{}:{line}", file.display()),
    );
    eprintln!("FAILED {place}: {}: {:#}", failure.step, failure.error);
    eprintln!("at {} of simulated time", report::time(failure.time_ns));
    if let Some(stall) = &failure.stall {
        eprint!("{stall}");
    }
    let mut replay = format!(
        "openrnic run {} --seed {} --data-width {}",
        file.display(),
        failure.seed,
        failure.data_width
    );
    for (flag, path) in [("--pcap", &options.pcap), ("--wave", &options.wave)] {
        if let Some(path) = path {
            replay += &format!(" {flag} {}", path.display());
        }
    }
    if options.on_stall {
        replay += " --on-stall";
    }
    eprintln!("replay: {replay}");
    if options.wave.is_none() {
        eprintln!("add --wave FILE to see every signal");
    }
    if !options.on_stall {
        eprintln!("add --on-stall to see what each queue pair waits for when a wait runs out");
    }
}

fn devinfo(bus: &BusName, data_width: usize, verbose: bool) -> anyhow::Result<()> {
    let device = match bus {
        BusName::Sim => {
            let text = "name = \"devinfo\"\n[[nic]]\nname = \"a\"\n".to_owned();
            let scenario = Scenario::parse(Path::new("devinfo"), text)?;
            let options = openrnic::world::SimOptions {
                seed: 1,
                data_width,
                pcap: None,
                wave: None,
            };
            let sim = openrnic::world::Sim::new(&scenario.doc, &options)?;
            openrnic_driver::Device::open(sim.bus(0)?, openrnic_driver::OpenParams::default())?
        }
        BusName::Serial { path, baud } => {
            openrnic_driver::Device::open(openrnic_link::open_tty(path, *baud)?, openrnic_link::open_params())?
        }
    };
    let info = device.info()?;
    let pci = info.pci;
    println!(
        "function     {:04x}:{:04x}, BAR0 of {} KiB at {:#x}",
        pci.vendor,
        pci.device,
        pci.bar0_bytes >> 10,
        pci.bar0_addr
    );
    println!(
        "interface    {}.{}.{}",
        info.version >> 16,
        info.version >> 8 & 0xff,
        info.version & 0xff
    );
    println!(
        "link         max payload {}, max read request {}, {} MSI-X vectors",
        pci.max_payload, pci.max_read_request, pci.vectors
    );
    let c = info.caps;
    println!(
        "data path    {} bits, {} ps per clock cycle",
        c.data_width, c.clk_period_ps
    );
    println!(
        "tables       {} QPs, {} CQs, {} MRs, {} PDs, {} EQs",
        1u64 << c.log_qp.min(63),
        c.num_cq,
        c.num_mr,
        c.num_pd,
        c.num_eq
    );
    println!(
        "work         {} SGEs, {} bytes inline, {} READs outstanding, {} DMA tags",
        c.max_sge, c.max_inline, c.max_rd_atomic, c.dma_tags
    );
    println!(
        "ports        {}, {} GIDs, {} P_Keys, {} doorbell pages",
        c.num_ports, c.num_gid, c.num_pkey, c.num_uar
    );
    let types = |bits: u32| {
        let names: Vec<&str> = openrnic_spec::QpType::ALL
            .iter()
            .filter(|t| bits >> u8::from(**t) & 1 != 0)
            .map(|t| t.name())
            .collect();
        names.join(" ")
    };
    println!(
        "QP types     {} (with a data path: {})",
        types(c.qp_types),
        types(c.qp_types_data)
    );
    let ops: Vec<&str> = openrnic_spec::WqeOpcode::ALL
        .iter()
        .filter(|o| c.supports_opcode(**o))
        .map(|o| o.name())
        .collect();
    println!("operations   {}", ops.join(" "));
    let ipv6 = if c.features.contains(openrnic_spec::Feature::IPV6) {
        "IPv4, IPv6"
    } else {
        "IPv4"
    };
    println!("network      {ipv6}");
    if c.local_mem_bytes() > 0 {
        println!("board memory {} KiB", c.local_mem_bytes() / 1024);
    }
    if let Some(mac) = device.mac_status()? {
        println!("MAC          {mac}");
    }
    for block in &info.blocks {
        println!(
            "block        {:#06x} type {} version {} {}",
            block.base, block.block_type, block.version, block.name
        );
    }
    if verbose {
        for (name, value) in device.registers()? {
            println!("{name:<24} {value:#x}");
        }
    }
    Ok(())
}
