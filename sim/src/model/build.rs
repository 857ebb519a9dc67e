// SPDX-License-Identifier: Apache-2.0
//! Builds and loads models through marlin-verilator, each distinct build once.
//!
//! A build lives in a directory of the cache named by a hash of everything that goes into it:
//! contents of all sources, flags, Verilator's and the compiler's version, the processor (models are
//! compiled for it). A lock file beside it keeps two processes from building the same model; a
//! directory without the mark `complete` is a build that failed or was killed, and is made anew.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use marlin_verilator::error::VerilatorError;
use marlin_verilator::reexports::libloading::Library;
use marlin_verilator::reexports::snafu::ResultExt;
use marlin_verilator::tracing::Waveform;
use marlin_verilator::{
    AsVerilatedModel, PortDirection, VerilatedModelConfig, VerilatorRuntime, VerilatorRuntimeOptions, VerilatorVersion,
};

use super::{ModelError, rtl};

const SHIM: &str = include_str!("../../cpp/shim.cpp");
const SCRIPT: &str = include_str!("../../cpp/verilate.sh");
/// Name that every design is Verilated under, so that the shim is the same for all.
const FIXED_NAME: &str = "onr_model";
/// marlin names a directory after the path of a source file; a file name has at most 255 bytes.
const MAX_CACHE_PATH: usize = 180;

/// Which of the builds of a design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// As fast as it gets, no tracing.
    Fast,
    /// With FST tracing, several times slower even while no trace is open.
    Trace,
}

/// How much the compiler shall do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effort {
    /// Compiles quickly: for benches of single blocks.
    Quick,
    /// Runs quickly: for whole NICs.
    Full,
}

/// What to build.
#[derive(Debug, Clone)]
pub struct BuildSpec {
    /// Top module.
    pub top: String,
    /// Source files in order (packages first).
    pub sources: Vec<PathBuf>,
    /// Parameter overrides of the top, as SystemVerilog literals.
    pub params: Vec<(String, String)>,
    /// Preprocessor symbols.
    pub defines: Vec<String>,
    /// Fast or with tracing.
    pub variant: Variant,
    /// Compiler effort.
    pub effort: Effort,
    /// Start registers and x values at random, by the seed of each instance, instead of at 0.
    pub random_init: bool,
}

/// The shim's functions; layout as `OnrApi` in `shim.cpp`.
#[repr(C)]
pub(super) struct Api {
    abi: u32,
    pub(super) ports: u32,
    pub(super) create: extern "C" fn(*const c_char, u64, c_int, c_int, *mut c_void) -> *mut c_void,
    pub(super) destroy: extern "C" fn(*mut c_void),
    pub(super) port: extern "C" fn(*mut c_void, u32, *mut RawPort) -> c_int,
    pub(super) eval: extern "C" fn(*mut c_void),
    pub(super) clock: extern "C" fn(*mut c_void, u64) -> c_int,
    pub(super) settle: extern "C" fn(*mut c_void) -> c_int,
    pub(super) edge: extern "C" fn(*mut c_void) -> c_int,
    pub(super) cycles: extern "C" fn(*mut c_void) -> u64,
    pub(super) stopped: extern "C" fn(*mut c_void) -> c_int,
    pub(super) stop_place: extern "C" fn(*mut c_void) -> *const c_char,
    pub(super) trace_open: extern "C" fn(*mut c_void, *const c_char) -> c_int,
    pub(super) trace_dump: extern "C" fn(*mut c_void, u64),
    pub(super) trace_flush: extern "C" fn(*mut c_void),
    pub(super) trace_close: extern "C" fn(*mut c_void),
}

/// A port as the shim describes it; layout as `Port` in `shim.cpp`.
#[repr(C)]
pub(super) struct RawPort {
    pub(super) name: *const c_char,
    pub(super) width: u32,
    pub(super) is_output: u32,
    pub(super) value: *mut c_void,
    pub(super) sampled: *mut c_void,
}

const ABI: u32 = 2;

thread_local! {
    /// What this thread has loaded. Runtimes are kept for the life of the process: libraries are few,
    /// and instances hold pointers into them.
    static LOADED: RefCell<HashMap<PathBuf, &'static Api>> = RefCell::new(HashMap::new());
    /// Source path for marlin, which asks for it through a function without arguments.
    static SOURCE_PATH: Cell<&'static str> = const { Cell::new("") };
}

