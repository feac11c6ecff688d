//! The driver's own events: a thread that waits for XIDs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nvml::{EventSet, Nvml};

/// How long one wait lasts; the thread leaves that much later at most.
const WAIT: Duration = Duration::from_secs(1);

/// What is heard of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Whether events are waited for.
    Attached(bool),
    /// An error of the GPU at this address.
    Xid(String, u32),
}

/// Waits for XIDs until it is dropped.
pub struct Events {
    stop: Arc<AtomicBool>,
}

impl Events {
    /// Registers every GPU that `is_served` and has such events, and tells what it hears on a thread; that ends at once
    /// where nobody has any.
    pub fn start(
        nvml: &Nvml,
        is_served: impl Fn(u32) -> bool + Send + 'static,
        tell: impl Fn(Heard) + Send + 'static,
    ) -> Option<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (of_thread, nvml) = (Arc::clone(&stop), nvml.clone());
        let work = move || {
            let Some(set) = registered(&nvml, is_served) else {
                return;
            };
            tell(Heard::Attached(true));
            hear(set, &of_thread, &tell);
            tell(Heard::Attached(false));
        };
        thread::Builder::new().name("gpu-events".to_owned()).spawn(work).ok()?;
        Some(Self { stop })
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

fn hear(mut set: EventSet, stop: &AtomicBool, tell: &impl Fn(Heard)) {
    while !stop.load(Ordering::Acquire) {
        match set.wait(WAIT) {
            Ok(Some(event)) => {
                let code = u32::try_from(event.xid).unwrap_or(u32::MAX);
                if let Some(pci) = event.pci_bus_id {
                    tell(Heard::Xid(pci, code));
                }
            }
            Ok(None) => {}
            // The driver says that a GPU is gone, again and again; which one, its watcher tells.
            Err(nvml::Error::GpuLost) => thread::sleep(WAIT),
            Err(_) => return,
        }
    }
}

fn registered(nvml: &Nvml, is_served: impl Fn(u32) -> bool) -> Option<EventSet> {
    let mut set = nvml.event_set().ok().flatten()?;
    let mut any = false;
    for index in (0..nvml.device_count().ok()?).filter(|index| is_served(*index)) {
        if let Ok(device) = nvml.device(index) {
            any |= set.register(&device).unwrap_or(false);
        }
    }
    any.then_some(set)
}
