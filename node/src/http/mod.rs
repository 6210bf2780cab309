//! The HTTP port: probes, Prometheus, and a page that says what is there.
//!
//! Plain HTTP/1.1 on hyper: four paths need no framework. Nothing that is sent here is read but the
//! method and the path, and nothing can be changed from here.

mod page;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::limits::{ACCEPT_PAUSE, HTTP_CONNECTIONS_MAX, HTTP_HEADER_TIMEOUT};

/// What the HTTP port shows of a node.
pub trait Face: Send + Sync + 'static {
    /// Whether the process should be left running. Not whether it can serve: a node without a quorum lives.
    fn live(&self) -> Result<(), String>;
    /// Whether the node can take calls, or why not.
    fn ready(&self) -> Result<(), String>;
    /// The page for Prometheus.
    fn metrics(&self) -> String;
    /// Lines of name and value for people.
    fn about(&self) -> Vec<(&'static str, String)>;
}

/// Answers on `listener` until `stop` becomes true, then ends the connections.
pub async fn run(listener: TcpListener, face: Arc<dyn Face>, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            _ = connections.join_next(), if connections.len() >= HTTP_CONNECTIONS_MAX => continue,
            accepted = listener.accept(), if connections.len() < HTTP_CONNECTIONS_MAX => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(serve_connection(stream, Arc::clone(&face), stopped(stop.clone())));
            }
            // Out of file descriptors, mostly: it passes, and there is nobody to tell.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
    while connections.join_next().await.is_some() {}
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the sender is gone: as good as a stop.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn serve_connection(stream: TcpStream, face: Arc<dyn Face>, stop: impl Future<Output = ()>) {
    let answer = service_fn(move |request: Request<hyper::body::Incoming>| {
        let response = respond(request.method(), request.uri().path(), face.as_ref());
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HTTP_HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop => connection.as_mut().graceful_shutdown(),
    }
    // What was asked before the stop is answered; a peer that does not read cannot hold us.
    let _ = tokio::time::timeout(HTTP_HEADER_TIMEOUT, connection).await;
}

fn respond(method: &Method, path: &str, face: &dyn Face) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
    if method != Method::GET && method != Method::HEAD {
        let mut response = response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n".into());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match path {
        "/livez" => probe(face.live(), TEXT),
        "/readyz" => probe(face.ready(), TEXT),
        "/metrics" => response(StatusCode::OK, PROMETHEUS, face.metrics()),
        "/" => response(StatusCode::OK, "text/html; charset=utf-8", page::page(&face.about(), &face.ready())),
        _ => response(StatusCode::NOT_FOUND, TEXT, "there is / /livez /readyz /metrics\n".into()),
    }
}

fn probe(state: Result<(), String>, content_type: &'static str) -> Response<Full<Bytes>> {
    match state {
        Ok(()) => response(StatusCode::OK, content_type, "ok\n".into()),
        Err(why) => response(StatusCode::SERVICE_UNAVAILABLE, content_type, format!("{why}\n")),
    }
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
