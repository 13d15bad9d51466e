//! A TCP proxy that cuts its next connection after so many bytes of the client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// It ends with the test's runtime.
pub struct Cutter {
    pub port: u16,
    /// Zero: nothing is cut.
    limit: Arc<AtomicUsize>,
    carried: Arc<AtomicUsize>,
}

impl Cutter {
    pub async fn in_front_of(port: u16) -> Cutter {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let cutter =
            Cutter { port: listener.local_addr().unwrap().port(), limit: Arc::default(), carried: Arc::default() };
        let (limit, carried) = (Arc::clone(&cutter.limit), Arc::clone(&cutter.carried));
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                // One connection is cut; a client that comes back at once is let through.
                let limit = limit.swap(0, Ordering::SeqCst);
                carried.store(0, Ordering::SeqCst);
                tokio::spawn(carry(near, port, limit, Arc::clone(&carried)));
            }
        });
        cutter
    }

    pub fn cut_after(&self, bytes: Option<usize>) {
        self.limit.store(bytes.unwrap_or(0), Ordering::SeqCst);
    }

    /// Bytes of the client in the last connection.
    pub fn carried(&self) -> usize {
        self.carried.load(Ordering::SeqCst)
    }
}

async fn carry(near: TcpStream, port: u16, limit: usize, carried: Arc<AtomicUsize>) {
    let Ok(far) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    near.set_nodelay(true).unwrap();
    far.set_nodelay(true).unwrap();
    let ((mut from, mut back), (mut answers, mut to)) = (near.into_split(), far.into_split());
    let forth = async move {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            let total = carried.fetch_add(read, Ordering::SeqCst) + read;
            let kept = if limit != 0 && total > limit { read - (total - limit) } else { read };
            if to.write_all(&buffer[..kept]).await.is_err() || kept < read {
                return;
            }
        }
    };
    let back = async move { tokio::io::copy(&mut answers, &mut back).await.map(drop).unwrap_or_default() };
    // Both ends are dropped with whichever comes first.
    tokio::select! {
        () = forth => {}
        () = back => {}
    }
}
