//! Admission paths: for each (route, tenant, user, model, region) that was asked for, the plan's route and
//! the lineages that apply, so that a reserve finds its accounts with one look-up. Derived, bounded, and
//! good for one generation only.

use std::sync::Arc;

use hashbrown::HashTable;

use crate::answer::Hold;
use crate::book::generations::PlanVersion;
use crate::book::hash::hash_names;
use crate::command::Request;
use crate::ids::{ModelName, RegionName, RouteName, TenantId, UserId};
use crate::limits::{PATHS_AGE_MS_MAX, PATHS_MAX};
use crate::mutants;
use crate::plan::{Level, Limit};
use crate::record::{Lane, LineageKey, Subject};
use crate::unit::Unit;

/// A leg of a path.
#[derive(Clone, Debug)]
pub(crate) struct PathLeg {
    /// The lineage's key; the very `Arc` of the row once the row was found.
    pub(crate) key: Arc<LineageKey>,
    /// Where the row was found last.
    pub(crate) slot: Option<u32>,
    pub(crate) unit: Unit,
}

/// What a reserve needs to know of the plan.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// Place of the route in the plan.
    pub(crate) route: usize,
    pub(crate) subject: Arc<Subject>,
    pub(crate) model: Option<ModelName>,
    pub(crate) region: Option<RegionName>,
    /// The lane that the plan puts the subject in.
    pub(crate) lane: Lane,
    /// Sorted by limit id, as the plan's limits are.
    pub(crate) legs: Vec<PathLeg>,
    /// The legs of the last reservation on the path, and what its receipts say of them: the next one shares
    /// them if it holds the same amounts on the same accounts. `None` once a leg's row is another one, since
    /// only within one row does an account's number say which account it is.
    pub(crate) last: Option<Arc<Hold>>,
}

impl Path {
    /// The path of a request under a plan; `None`: no route fits.
    pub(crate) fn of(plan: &PlanVersion, request: &Request) -> Option<Path> {
        let plan = &plan.published.plan;
        let route = plan.routes.iter().position(|route| route.matches.matches(request))?;
        let subject = Arc::new(Subject {
            tenant: request.tenant.clone(),
            user: request.user.clone(),
            route: plan.routes[route].name.clone(),
        });
        let lane = plan.routes[route].rollout.lane(&subject.route, &subject.tenant, subject.user.as_ref());
        let legs = plan
            .limits_for(request)
            .filter(|limit| !(mutants::on("skip-user-level") && limit.scope.level == Level::User))
            .map(|limit| PathLeg {
                key: Arc::new(key_for(limit, request, &subject.route, lane)),
                slot: None,
                unit: limit.unit,
            })
            .collect();
        let (model, region) = (request.model.clone(), request.region.clone());
        Some(Path { route, subject, model, region, lane, legs, last: None })
    }
}

/// The lineage that a limit has for a request.
fn key_for(limit: &Limit, request: &Request, route: &RouteName, lane: Lane) -> LineageKey {
    let scope = limit.scope;
    LineageKey {
        limit: limit.id.clone(),
        tenant: (scope.level >= Level::Tenant).then(|| request.tenant.clone()),
        user: match mutants::on("users-share") {
            false => request.user.clone().filter(|_| scope.level == Level::User),
            true => None,
        },
        route: scope.route.then(|| route.clone()),
        model: request.model.clone().filter(|_| scope.model),
        region: request.region.clone().filter(|_| scope.region),
        lane,
    }
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    tenant: TenantId,
    user: Option<UserId>,
    route: RouteName,
    model: Option<ModelName>,
    region: Option<RegionName>,
    /// `None` while a reserve works with it.
    path: Option<Path>,
}

impl Entry {
    fn is_for(&self, request: &Request) -> bool {
        self.tenant == request.tenant
            && self.user == request.user
            && self.route == request.route
            && self.model == request.model
            && self.region == request.region
    }
}

/// The paths that are kept ready.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    generation: u64,
    places: HashTable<u32>,
    entries: Vec<Entry>,
    /// When it starts again next, ms.
    stale_ms: u64,
}

impl Paths {
    /// Starts again now and then, so that it holds what is asked for now and not what once was.
    pub(crate) fn age(&mut self, now_ms: u64) {
        if now_ms >= self.stale_ms {
            self.stale_ms = now_ms.saturating_add(PATHS_AGE_MS_MAX);
            self.clear();
        }
    }

    /// Lends the path of a request; give it back with [`Paths::give_back`]. `None`: no route fits.
    pub(crate) fn lend(
        &mut self,
        generation: u64,
        plan: &PlanVersion,
        request: &Request,
    ) -> Option<(usize, Path)> {
        if self.generation != generation {
            self.generation = generation;
            self.clear();
        }
        let hash = hash_request(request);
        let entries = &self.entries;
        let known = self.places.find(hash, |place| entries[*place as usize].is_for(request)).copied();
        if let Some(place) = known {
            let path = self.entries[place as usize].path.take()?;
            return Some((place as usize, path));
        }
        let path = Path::of(plan, request)?;
        if self.entries.len() >= PATHS_MAX {
            self.clear();
        }
        let place = self.entries.len();
        self.entries.push(Entry {
            hash,
            tenant: request.tenant.clone(),
            user: request.user.clone(),
            route: request.route.clone(),
            model: request.model.clone(),
            region: request.region.clone(),
            path: None,
        });
        let entries = &self.entries;
        self.places.insert_unique(hash, place as u32, |place| entries[*place as usize].hash);
        Some((place, path))
    }

    pub(crate) fn give_back(&mut self, place: usize, path: Path) {
        self.entries[place].path = Some(path);
    }

    fn clear(&mut self) {
        self.places = HashTable::new();
        self.entries = Vec::new();
    }
}

fn hash_request(request: &Request) -> u64 {
    hash_names(&[
        Some(request.tenant.as_str()),
        request.user.as_ref().map(UserId::as_str),
        Some(request.route.as_str()),
        request.model.as_ref().map(ModelName::as_str),
        request.region.as_ref().map(RegionName::as_str),
    ])
}
