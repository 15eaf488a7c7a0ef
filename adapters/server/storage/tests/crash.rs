//! Crashes at every single step of setting the epochs, with each write that was not synced surviving
//! or not (ZOOKEEPER-2307, -1653, -4269: servers that refused to start, or took a promise back).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::cell::RefCell;
use std::rc::Rc;

use crate::support::{Forgetful, State};
use quorate_core::durable::Epochs;
use quorate_core::zxid::Epoch;
use quorate_storage::{Log, LogError, OpenOptions};

const NONE: Epochs = Epochs { accepted_epoch: Epoch::ZERO, current_epoch: Epoch::ZERO };

fn open(disk: &Forgetful) -> Result<(Log<Forgetful>, Epochs), LogError> {
    let (log, found) = Log::open_on(disk.clone(), "/data", OpenOptions::default())?;
    let Epochs { accepted_epoch, current_epoch } = log.epochs();
    assert_eq!(found.durable.accepted_epoch, accepted_epoch);
    assert_eq!(found.durable.current_epoch, current_epoch);
    let epochs = log.epochs();
    Ok((log, epochs))
}

/// Sets both epochs to 5 and then to 6, noting what was said to be durable.
fn run(disk: &Forgetful, durable: &mut Epochs) -> Result<(), LogError> {
    let (mut log, found) = open(disk)?;
    check(&found, durable);
    *durable = found;
    for epoch in [5, 6] {
        log.write_accepted_epoch(Epoch(epoch))?;
        *durable = log.epochs();
        log.write_current_epoch(Epoch(epoch))?;
        *durable = log.epochs();
    }
    Ok(())
}

fn check(found: &Epochs, said: &Epochs) {
    assert!(found.accepted_epoch >= said.accepted_epoch, "{found:?} after {said:?} was durable");
    assert!(found.current_epoch >= said.current_epoch, "{found:?} after {said:?} was durable");
    assert!(found.current_epoch <= found.accepted_epoch, "{found:?}");
}

#[test]
fn every_crash_leaves_a_legal_state_and_no_epoch_goes_back() {
    let mut states = 0;
    for steps in 0.. {
        let disk = Forgetful::default();
        disk.0.borrow_mut().steps_left = steps;
        let mut said = NONE;
        let finished = run(&disk, &mut said).is_ok();
        for fate in 0.. {
            let Some(left) = disk.0.borrow().crash(fate) else { break };
            states += 1;
            let (_, found) = open(&Forgetful(Rc::new(RefCell::new(left.clone())))).unwrap();
            check(&found, &said);
            crash_again(&left, &said);
        }
        if finished {
            assert_eq!((said.accepted_epoch, said.current_epoch), (Epoch(6), Epoch(6)));
            assert!(steps > 20 && states > 50, "{states} states after {steps} steps");
            return;
        }
    }
}

/// What is left of a crash is itself run and crashed at every step.
fn crash_again(left: &State, said: &Epochs) {
    for steps in 0.. {
        let disk = Forgetful(Rc::new(RefCell::new(left.clone())));
        disk.0.borrow_mut().steps_left = steps;
        let mut said = *said;
        let finished = run_again(&disk, &mut said).is_ok();
        for fate in 0.. {
            let Some(left) = disk.0.borrow().crash(fate) else { break };
            check(&open(&Forgetful(Rc::new(RefCell::new(left)))).unwrap().1, &said);
        }
        if finished {
            return;
        }
    }
}

fn run_again(disk: &Forgetful, durable: &mut Epochs) -> Result<(), LogError> {
    let (mut log, found) = open(disk)?;
    check(&found, durable);
    *durable = found;
    log.write_accepted_epoch(Epoch(7))?;
    *durable = log.epochs();
    log.write_current_epoch(Epoch(7))?;
    *durable = log.epochs();
    Ok(())
}

/// A process that dies, unlike a machine, leaves unsynced names in the page cache. The next one reads
/// them; it must not speak of them before they would survive a power cut.
#[test]
fn what_a_killed_process_left_is_synced_before_it_is_believed() {
    for steps in 0.. {
        let disk = Forgetful::default();
        disk.0.borrow_mut().steps_left = steps;
        let finished = run(&disk, &mut { NONE }).is_ok();
        disk.0.borrow_mut().steps_left = usize::MAX;
        let (_, said) = open(&disk).unwrap();
        for fate in 0.. {
            let Some(left) = disk.0.borrow().crash(fate) else { break };
            check(&open(&Forgetful(Rc::new(RefCell::new(left)))).unwrap().1, &said);
        }
        if finished {
            return;
        }
    }
}

#[test]
fn after_a_failed_write_nothing_is_written_any_more() {
    for steps in 0..4 {
        let disk = Forgetful::default();
        disk.0.borrow_mut().steps_left = usize::MAX;
        let (mut log, found) = open(&disk).unwrap();
        disk.0.borrow_mut().steps_left = steps;
        assert!(matches!(log.write_accepted_epoch(Epoch(5)), Err(LogError::File(_))));
        assert_eq!(log.epochs(), found, "memory changes after the file");
        disk.0.borrow_mut().steps_left = usize::MAX;
        assert!(matches!(log.write_accepted_epoch(Epoch(5)), Err(LogError::Failed { .. })));
    }
}
