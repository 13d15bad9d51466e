//! A way to a server that can be shut: connections are then refused, and those that stand are cut.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Listens on a port of loopback of its own while it is open.
pub struct Door {
    address: SocketAddr,
    target: String,
    open: Mutex<Option<Passage>>,
}

struct Passage {
    listener: TcpListener,
    through: Arc<Mutex<Vec<TcpStream>>>,
}

impl Door {
    /// An open door to `host:port`.
    pub fn to(target: &str) -> Door {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let door = Door { address, target: target.to_owned(), open: Mutex::new(None) };
        door.serve(listener);
        door
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn shut(&self) {
        let Some(Passage { listener, through }) = self.open.lock().unwrap().take() else { return };
        listener.set_nonblocking(true).unwrap();
        // Wakes the thread that waits for a connection; it then meets a listener that does not wait.
        drop(TcpStream::connect(self.address));
        for stream in through.lock().unwrap().drain(..) {
            stream.shutdown(Shutdown::Both).ok();
        }
    }

    pub fn reopen(&self) {
        // The thread of before may still hold the port for a moment.
        let listener = (0..200)
            .find_map(|_| {
                TcpListener::bind(self.address)
                    .inspect_err(|_| std::thread::sleep(std::time::Duration::from_millis(10)))
                    .ok()
            })
            .expect("the port is still there");
        self.serve(listener);
    }

    fn serve(&self, listener: TcpListener) {
        let through = Arc::new(Mutex::new(Vec::new()));
        let passage = Passage { listener: listener.try_clone().unwrap(), through: Arc::clone(&through) };
        *self.open.lock().unwrap() = Some(passage);
        let target = self.target.clone();
        std::thread::spawn(move || {
            while let Ok((here, _)) = listener.accept() {
                let Ok(there) = TcpStream::connect(&target) else { continue };
                through.lock().unwrap().extend([here.try_clone().unwrap(), there.try_clone().unwrap()]);
                for (mut from, mut to) in [(here.try_clone().unwrap(), there.try_clone().unwrap()), (there, here)] {
                    std::thread::spawn(move || {
                        std::io::copy(&mut from, &mut to).ok();
                        to.shutdown(Shutdown::Write).ok();
                    });
                }
            }
        });
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.shut();
    }
}
