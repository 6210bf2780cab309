//! What is answered before a service of ours is called, or instead of what the gRPC library says.
//!
//! - A connection past the bound is told so, whatever it asks for.
//! - A message that is too large the library refuses before any service is called, with a bare status that
//!   names numbers of bytes only. A caller may conclude nothing from a bare status, but here nothing was
//!   done: it gets a status with a reason of ours.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_proto::Failure;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;

use super::connections::Connection;
use super::failures;

/// A gRPC service behind these checks.
#[derive(Clone, Debug)]
pub(super) struct Guarded<S> {
    inner: S,
    message_bytes_max: usize,
}

impl<S> Guarded<S> {
    pub(super) fn of(inner: S, message_bytes_max: usize) -> Self {
        Guarded { inner, message_bytes_max }
    }
}

impl<S: NamedService> NamedService for Guarded<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Guarded<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if request.extensions().get::<Connection>().is_some_and(Connection::is_turned_away) {
            let refusal = Failure::overloaded("queue.connections_max").to_status().into_http();
            return std::future::ready(Ok(refusal)).boxed();
        }
        let message_bytes_max = self.message_bytes_max;
        let answer = self.inner.call(request);
        async move {
            let response = answer.await?;
            Ok(match Status::from_header_map(response.headers()) {
                Some(status) if is_bare_oversize(&status) => {
                    failures::too_large(message_bytes_max).to_status().into_http()
                }
                _ => response,
            })
        }
        .boxed()
    }
}

/// Ours with the same code carry details.
fn is_bare_oversize(status: &Status) -> bool {
    status.code() == tonic::Code::OutOfRange && status.details().is_empty()
}
