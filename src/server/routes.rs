// SPDX-License-Identifier: GPL-3.0-or-later
//! The routes of requests.

use super::api::{Service, check, count_refusals, health, metrics, reports, snapshot, status, updates};
use super::orders::{give_orders, orders};
use super::partial::{bulk, counts};
use super::register::register;
use axum::Router;
use axum::middleware::map_response_with_state;
use axum::routing::{get, post};
use std::sync::Arc;

impl Service {
    /// Builds the router.
    pub fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route("/v1/reports", post(reports))
            .route("/v1/register", post(register))
            .route("/v1/updates", get(updates).post(updates))
            .route("/v1/snapshot", get(snapshot))
            .route("/v1/bulk", get(bulk))
            .route("/v1/counts", post(counts))
            .route("/v1/orders", get(orders).post(give_orders))
            .route("/v1/check", get(check))
            .route("/v1/status", get(status))
            .route("/metrics", get(metrics))
            .route("/healthz", get(health))
            .layer(map_response_with_state(Arc::clone(&self), count_refusals))
            .with_state(self)
    }
}
