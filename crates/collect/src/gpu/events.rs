//! The driver's own events: a thread that waits for XIDs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use model::Clock;
use nvml::{EventSet, Nvml};

use crate::kernel::{XidCounts, XidSource};

/// How long one wait lasts; the thread leaves that much later at most.
const WAIT: Duration = Duration::from_secs(1);

/// Waits for XIDs until it is dropped.
pub struct Events {
    stop: Arc<AtomicBool>,
}

impl Events {
    /// Registers every GPU that has such events and waits for them on a thread; `None` where nobody has any.
    pub fn start(nvml: &Nvml, xids: XidCounts, clock: Arc<dyn Clock>) -> Option<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (of_thread, nvml) = (Arc::clone(&stop), nvml.clone());
        let work = move || {
            let Some(mut set) = registered(&nvml) else { return };
            xids.set_driver_attached(true);
            while !of_thread.load(Ordering::Acquire) {
                match set.wait(WAIT) {
                    Ok(Some(event)) => {
                        let code = u32::try_from(event.xid).unwrap_or(u32::MAX);
                        if let Some(pci) = &event.pci_bus_id {
                            xids.count(XidSource::Driver, pci, code, clock.now());
                        }
                    }
                    Ok(None) => {}
                    // The driver says that a GPU is gone, again and again; which one, its watcher tells.
                    Err(nvml::Error::GpuLost) => thread::sleep(WAIT),
                    Err(_) => break,
                }
            }
            xids.set_driver_attached(false);
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

fn registered(nvml: &Nvml) -> Option<EventSet> {
    let mut set = nvml.event_set().ok().flatten()?;
    let devices = nvml.devices().ok()?;
    let mut any = false;
    for device in devices.into_iter().flatten() {
        any |= set.register(&device).unwrap_or(false);
    }
    any.then_some(set)
}