/// Takes the shim's functions out of a library that marlin built; holds no model of its own.
struct Loader {
    api: &'static Api,
}

impl AsVerilatedModel<'static> for Loader {
    fn name() -> &'static str {
        FIXED_NAME
    }

    fn mangled_name(&self) -> &str {
        FIXED_NAME
    }

    fn source_path() -> &'static str {
        SOURCE_PATH.get()
    }

    fn ports() -> &'static [(&'static str, usize, usize, PortDirection)] {
        &[]
    }

    unsafe fn init_from(
        library: &'static Library,
        _version: VerilatorVersion,
        _tracing: bool,
    ) -> Result<Self, VerilatorError> {
        // SAFETY: the symbol is the function of this type in shim.cpp, which every build contains.
        let get = unsafe { library.get::<extern "C" fn() -> *const Api>(b"onr_api") }
            .whatever_context::<_, VerilatorError>("the library lacks the function onr_api")?;
        // SAFETY: onr_api returns a pointer to a constant with static storage in the library, and the
        // library stays loaded for the life of the process.
        let api = unsafe { &*get() };
        Ok(Self { api })
    }

    unsafe fn model(&self) -> *mut c_void {
        // marlin deletes this when its runtime ends; deleting null does nothing.
        std::ptr::null_mut()
    }
}

/// Builds (or finds in the cache) and loads a design.
pub(super) fn load(spec: &BuildSpec) -> Result<&'static Api, ModelError> {
    let tools = tools()?;
    let hash = hash_of(spec, tools)?;
    let root = cache_root();
    let dir = root.join(format!("{}-{hash:016x}", spec.top));
    if let Some(api) = LOADED.with_borrow(|loaded| loaded.get(&dir).copied()) {
        return Ok(api);
    }
    fs::create_dir_all(&root).map_err(ModelError::io("creating the model cache", &root))?;
    let root = root
        .canonicalize()
        .map_err(ModelError::io("resolving the model cache", &root))?;
    let real_dir = root.join(format!("{}-{hash:016x}", spec.top));
    if real_dir.as_os_str().len() > MAX_CACHE_PATH {
        return Err(ModelError::CachePathTooLong {
            path: real_dir,
            limit: MAX_CACHE_PATH,
        });
    }
    let api = {
        let lock_path = real_dir.with_extension("lock");
        let lock = File::create(&lock_path).map_err(ModelError::io("creating the lock", &lock_path))?;
        lock.lock().map_err(ModelError::io("locking", &lock_path))?;
        let complete = real_dir.join("complete");
        let done = complete.exists();
        let built = if done {
            refresh(&real_dir)?;
            build(spec, &real_dir)
        } else {
            prepare(spec, tools, &real_dir)?;
            // marlin prints its command line; standard output belongs to the program.
            let _muted = StdoutToStderr::new();
            build(spec, &real_dir)
        };
        let api = match built {
            Ok(api) => api,
            Err(error) => {
                // A half-built directory would be taken for a finished one by the next run.
                let _ = fs::remove_dir_all(&real_dir);
                return Err(error);
            }
        };
        fs::write(&complete, "").map_err(ModelError::io("writing", &complete))?;
        api
    };
    if api.abi != ABI {
        return Err(ModelError::Load {
            top: spec.top.clone(),
            message: format!("its interface has version {}, this crate speaks {ABI}", api.abi),
        });
    }
    LOADED.with_borrow_mut(|loaded| loaded.insert(dir, api));
    Ok(api)
}

/// `$OPENRNIC_CACHE`, or a directory in cargo's target directory.
pub fn cache_root() -> PathBuf {
    if let Some(root) = std::env::var_os("OPENRNIC_CACHE") {
        return PathBuf::from(root);
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| rtl::project_root().join("target"), PathBuf::from);
    target.join("models")
}

struct Tools {
    verilator: PathBuf,
    version: String,
    compiler: String,
    processor: String,
}

