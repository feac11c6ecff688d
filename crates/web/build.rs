//! The embedded page is `ui/dist`; it must at least be a folder for this crate to compile.

use std::path::Path;

fn main() {
    let dist = Path::new("../../ui/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    if let Err(error) = std::fs::create_dir_all(dist) {
        println!("cargo::error=cannot make ui/dist: {error}");
    }
}
