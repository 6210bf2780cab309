//! Reserve: hold amounts on every limit that applies, or on none.

use smallvec::SmallVec;

use std::sync::Arc;

use crate::answer::{Answer, Extras, Hold, Refusal, Rejection, State, Tier};
use crate::apply::invalid;
use crate::book::{Ask, Book, Counted, Found, Kept, Path, Uncovered, judge, open_lineage};
use crate::command::{Request, Reserve};
use crate::limits::{ACCOUNTS_MAX, LEGS_MAX, RESERVATIONS_KEPT_MAX, RESERVATIONS_OPEN_MAX};
use crate::mutants;
use crate::plan::Route;
use crate::record::{Freeze, FreezeScope, Lane, Leg, Lineage};
use crate::shadow::ShadowDecision;
use crate::unit::{Amounts, Unit};

/// A lineage of the path that the book does not have yet, as it would be opened now, by its place in the path.
pub(super) type Unopened = SmallVec<[(usize, Box<Lineage>); 2]>;

/// The legs of a new reservation.
pub(super) type Legs = SmallVec<[Leg; 8]>;

/// What was decided of a request that is to be booked.
pub(super) struct Admission {
    pub(super) asked: Amounts,
    pub(super) amounts: Amounts,
    pub(super) tier: Tier,
    pub(super) legs: Legs,
    pub(super) shadow: Option<Arc<ShadowDecision>>,
    pub(super) hold_ttl_ms: u64,
    pub(super) grace_ms: u64,
}

impl Book {
    pub(super) fn apply_reserve(&mut self, reserve: &Reserve) -> Result<Answer, Refusal> {
        if let Some(found) = self.find_reserved(reserve) {
            return self.repeat_reserve(found, reserve);
        }
        self.check_fresh(reserve.id)?;
        self.check_ceilings()?;
        let plan = self.generations.plan().ok_or_else(no_plan)?;
        let generation = self.header.generation;
        let lent = self.derived.paths.lend(generation, plan, &reserve.request);
        let (place, mut path) = lent.ok_or_else(|| no_route(&reserve.request))?;
        let answer = match path.lane {
            Lane::Enforced => self.reserve_on(&mut path, reserve),
            Lane::Shadow => self.reserve_in_shadow(&mut path, reserve),
        };
        self.derived.paths.give_back(place, path);
        answer
    }

    /// What stands under a reserve's id, or else under its key.
    pub(crate) fn find_reserved(&self, reserve: &Reserve) -> Option<Found> {
        self.find(reserve.id).or_else(|| {
            let key = reserve.key.as_ref()?;
            let slot = self.find_key(&reserve.request.tenant, key)?;
            Some(Found::Reservation(slot))
        })
    }

    /// A known id or key: the same receipt for the same request, whatever else has changed.
    fn repeat_reserve(&self, found: Found, reserve: &Reserve) -> Result<Answer, Refusal> {
        match found {
            Found::Tombstone(_) => Err(Refusal::WrongState { state: State::Released }),
            Found::Reservation(slot)
                if self.reservations.get(slot).request_digest == reserve.request_digest
                    || mutants::on("any-request-under-an-id") =>
            {
                Ok(self.answer_with(slot))
            }
            Found::Reservation(slot) => Err(Refusal::Conflict { state: self.state(slot) }),
        }
    }

    fn check_ceilings(&self) -> Result<(), Refusal> {
        let kept = self.reservations.len() + self.tombstones.len();
        let ceilings = [
            (self.derived.tally.open() as usize, RESERVATIONS_OPEN_MAX, "RESERVATIONS_OPEN_MAX"),
            (kept, RESERVATIONS_KEPT_MAX, "RESERVATIONS_KEPT_MAX"),
        ];
        match ceilings.into_iter().find(|(held, most, _)| held >= most) {
            Some((_, _, ceiling)) => Err(Refusal::Overloaded { ceiling }),
            None => Ok(()),
        }
    }