/// The tools' versions, asked once per process.
fn tools() -> Result<&'static Tools, ModelError> {
    static TOOLS: OnceLock<Tools> = OnceLock::new();
    if let Some(tools) = TOOLS.get() {
        return Ok(tools);
    }
    let mut tried = String::new();
    let own = rtl::project_root().join(".tools/bin/verilator");
    let candidates = [
        std::env::var_os("VERILATOR").map(PathBuf::from),
        Some(own),
        Some(PathBuf::from("verilator")),
    ];
    for candidate in candidates.into_iter().flatten() {
        match first_line(Command::new(&candidate).arg("--version")) {
            Ok(version) => {
                let compiler =
                    first_line(Command::new("c++").arg("--version")).map_err(|e| ModelError::NoVerilator {
                        tried: format!("C++ compiler c++: {e}"),
                    })?;
                return Ok(TOOLS.get_or_init(|| Tools {
                    verilator: candidate,
                    version,
                    compiler,
                    processor: processor(),
                }));
            }
            Err(error) => tried.push_str(&format!("{}: {error}; ", candidate.display())),
        }
    }
    Err(ModelError::NoVerilator {
        tried: tried.trim_end_matches("; ").to_owned(),
    })
}

fn first_line(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(format!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned())
}

/// What -march=native depends on.
fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let wanted = ["model name", "flags", "Features", "CPU part"];
    let mut lines: Vec<&str> = info
        .lines()
        .filter(|l| wanted.iter().any(|w| l.starts_with(w)))
        .collect();
    lines.sort_unstable();
    lines.dedup();
    format!("{} {}", std::env::consts::ARCH, lines.join("\n"))
}

fn flags(spec: &BuildSpec) -> Vec<String> {
    let mut flags: Vec<String> = [
        "-O3",
        "--assert",
        "--no-timing",
        "--timescale",
        "1ps/1ps",
        "-Wno-TIMESCALEMOD",
    ]
    .map(String::from)
    .into();
    if spec.random_init {
        flags.extend(["--x-assign", "unique", "--x-initial", "unique"].map(String::from));
    } else {
        flags.extend(["--x-assign", "fast", "--x-initial", "fast"].map(String::from));
    }
    if spec.variant == Variant::Trace {
        flags.extend(["--trace-fst", "--trace-structs"].map(String::from));
    }
    flags.extend(spec.params.iter().map(|(name, value)| format!("-G{name}={value}")));
    flags.extend(spec.defines.iter().map(|define| format!("+define+{define}")));
    // A feature taken out of every model, to see its test turn red (`make cuts`).
    if let Ok(cut) = std::env::var("OPENRNIC_CUT")
        && !cut.is_empty()
        && !spec.defines.contains(&cut)
    {
        flags.push(format!("+define+{cut}"));
    }
    flags
}

fn cflags(spec: &BuildSpec) -> String {
    let mut flags = String::from("-march=native -fno-gnu-unique -DVL_USER_STOP -DVL_USER_FATAL -Wno-attributes");
    if spec.variant == Variant::Trace {
        flags.push_str(" -DONR_TRACE");
    }
    flags
}

fn opt_fast(spec: &BuildSpec) -> &'static str {
    match spec.effort {
        Effort::Quick => "-O1",
        Effort::Full => "-O3",
    }
}

fn hash_of(spec: &BuildSpec, tools: &Tools) -> Result<u64, ModelError> {
    let mut hasher = Fnv::default();
    for part in [
        SHIM,
        SCRIPT,
        &tools.version,
        &tools.compiler,
        &tools.processor,
        &spec.top,
        &cflags(spec),
        opt_fast(spec),
    ] {
        hasher.part(part.as_bytes());
    }
    for flag in flags(spec) {
        hasher.part(flag.as_bytes());
    }
    for source in &spec.sources {
        // The path too: it stands in the messages of assertions.
        hasher.part(source.as_os_str().as_encoded_bytes());
        hasher.part(&fs::read(source).map_err(ModelError::io("reading", source))?);
    }
    Ok(hasher.finish())
}

/// FNV-1a: the same on every run and machine, which the standard library does not promise of its own.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

impl Fnv {
    fn part(&mut self, bytes: &[u8]) {
        self.write(&(bytes.len() as u64).to_le_bytes());
        self.write(bytes);
    }
}

/// Sends standard output to standard error while it lives.
struct StdoutToStderr {
    saved: Option<OwnedFd>,
}

