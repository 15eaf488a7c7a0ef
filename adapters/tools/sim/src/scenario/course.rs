//! Time in a story: it passes in steps, and a condition is judged after each.

use std::time::Duration;

use quorate_core::time::Instant;

use super::Problem;
use super::command::{Condition, Expected};
use super::words::LONGEST;

/// How often a condition is looked at while nothing happens: there are some that time alone changes.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How often a story goes on to what happens next, at most: minutes among many servers, hours in a store, and some
/// seconds for the user who waits. Without a bound, a year of ticks of a millisecond would be a run without end.
const EVENTS_MAX: u32 = 1_000_000;

/// Where time passes.
pub(super) trait Course {
    /// The time.
    fn now(&self) -> Instant;

    /// Goes on to whatever happens next, or for this long if nothing does.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    fn go_on(&mut self, most: Duration) -> Result<(), Problem>;

    /// What else happens at once.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    fn at_once(&mut self) -> Result<(), Problem>;

    /// Whether something is the case, and what is.
    ///
    /// # Errors
    ///
    /// [`Problem::Impossible`] if that cannot be told here.
    fn look(&self, condition: &Condition) -> Result<(bool, String), Problem>;
}

/// How much may still happen in a story.
#[derive(Debug)]
pub(super) struct Time {
    most: u32,
    left: u32,
}

impl Default for Time {
    fn default() -> Self {
        Self::of(EVENTS_MAX)
    }
}

impl Time {
    /// Of so many things that happen.
    pub(super) const fn of(most: u32) -> Self {
        Self { most, left: most }
    }

    /// Time passes.
    pub(super) fn run(&mut self, course: &mut dyn Course, time: Duration) -> Result<(), Problem> {
        let end = end(course, time)?;
        while course.now() < end {
            let left = end - course.now();
            self.go_on(course, left)?;
        }
        course.at_once()
    }

    /// Time passes until something is the case.
    ///
    /// # Errors
    ///
    /// If it is not after this time.
    pub(super) fn until(
        &mut self,
        course: &mut dyn Course,
        expected: &Expected,
        limit: Duration,
    ) -> Result<(), Problem> {
        let end = end(course, limit)?;
        loop {
            match test(course, expected) {
                Err(Problem::Otherwise { .. }) if course.now() < end => {}
                done => return done,
            }
            let left = end - course.now();
            self.go_on(course, LOOK_EVERY.min(left))?;
        }
    }

    /// Time passes, and all the while something is the case.
    ///
    /// # Errors
    ///
    /// As soon as it is not.
    pub(super) fn hold(
        &mut self,
        course: &mut dyn Course,
        expected: &Expected,
        time: Duration,
    ) -> Result<(), Problem> {
        let end = end(course, time)?;
        while course.now() < end {
            test(course, expected)?;
            let left = end - course.now();
            self.go_on(course, LOOK_EVERY.min(left))?;
        }
        course.at_once()?;
        test(course, expected)
    }

    fn go_on(&mut self, course: &mut dyn Course, most: Duration) -> Result<(), Problem> {
        let Some(left) = self.left.checked_sub(1) else {
            let why = format!("more than {} things happen: that is no story any more", self.most);
            return Err(Problem::Impossible(why));
        };
        self.left = left;
        course.go_on(most)
    }
}

/// Tests a condition; an error says what is the case instead.
///
/// # Errors
///
/// [`Problem::Otherwise`] if it does not hold.
pub(super) fn test(course: &dyn Course, expected: &Expected) -> Result<(), Problem> {
    match course.look(&expected.condition)? {
        (true, _) => Ok(()),
        (false, found) => {
            Err(Problem::Otherwise { expected: format!("`{}`", expected.said), found })
        }
    }
}

fn end(course: &dyn Course, time: Duration) -> Result<Instant, Problem> {
    let end = course.now() + time;
    if end.since_origin() > LONGEST {
        return Err(Problem::Impossible("a story lasts a year at most".to_owned()));
    }
    Ok(end)
}