    /// The enforced lane has its accounts for itself: what the shadow lane opens never refuses anybody.
    pub(super) fn check_accounts(&self) -> Result<(), Refusal> {
        let accounts = self.lineages.len() + self.closed.len() - self.derived.tally.shadow_accounts;
        if accounts >= ACCOUNTS_MAX { Err(Refusal::Overloaded { ceiling: "ACCOUNTS_MAX" }) } else { Ok(()) }
    }

    fn reserve_on(&mut self, path: &mut Path, reserve: &Reserve) -> Result<Answer, Refusal> {
        let plan = &self.generations.plan().ok_or_else(no_plan)?.published.plan;
        let route = &plan.routes[path.route];
        let asked = check_request(&reserve.request, route)?;
        let hold_ttl_ms = reserve.request.hold_ttl_ms.unwrap_or(route.hold_ttl_ms);
        let grace_ms = plan.expiring_grace_ms;
        self.check_accounts()?;
        check_legs(path)?;
        let unopened = self.touch_path(path, &asked)?;
        let (amounts, tier) =
            self.grant(path, &asked, &reserve.request, &unopened).map_err(Refusal::Rejected)?;
        let legs = self.hold_path(path, &amounts, unopened);
        let admission = Admission { asked, amounts, tier, legs, shadow: None, hold_ttl_ms, grace_ms };
        Ok(self.book_reservation(path, reserve, admission))
    }

    /// Writes down a reservation that is held on its legs.
    pub(super) fn book_reservation(
        &mut self,
        path: &mut Path,
        reserve: &Reserve,
        admission: Admission,
    ) -> Answer {
        let Admission { asked, amounts, tier, legs, shadow, hold_ttl_ms, grace_ms } = admission;
        let hold = self.share_hold(path, legs);
        let now_ms = self.header.clock_ms;
        let row = Kept {
            id: reserve.id,
            request_digest: reserve.request_digest,
            hold,
            generation: self.header.generation,
            tier,
            state: State::Reserved,
            reserved: amounts,
            reserved_at_ms: now_ms,
            reserved_revision: self.header.revision,
            expires_at_ms: now_ms.saturating_add(hold_ttl_ms),
            grace_ms,
            operation: None,
            started_at_ms: 0,
            unknown_at_ms: 0,
            shadow,
            ended: None,
            extras: extras(reserve, &asked, &amounts),
        };
        let slot = self.reservations.insert(row);
        self.derived.add_id(reserve.id, Found::Reservation(slot));
        if reserve.key.is_some() {
            self.derived.keys.add(&self.reservations, slot);
        }
        self.derived.tally.enter(State::Reserved);
        self.schedule_reservation(slot);
        self.answer_with(slot)
    }

    /// Brings the path's lineages to now. Those that the book does not have are opened aside: a request that
    /// is refused leaves no trace.
    pub(super) fn touch_path(&mut self, path: &mut Path, amounts: &Amounts) -> Result<Unopened, Uncovered> {
        let mut unopened = Unopened::new();
        for place in 0..path.legs.len() {
            self.find_leg(path, place);
            let leg = &path.legs[place];
            match leg.slot {
                Some(slot) => self.touch(slot)?,
                None if amounts.get(leg.unit).is_some() => {
                    let (now_ms, generation) = (self.header.clock_ms, self.header.generation);
                    let opened = open_lineage(
                        &leg.key,
                        leg.unit,
                        now_ms,
                        generation,
                        &self.generations,
                        &self.calendars,
                    )?;
                    unopened.extend(opened.map(|lineage| (place, Box::new(lineage))));
                }
                None => {}
            }
        }
        Ok(unopened)
    }

    /// Finds the row of a path's leg, unless the place where it was found last still holds it.
    fn find_leg(&self, path: &mut Path, place: usize) {
        let leg = &mut path.legs[place];
        let known = leg.slot.and_then(|slot| self.lineages.find(slot));
        if known.is_some_and(|row| Arc::ptr_eq(&row.key, &leg.key)) {
            return;
        }
        path.last = None;
        leg.slot = self.derived.find_lineage(&self.lineages, &leg.key);
        if let Some(slot) = leg.slot {
            leg.key = self.lineages.get(slot).key.clone();
        }
    }