impl StdoutToStderr {
    fn new() -> Self {
        let saved = std::io::stdout().as_fd().try_clone_to_owned().ok();
        if saved.is_some() {
            Self::point_stdout_at(std::io::stderr().as_fd());
        }
        Self { saved }
    }

    fn point_stdout_at(target: BorrowedFd<'_>) {
        let _ = std::io::stdout().flush();
        // SAFETY: both descriptors are open; dup2 makes the number of standard output refer to the target
        // and changes nothing else.
        unsafe { libc::dup2(target.as_raw_fd(), libc::STDOUT_FILENO) };
    }
}

impl Drop for StdoutToStderr {
    fn drop(&mut self) {
        if let Some(saved) = &self.saved {
            Self::point_stdout_at(saved.as_fd());
        }
    }
}

/// Quotes a word for bash.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Lays out a fresh build directory: the shim, the script and its settings.
fn prepare(spec: &BuildSpec, tools: &Tools, dir: &Path) -> Result<(), ModelError> {
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(ModelError::io("removing", dir))?;
    }
    fs::create_dir_all(dir).map_err(ModelError::io("creating", dir))?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let list: Vec<String> = flags(spec).iter().map(|f| quoted(f)).collect();
    let settings = format!(
        "ONR_VERILATOR={}\nONR_VERSION={}\nONR_TOP={}\nONR_FLAGS=({})\nONR_CFLAGS={}\nONR_OPT_FAST={}\nONR_OPT_SLOW=-O0\nONR_JOBS={jobs}\n",
        quoted(&tools.verilator.to_string_lossy()),
        quoted(&tools.version),
        quoted(&spec.top),
        list.join(" "),
        quoted(&cflags(spec)),
        quoted(opt_fast(spec)),
    );
    for (name, text) in [
        ("shim.cpp", SHIM),
        ("verilate.sh", SCRIPT),
        ("settings.sh", settings.as_str()),
    ] {
        let path = dir.join(name);
        fs::write(&path, text).map_err(ModelError::io("writing", &path))?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let path = dir.join("verilate.sh");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .map_err(ModelError::io("making executable", &path))?;
    }
    Ok(())
}

/// marlin rebuilds when a source is newer than the build. The directory's name already vouches for
/// the contents, so a source that was only touched gets no rebuild: make the build the newer one.
fn refresh(dir: &Path) -> Result<(), ModelError> {
    for entry in fs::read_dir(dir).map_err(ModelError::io("reading", dir))? {
        let objects = entry.map_err(ModelError::io("reading", dir))?.path().join("obj_dir");
        if objects.is_dir() {
            File::open(&objects)
                .and_then(|f| f.set_modified(std::time::SystemTime::now()))
                .map_err(ModelError::io("refreshing", &objects))?;
        }
    }
    Ok(())
}

fn build(spec: &BuildSpec, dir: &Path) -> Result<&'static Api, ModelError> {
    let failed = |error: VerilatorError| ModelError::Build {
        top: spec.top.clone(),
        message: root_cause(&error),
    };
    let shim = dir.join("shim.cpp");
    let mut sources: Vec<&Path> = spec.sources.iter().map(PathBuf::as_path).collect();
    sources.push(&shim);
    let options = VerilatorRuntimeOptions::default().verilator_executable(dir.join("verilate.sh").into_os_string());
    let no_includes: [&Path; 0] = [];
    let runtime = VerilatorRuntime::new2(dir, &sources, &no_includes, [], options).map_err(failed)?;
    let config = VerilatedModelConfig {
        enable_tracing: (spec.variant == Variant::Trace).then_some(Waveform::Fst),
        cxx_standard: Some(marlin_verilator::CxxStandard::Cxx17),
        ..Default::default()
    };
    SOURCE_PATH.set(Box::leak(shim.to_string_lossy().into_owned().into_boxed_str()));
    let runtime: &'static VerilatorRuntime = Box::leak(Box::new(runtime));
    let loader: Loader = runtime.create_model(&config).map_err(failed)?;
    Ok(loader.api)
}

/// What the failing tool itself said: the innermost error, of which standard error matters.
fn root_cause(error: &VerilatorError) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    text.split("--- STDERR ---").last().unwrap_or(&text).trim().to_owned()
}
