//! NetBox and Ironic of a scenario in the caller's own thread: no sockets, no waiting, time that only moves by hand.
//! For tests that live through thousands of histories. BMCs and the DHCP host have no door here.

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, Method, StatusCode, header};
use jiff::Timestamp;

use super::build::{self, Built, bmc_password, bmc_user, netbox_token};
use super::clock::Clock;
use super::http::{ask, watched};
use super::ironic::Ironic;
use super::ironic::seed::{Seed, plant};
use super::scenario::Scenario;
use super::world::World;
use super::{LabError, ironic, netbox, start};

/// Where the two services say that they are.
pub const NETBOX_URL: &str = "http://netbox.inside";
pub const IRONIC_URL: &str = "http://ironic.inside";

/// A scenario that is read and built once, and begun as often as wanted.
pub struct Blueprint {
    scenario: Scenario,
    built: Built,
    seeds: Vec<Seed>,
}

impl Blueprint {
    pub fn of(scenario: Scenario) -> Result<Blueprint, LabError> {
        let built = build::build(&scenario)?;
        let seeds = start::seeds(&scenario, &built, 80);
        Ok(Blueprint { scenario, built, seeds })
    }

    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The token that NetBox takes.
    pub fn netbox_token(&self) -> String {
        netbox_token(self.scenario.netbox.token_version, "muster")
    }

    /// User and password of a host's BMC, as the vault is to have them.
    pub fn bmc_login(&self, host: &str) -> Option<(&'static str, String)> {
        let machine = self.built.machines.iter().find(|machine| machine.name == host)?;
        Some((bmc_user(machine.bmc.vendor), bmc_password(host)))
    }

    /// A world as it is at the beginning, at this time.
    pub fn begin(&self, wall: Timestamp) -> Inside {
        let Built { records, machines } = self.built.clone();
        let database = Ironic::new(start::settings(&self.scenario));
        let world = World::with_clock(machines, records, database, self.scenario.timing, Clock::by_hand(wall));
        plant(&mut world.lock(), &self.seeds);
        let (served, router) = netbox::service(&world, NETBOX_URL, self.scenario.netbox.max_page_size);
        let netbox = watched(served, router);
        let (served, router) = ironic::service(&world, IRONIC_URL);
        Inside { ironic: watched(served, router), netbox, world }
    }
}

/// The services of a world that was begun.
pub struct Inside {
    pub world: World,
    netbox: Router,
    ironic: Router,
}

/// Which of them is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    NetBox,
    Ironic,
}

/// A request as it comes out of the wire.
#[derive(Debug, Clone)]
pub struct Question {
    pub method: Method,
    /// Path and query, encoded.
    pub path: String,
    pub headers: HeaderMap,
    /// JSON.
    pub body: Option<Vec<u8>>,
}

/// What is answered.
#[derive(Debug, Clone)]
pub struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Inside {
    /// Asks one of the services. `None`: no answer, as over a connection that broke.
    pub async fn ask(&self, door: Door, question: Question) -> Option<Answered> {
        let router = match door {
            Door::NetBox => &self.netbox,
            Door::Ironic => &self.ironic,
        };
        let mut request = axum::http::Request::new(question.body.map_or_else(Body::empty, Body::from));
        *request.method_mut() = question.method;
        *request.uri_mut() = question.path.parse().ok()?;
        *request.headers_mut() = question.headers;
        let kind = header::HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::CONTENT_TYPE, kind);
        let (parts, body) = ask(router, request).await?.into_parts();
        let body = to_bytes(body, usize::MAX).await.ok()?;
        Some(Answered { status: parts.status, headers: parts.headers, body })
    }
}