    /// The path's lineages with what is asked of each.
    fn asks<'a>(
        &'a self,
        path: &'a Path,
        amounts: &'a Amounts,
        unopened: &'a Unopened,
    ) -> impl Iterator<Item = Ask<'a>> + Clone {
        path.legs.iter().enumerate().filter_map(move |(place, leg)| {
            let amount = amounts.get(leg.unit);
            match leg.slot {
                Some(slot) => {
                    let lineage = self.lineages.get(slot);
                    Some(Ask { lineage, amount, held_before: self.held_before(slot, lineage) })
                }
                None => {
                    let (_, lineage) = unopened.iter().find(|(known, _)| *known == place)?;
                    Some(Ask { lineage, amount, held_before: 0 })
                }
            }
        })
    }

    /// How much is granted, and the tier with it. A limit refuses only what is under the minimum.
    pub(super) fn grant(
        &self,
        path: &Path,
        asked: &Amounts,
        request: &Request,
        unopened: &Unopened,
    ) -> Result<(Amounts, Tier), Rejection> {
        if request.minimum.is_empty() {
            return Ok((*asked, self.judge_path(path, asked, unopened)?));
        }
        self.judge_path(path, &request.amounts_least(), unopened)?;
        let granted = match mutants::on("minimum-gives-all") {
            true => return Ok((*asked, self.judge_path(path, &request.amounts_least(), unopened)?)),
            false => self.most_that_fits(path, asked, &request.minimum, unopened),
        };
        Ok((granted, self.judge_path(path, &granted, unopened)?))
    }

    /// Of each unit with a minimum the least that is available over its limits, and never more than is asked.
    /// The minimum itself was found to fit.
    fn most_that_fits(
        &self,
        path: &Path,
        asked: &Amounts,
        minimum: &Amounts,
        unopened: &Unopened,
    ) -> Amounts {
        let mut granted = *asked;
        for ask in self.asks(path, minimum, unopened) {
            let (Some(_), Some(wanted)) = (ask.amount, granted.get(ask.lineage.unit)) else { continue };
            granted.set(ask.lineage.unit, Some(ask.lineage.most_now(wanted)));
        }
        granted
    }

    fn judge_path(&self, path: &Path, amounts: &Amounts, unopened: &Unopened) -> Result<Tier, Rejection> {
        let asks = self.asks(path, amounts, unopened);
        let freeze = self.freeze_on(path);
        judge(asks, freeze, self.header.clock_ms, self.header.generation, &self.calendars)
    }

    /// The freeze that a request on a path meets.
    pub(crate) fn freeze_on(&self, path: &Path) -> Option<&Freeze> {
        if self.freezes.is_empty() {
            return None;
        }
        let subject = &path.subject;
        // All that could be on it, the widest first.
        let mut scope = FreezeScope::of_route(subject.tenant.clone(), None, subject.route.clone());
        for user in choices(&subject.user) {
            scope.user = user;
            for model in choices(&path.model) {
                scope.model = model;
                for region in choices(&path.region) {
                    scope.region = region;
                    if let Some(freeze) = self.freezes.get(&scope) {
                        return Some(freeze);
                    }
                }
            }
        }
        None
    }

    /// The hold of the path's last reservation if its legs are the same, else one of these.
    fn share_hold(&self, path: &mut Path, places: SmallVec<[Leg; 8]>) -> Arc<Hold> {
        if let Some(same) = path.last.as_ref().filter(|known| known.places == places) {
            return Arc::clone(same);
        }
        let hold = self.hold(&path.subject, places);
        Arc::clone(path.last.insert(Arc::new(hold)))
    }

    /// Holds what was found to fit.
    pub(super) fn hold_path(&mut self, path: &mut Path, amounts: &Amounts, unopened: Unopened) -> Legs {
        for (place, lineage) in unopened {
            let slot = self.lineages.insert(*lineage);
            self.derived.add_lineage(&self.lineages, slot);
            self.count_account(slot, Counted::In);
            self.note_opened(slot);
            let leg = &mut path.legs[place];
            leg.slot = Some(slot);
            leg.key = self.lineages.get(slot).key.clone();
        }
        let mut legs = Legs::new();
        for leg in &path.legs {
            let (Some(slot), Some(amount)) = (leg.slot, amounts.get(leg.unit)) else { continue };
            let row = self.lineages.get_mut(slot);
            row.hold(amount);
            legs.push(Leg { lineage: slot, account: row.current.number, amount });
            self.derived.tally.held_by_legs[leg.unit as usize] += u128::from(amount);
        }
        legs
    }
}

