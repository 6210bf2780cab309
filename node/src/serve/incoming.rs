//! Clients' connections as they come in, counted against their bound.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{Stream, unfold};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Sleep;
use tonic::transport::server::Connected;

use crate::api::{Connection, Connections, Place};
use crate::limits::{ACCEPT_PAUSE, TURNED_AWAY_LIFE};

/// A client's connection with its place among them.
pub(super) struct Client {
    io: TcpStream,
    connection: Connection,
    _place: Place,
    /// When a connection that is one too many ends, whatever its client does.
    ends: Option<Pin<Box<Sleep>>>,
}

/// The connections that `listener` takes, for as long as it is asked for them.
pub(super) fn incoming(
    listener: TcpListener,
    connections: Arc<Connections>,
) -> impl Stream<Item = io::Result<Client>> {
    unfold((listener, connections), |(listener, connections)| async move {
        let client = loop {
            match listener.accept().await {
                Ok((io, _)) => {
                    let Some((connection, place)) = connections.admit() else { continue };
                    // Small messages wait for nothing; where the socket is gone already, reading says so.
                    let _ = io.set_nodelay(true);
                    let ends =
                        connection.is_turned_away().then(|| Box::pin(tokio::time::sleep(TURNED_AWAY_LIFE)));
                    break Client { io, connection, _place: place, ends };
                }
                // Out of file descriptors, mostly: it passes, and there is nobody to tell.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        };
        Some((Ok(client), (listener, connections)))
    })
}

impl Connected for Client {
    type ConnectInfo = Connection;

    fn connect_info(&self) -> Connection {
        self.connection.clone()
    }
}

impl AsyncRead for Client {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ends.as_mut().is_some_and(|ends| ends.as_mut().poll(cx).is_ready()) {
            // As if the client had closed it.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Client {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
