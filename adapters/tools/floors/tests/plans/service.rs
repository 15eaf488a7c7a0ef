//! The plan of `quorate-service`.

use quorate_floors::Place::{self, Floor};

pub(crate) const PLAN: &[(&str, Place)] = &[("zookeeper", Floor(1))];