/// What the receipt says besides what was granted.
fn extras(reserve: &Reserve, asked: &Amounts, granted: &Amounts) -> Option<Arc<Extras>> {
    if asked == granted && reserve.key.is_none() {
        return None;
    }
    let mut cut = *asked;
    for unit in Unit::ALL.into_iter().filter(|unit| asked.get(*unit) == granted.get(*unit)) {
        cut.set(unit, None);
    }
    Some(Arc::new(Extras { asked: cut, key: reserve.key.clone(), ..Extras::default() }))
}

pub(crate) fn no_plan() -> Refusal {
    invalid("plan", "no plan is published yet")
}

pub(crate) fn no_route(request: &Request) -> Refusal {
    invalid("route", format!("no route of the plan in force is for {:?}", request.route))
}

/// What is asked, with defaults, if the request makes sense under its route.
pub(crate) fn check_request(request: &Request, route: &Route) -> Result<Amounts, Refusal> {
    let amounts = check_form(request, route)?;
    match over_reservation_max(&amounts, route) {
        Some(unit) => {
            let problem = format!("{unit} is over the largest single reservation of route {:?}", route.name);
            Err(invalid("amounts", problem))
        }
        None => Ok(amounts),
    }
}

/// The first unit of which a request asks for more than its route lets a single one have.
pub(super) fn over_reservation_max(amounts: &Amounts, route: &Route) -> Option<Unit> {
    let over =
        |(unit, amount): &(Unit, u64)| route.reservation_max.get(*unit).is_some_and(|most| *amount > most);
    amounts.iter().find(over).map(|(unit, _)| unit)
}

/// What is asked, with defaults, if the request makes sense whatever its size.
pub(crate) fn check_form(request: &Request, route: &Route) -> Result<Amounts, Refusal> {
    let amounts = request.amounts_asked();
    if let Some((unit, _)) = amounts.iter().find(|(unit, amount)| *amount == 0 && *unit != Unit::Micros) {
        return Err(invalid("amounts", format!("{unit} must be at least 1")));
    }
    check_minimum(&request.minimum, &amounts)?;
    match request.hold_ttl_ms {
        Some(0) => Err(invalid("hold_ttl_ms", "must be at least 1")),
        Some(ttl) if ttl > route.hold_ttl_ms_max => Err(invalid(
            "hold_ttl_ms",
            format!("is over the route's maximum of {} ms", route.hold_ttl_ms_max),
        )),
        _ => Ok(amounts),
    }
}

/// A minimum is of a unit that is asked for, and not over it.
fn check_minimum(minimum: &Amounts, asked: &Amounts) -> Result<(), Refusal> {
    for (unit, least) in minimum.iter() {
        let problem = match asked.get(unit) {
            _ if least == 0 && unit != Unit::Micros => format!("{unit} must be at least 1"),
            None => format!("{unit} is not asked for"),
            Some(asked) if least > asked => format!("{unit} is over what is asked"),
            Some(_) => continue,
        };
        return Err(invalid("minimum", problem));
    }
    Ok(())
}

/// Whether a path has more limits than a reservation has legs.
pub(crate) fn check_legs(path: &Path) -> Result<(), Refusal> {
    if path.legs.len() > LEGS_MAX { Err(Refusal::Overloaded { ceiling: "LEGS_MAX" }) } else { Ok(()) }
}

/// No value, and the one that there is.
fn choices<T: Clone>(value: &Option<T>) -> impl Iterator<Item = Option<T>> {
    std::iter::once(None).chain(value.clone().map(Some))
}
