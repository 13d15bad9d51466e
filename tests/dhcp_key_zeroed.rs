//! The private key's bytes are gone when the connection is: no buffer that held them is given back without being zeroed.
//!
//! A test binary of its own, since its allocator looks into every buffer that is freed.

#[path = "support/dhcp.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base64::Engine as _;
use muster::activities::dhcp::serve_entry;
use muster::domain::dhcp::Entry;
use muster::lab::dhcp_host::{DIRECTORY, RESTART, TEST, USER, VALIDATE, serve};
use muster::lab::ironic::Ironic;
use muster::lab::records::Records;
use muster::lab::world::{Timing, World};

/// What is looked for: parts of the key as bytes and as text.
static NEEDLES: OnceLock<Vec<[u8; NEEDLE]>> = OnceLock::new();
static WATCHES: AtomicBool = AtomicBool::new(false);
static FOUND: AtomicUsize = AtomicUsize::new(0);
/// Size of the last buffer that was found, for the message.
static SIZE: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);
const NEEDLE: usize = 16;

struct Watching;

#[global_allocator]
static ALLOCATOR: Watching = Watching;

// SAFETY: everything is the system's; a buffer is only looked at before it is given back.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Zeroed, so that what is found was written into this very buffer.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, buffer: *mut u8, layout: Layout) {
        if WATCHES.load(Ordering::Relaxed)
            && layout.size() >= NEEDLE
            && let Some(needles) = NEEDLES.get()
        {
            FREED.fetch_add(1, Ordering::Relaxed);
            let bytes = unsafe { std::slice::from_raw_parts(buffer, layout.size()) };
            let firsts: [u8; 4] = [needles[0][0], needles[1][0], needles[2][0], needles[3][0]];
            let held = bytes.windows(NEEDLE).any(|part| firsts.contains(&part[0]) && needles.iter().any(|n| n == part));
            if held {
                FOUND.fetch_add(1, Ordering::Relaxed);
                SIZE.store(layout.size(), Ordering::Relaxed);
            }
        }
        unsafe { System.dealloc(buffer, layout) }
    }
}

/// The seed in two halves, and two parts of the key's text that hold it.
fn needles(text: &str) -> Vec<[u8; NEEDLE]> {
    let lines: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    let bytes = base64::engine::general_purpose::STANDARD.decode(&lines).unwrap();
    let key = russh::keys::PrivateKey::from_openssh(text).unwrap();
    let seed = key.key_data().ed25519().unwrap().private.to_bytes();
    let at = bytes.windows(32).position(|part| part == seed).unwrap();
    let in_text = at.div_ceil(3) * 4;
    let cut = |from: &[u8]| <[u8; NEEDLE]>::try_from(&from[..NEEDLE]).unwrap();
    vec![cut(&seed), cut(&seed[16..]), cut(&lines.as_bytes()[in_text..]), cut(&lines.as_bytes()[in_text + 18..])]
}

/// What this test itself has left of the key on the stack.
#[inline(never)]
fn scrub_stack() {
    std::hint::black_box([0u8; 256 * 1024]);
}

/// Proves: D3
#[tokio::test]
async fn no_buffer_that_held_the_key_is_given_back_with_it() {
    let world = World::new(vec![], Records::default(), Ironic::default(), Timing::default(), 1000.0);
    let host = serve(&world).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    NEEDLES.set(needles(host.private_key())).unwrap();
    let vault = folder.path().join("vault.toml");
    // The text as the vault has it: lines as they are.
    let text = format!(
        "[ssh-config-dhcp]\nprivate_key = '''\n{}'''\nknown_hosts = '''\n{}'''\n",
        host.private_key(),
        host.known_hosts()
    );
    std::fs::write(&vault, text).unwrap();
    std::fs::set_permissions(&vault, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let config = format!(
        "[netbox]\nurl = \"http://127.0.0.1:9\"\ntoken = \"env:NOT_USED\"\n[vault]\nkind = \"file\"\npath = \"{}\"\n\
         [sites.osl1.dhcp]\nhost = \"127.0.0.1\"\nport = {}\nuser = \"{USER}\"\nserver = \"isc\"\ndirectory = \"{DIRECTORY}\"\n\
         test = \"{TEST}\"\nrestart = \"{RESTART}\"\nvalidate = \"{VALIDATE}\"\n",
        vault.display(),
        host.addr().port()
    );
    let settings = muster::config::parse(&config, "config.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let dhcp = settings.sites["osl1"].dhcp.clone().unwrap();
    let (cx, _) = support::context(settings, folder.path());
    let entry = Entry {
        name: "gpu-b07-37".into(),
        mac: "02:aa:00:00:00:02".parse().unwrap(),
        address: "10.10.8.42".parse().unwrap(),
    };

    scrub_stack();
    WATCHES.store(true, Ordering::SeqCst);
    assert!(serve_entry(&cx, &dhcp, &entry).await.unwrap().changed);
    // The session's task ends after its client.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let (found, size) = (FOUND.load(Ordering::SeqCst), SIZE.load(Ordering::SeqCst));
    let looked_at = FREED.load(Ordering::SeqCst);
    // The watch itself works: a copy that is given back as it is gets found.
    drop(host.private_key().to_owned());
    WATCHES.store(false, Ordering::SeqCst);
    assert_eq!(FOUND.load(Ordering::SeqCst), found + 1, "a plain copy of the key is found");
    assert_eq!(
        found, 0,
        "{found} of {looked_at} buffers were given back with the key in them, the last of {size} bytes"
    );
    assert!(looked_at > 1000, "{looked_at}");
}
