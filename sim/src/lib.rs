//! A simulated GPU server: the driver's library, the kernel log, `/proc` and `/sys`, all from one scenario.
//!
//! As a Rust library: [`Scenario::parse`], then [`Scenario::state`] for a board at a time,
//! [`Scenario::kernel_messages`] for what the kernel logged, [`kmsg`], [`procfs`] and [`sysfs`] to
//! write them where a reader looks. As a C library (`libsim.so`, to be named `libnvidia-ml.so.1`): the
//! driver's own symbols, behaving as the driver's do; `docs/simulator.md` tells how to steer it.
//!
//! Invariant: every value is a pure function of (scenario, GPU, time). Counters are integrals of
//! rates; the sums kept for speed never change a value. So the same scenario fills yesterday's
//! history and plays today's faults, and a test and the library agree on every number.

mod abi;
mod control;
mod counter;
mod error;
mod folder;
mod host;
mod kernel;
pub mod kmsg;
mod load;
mod mig;
mod noise;
mod offset;
pub mod procfs;
mod scenario;
mod source;
mod state;
mod switches;
pub mod sysfs;

pub use control::Control;
pub use error::Error;
pub use host::HostState;
pub use kernel::KernelMessage;
pub use load::Load;
pub use mig::{MigInstance, Profile};
pub use offset::Offset;
pub use scenario::{
    BadValue, Board, BoardKind, CallError, Calls, ClocksKind, Driver, DriverUnload, Ecc, FabricFault, FabricStep,
    Fault, FaultKind, Hang, Host, Job, JobKind, Location, NoNumber, NvLinkFault, OomKill, OrphanMemory, PciAddress,
    PowerKind, ProcessPlan, Remap, Scenario, SeenBy, SlowCall, Still, Sxid, TemperatureKind, ThermalThrottle, Xid,
};
pub use state::{BoardState, FabricState, LinkState, MigState, ProcessState, reason};
pub use switches::Switches;
