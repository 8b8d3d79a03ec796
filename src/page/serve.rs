// SPDX-License-Identifier: GPL-3.0-or-later
//! The listener, and the requests that it answers.

use super::settings::Settings;
use super::snapshot::{Snapshots, events};
use crate::control::{Daemon, METRICS_TYPE};
use crate::net::{Address, Bounds, Crowd, HttpListener, asks_for_ours};
use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use serde_json::{Map, Value};
use std::io;
use std::sync::Arc;

/// Connections at a time; each open page keeps one.
const MAX_CONNECTIONS: usize = 64;

/// The files of the page: path, media type, content.
const FILES: [(&str, &str, &str); 5] = [
    ("/", "text/html; charset=utf-8", include_str!("static/index.html")),
    ("/page.css", "text/css", include_str!("static/page.css")),
    ("/page.js", "text/javascript", include_str!("static/page.js")),
    ("/uplot.css", "text/css", include_str!("static/uplot.css")),
    ("/uplot.js", "text/javascript", include_str!("static/uplot.js")),
];

/// Content security policy: nothing from elsewhere, nothing inline, no text that becomes a script or markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Header fields of every response.
const FIELDS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Why the page cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The address cannot be used.
    #[error("cannot listen on {address} (status.listen): {reason}")]
    Bind {
        /// As the configuration has it.
        address: String,
        /// The system's error.
        reason: io::Error,
    },
    /// The address can be reached from other machines.
    #[error(
        "{address} (status.listen) can be reached from other machines, and there is no password; hosts = [\"NAME\"], the name by which they ask, allows it"
    )]
    Remote {
        /// The bound address.
        address: String,
    },
}

/// A bound page.
pub struct Page {
    bound: HttpListener,
    hosts: Hosts,
    snapshots: Arc<Snapshots>,
}

/// The names of this machine; none if no client can have used another name.
type Hosts = Option<Arc<[String]>>;

impl Page {
    /// Binds the page of this daemon, or returns none if the configuration wants no page. False bulk is estimated at `threshold`; `config` is
    /// the configuration in force.
    ///
    /// # Errors
    /// [`PageError`]
    pub async fn bind(
        settings: &Settings,
        daemon: Arc<Daemon>,
        threshold: impl Fn() -> u32 + Send + Sync + 'static,
        config: Arc<ArcSwap<Value>>,
    ) -> Result<Option<Self>, PageError> {
        let Some(address) = settings.listen.address() else { return Ok(None) };
        let bound = HttpListener::bind(address, None)
            .await
            .map_err(|reason| PageError::Bind { address: address.to_string(), reason })?;
        if !bound.is_local() && settings.hosts.is_empty() {
            return Err(PageError::Remote { address: bound.address() });
        }
        let hosts = matches!(address, Address::Tcp(_)).then(|| settings.hosts.clone().into());
        let snapshots = Arc::new(Snapshots::new(daemon, Box::new(threshold), config));
        Ok(Some(Self { bound, hosts, snapshots }))
    }

    /// Returns its address for a browser.
    #[must_use]
    pub fn url(&self) -> String {
        let address = self.bound.address();
        if address.starts_with("unix:") { address } else { format!("http://{address}/") }
    }

    /// Answers requests. Never returns.
    pub async fn serve(&self) {
        let mut router = Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(health))
            .route("/status.json", get(status))
            .route("/events", get(changes));
        for (path, kind, content) in FILES {
            router =
                router.route(path, get(move || async move { ([(header::CONTENT_TYPE, kind)], content) }));
        }
        let router = router
            .layer(from_fn_with_state(self.hosts.clone(), guard))
            .with_state(Arc::clone(&self.snapshots));
        let bounds = Bounds { all: MAX_CONNECTIONS, address: usize::MAX, known: usize::MAX };
        self.bound.serve(router, Crowd::new(bounds), || (), std::future::pending()).await;
    }
}

/// Refuses requests for an unknown host name.
async fn guard(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    if let Some(hosts) = &hosts
        && !asks_for_ours(request.headers(), request.uri(), hosts)
    {
        let why =
            "this page does not have that name; use its address, or add the name to hosts in [status]\n";
        return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    let mut response = next.run(request).await;
    for (name, value) in FIELDS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn metrics(State(snapshots): State<Arc<Snapshots>>) -> impl IntoResponse {
    let text = snapshots.daemon.metrics((snapshots.threshold)()).await;
    ([(header::CONTENT_TYPE, METRICS_TYPE)], text)
}

async fn health(State(snapshots): State<Arc<Snapshots>>) -> (StatusCode, String) {
    match snapshots.daemon.ailment() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

async fn status(State(snapshots): State<Arc<Snapshots>>) -> Json<Value> {
    let sections = snapshots.sections().await;
    Json(Value::Object(
        sections.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<Map<_, _>>(),
    ))
}

async fn changes(State(snapshots): State<Arc<Snapshots>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/event-stream")], events(snapshots))
}
