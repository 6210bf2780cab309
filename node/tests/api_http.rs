//! The HTTP port by itself: probes, metrics, the page, and what it refuses.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_node::http::{Face, run};
use holdfast_node::metrics::{Metrics, Sample};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Default)]
struct Node {
    ready: AtomicBool,
    metrics: Metrics,
}

impl Face for Node {
    fn live(&self) -> Result<(), String> {
        Ok(())
    }
    fn ready(&self) -> Result<(), String> {
        if self.ready.load(Ordering::Relaxed) { Ok(()) } else { Err("no leader".into()) }
    }
    fn metrics(&self) -> String {
        self.metrics.encode(Sample { term: 7, ..Sample::default() })
    }
    fn about(&self) -> Vec<(&'static str, String)> {
        vec![("node", "1".into())]
    }
}

/// One request on a connection of its own; the whole answer as text.
async fn ask(port: u16, head: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(format!("{head}\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn probes_metrics_and_the_page() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let node = Arc::new(Node::default());
    let (stop, stopped) = watch::channel(false);
    let server = tokio::spawn(run(listener, node.clone(), stopped));

    assert!(ask(port, "GET /livez HTTP/1.1").await.starts_with("HTTP/1.1 200"));
    let unready = ask(port, "GET /readyz HTTP/1.1").await;
    assert!(unready.starts_with("HTTP/1.1 503") && unready.ends_with("no leader\n"), "{unready}");
    node.ready.store(true, Ordering::Relaxed);
    assert!(ask(port, "GET /readyz HTTP/1.1").await.starts_with("HTTP/1.1 200"));

    let metrics = ask(port, "GET /metrics HTTP/1.1").await;
    assert!(metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
    assert!(metrics.contains("\nholdfast_term 7\n"), "{metrics}");
    assert!(ask(port, "GET / HTTP/1.1").await.contains("This node can take calls"));
    let head = ask(port, "HEAD /livez HTTP/1.1").await;
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");

    assert!(ask(port, "GET /nothing HTTP/1.1").await.starts_with("HTTP/1.1 404"));
    let post = ask(port, "POST /livez HTTP/1.1").await;
    assert!(post.starts_with("HTTP/1.1 405") && post.contains("allow: GET, HEAD"), "{post}");
    assert!(ask(port, "nonsense").await.starts_with("HTTP/1.1 400"));

    // A connection that asks nothing does not hold the stop.
    let _idle = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stop.send(true).unwrap();
    server.await.unwrap();
}

#[test]
fn the_document_tells_every_metric_and_its_type() {
    const DOCUMENT: &str = include_str!("../../docs/metrics.md");
    let metrics = Metrics::new();
    metrics.count_failure(holdfast_proto::ErrorReason::Invalid);
    metrics.count_rejection(&rejection());
    let page = metrics.encode(Sample { clock_off_ms: Some(1), ..Sample::default() });
    let mut told: Vec<_> = DOCUMENT
        .lines()
        .filter_map(|line| {
            let mut cells = line.split('|').map(str::trim).skip(1);
            let name = cells.next()?.strip_prefix("`holdfast_")?.strip_suffix('`')?;
            Some(format!("holdfast_{name} {}", cells.next()?))
        })
        .collect();
    let mut shown: Vec<_> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(str::to_owned).collect();
    told.sort();
    shown.sort();
    assert_eq!(told, shown);
}

fn rejection() -> holdfast_ledger::answer::Rejection {
    holdfast_ledger::answer::Rejection {
        generation: 1,
        limit: "x".parse().unwrap(),
        level: holdfast_ledger::plan::Level::Global,
        unit: holdfast_ledger::unit::Unit::Tokens,
        reason: holdfast_ledger::answer::Reason::Spent,
        reset_at_ms: None,
        retry_after_ms: None,
    }
}
