//! One behaviour on every runtime: the scenarios that each adapter's tests run.
//!
//! ```text
//!   an adapter's tests/conformance.rs:  suite!([MyRuntime], my_block_on)
//!                                          │  one #[test] for each scenario
//!                                          ▼
//!   sockets, elections, leadership, membership, replication, lengths, patience, syncing, outsiders, limits,
//!   impostors, ports, clients, client_limits,
//!   client_ports, operators, cancelling, outages, endings
//!                                          │  play on a Stage, with an Ensemble
//!                                          ▼
//!   the runtime, and servers on it
//! ```
//!
//! A scenario is a function over any [`Runtime`]: real sockets on loopback, real files, only the
//! public API. It awaits events; the only clock is the one that gives up. To add one: write the
//! function, and its name into [`suite!`](crate::suite).
//!
//! The servers replicate nothing, a [`Journal`], or one with a service in front of it, [`Echo`].
//! [`AnyRuntime`] puts servers of several runtimes into one ensemble; [`Gated`] holds up what a server
//! sends and receives, [`Deaf`] lets its ports accept nothing, [`Witnessed`] looks at a guard when a connection ends.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "tests: the name of a scenario says what it is, and whatever is wrong panics"
)]

#[cfg(feature = "testing-tls")]
mod answers;
mod any;
mod caller;
pub mod cancelling;
#[cfg(feature = "testing-tls")]
mod certificates;
pub mod client_limits;
pub mod client_ports;
#[cfg(feature = "testing-tls")]
pub mod client_tls;
pub mod clients;
mod deaf;
mod echo;
pub mod elections;
pub mod endings;
mod ensemble;
mod free_ports;
mod gated;
pub mod impostors;
mod journal;
pub mod leadership;
pub mod lengths;
pub mod limits;
mod line;
#[cfg(feature = "testing-tls")]
pub mod logins_in_tls;
pub mod membership;
pub mod operators;
pub mod outages;
pub mod outsiders;
pub mod patience;
pub mod ports;
#[cfg(feature = "testing-tls")]
pub mod refusals;
#[cfg(feature = "testing-tls")]
pub mod renewals;
pub mod replication;
#[cfg(feature = "testing-tls")]
pub mod rotations;
pub mod sasl;
pub mod sockets;
mod stage;
pub mod syncing;
#[cfg(feature = "testing-tls")]
pub mod tls;
mod witnessed;

pub use any::AnyRuntime;
#[cfg(feature = "testing-tls")]
pub use certificates::member_stores;
pub use deaf::{Deaf, Deafness, Ears};
pub use echo::{Answers, Echo, Lengths};
pub use ensemble::Ensemble;
pub use free_ports::free_ports;
pub use gated::{Gate, Gated};
pub use journal::{App, Brake, Journal};
pub use stage::{Stage, Task};
pub use witnessed::{Witness, Witnessed};

/// Makes a test of each scenario. Takes the runtimes that an ensemble's servers run on in turn, usually
/// one, and a function that runs a future on the first of them.
#[macro_export]
macro_rules! suite {
    ($runtimes:expr, $block_on:expr) => {
        $crate::suite! { $runtimes, $block_on;
            sockets: {
                a_connection_carries_bytes_both_ways_and_ends_one_way_at_a_time,
                a_listener_that_is_dropped_frees_its_port_at_once,
                an_accept_that_is_dropped_takes_no_connection,
                a_dial_that_is_dropped_gives_up,
                connections_are_tuned_on_both_sides,
            }
            elections: {
                three_servers_establish_a_leader,
                a_killed_leader_is_replaced_and_comes_back,
                leader_after_leader_is_killed,
                an_ensemble_that_stops_as_a_whole_starts_again,
                shutdown_says_goodbye_and_frees_everything,
                a_server_that_looks_for_a_leader_shuts_down,
                dropping_the_handle_shuts_down,
                observers_follow_and_do_not_count,
                a_leader_steps_down_when_asked,
                hosts_have_names_and_machines_have_interfaces,
                one_server_is_an_ensemble,
                changes_tell_the_story_and_do_not_hold_up_the_server,
                servers_elect_by_generation_and_remember_their_votes,
                the_two_kinds_of_election_keep_apart,
            }
            leadership: {
                leadership_is_the_leaders_and_each_leadership_has_a_greater_token,
                the_leadership_is_kept_until_guarded_work_has_ended,
                nobody_who_asks_the_leader_notices_a_transfer,
                a_leader_that_shuts_down_hands_its_leadership_over,
                a_leadership_that_cannot_be_handed_over_stays_and_why_is_said,
                whoever_is_wished_more_comes_to_lead,
                a_guard_that_is_leaked_keeps_its_server_from_nothing,
                a_shutdown_waits_for_a_transfer_that_is_under_way,
                a_leader_whose_voters_are_gone_loses_its_lease,
                a_leader_whose_machine_was_suspended_counts_on_no_lease,
                probes_are_answered_and_told_of_the_end,
                waits_for_the_leadership_that_are_dropped_hold_nothing,
            }
            membership: {
                an_ensemble_grows_and_shrinks_while_everybody_writes,
                a_server_moves_to_other_ports,
                a_membership_that_cannot_be_is_refused_and_says_why,
            }
            replication: {
                what_is_proposed_anywhere_is_applied_everywhere_in_one_order,
                a_refusal_of_the_application_comes_in_its_turn,
                a_single_server_replicates_to_itself_and_remembers,
                a_read_sees_what_was_acknowledged_elsewhere,
                without_a_quorum_nothing_happens_and_whoever_asks_is_told,
                a_request_that_is_under_way_survives_a_change_of_leader,
                what_was_acknowledged_survives_leaders_killed_under_load,
                snapshots_are_taken_and_old_files_go_while_the_server_runs,
                a_snapshot_that_is_damaged_is_passed_over_at_start,
                a_slow_application_holds_up_nobody_else,
            }
            lengths: {
                what_is_prepared_too_long_is_refused_and_costs_nobody_else,
                what_is_longer_than_the_default_is_replicated_where_the_limit_is_raised,
            }
            patience: {
                what_is_asked_before_anybody_leads_waits_for_a_leader,
                patience_ends_and_says_what_was_waited_for,
                a_killed_leader_costs_no_write_that_surely_did_not_happen,
            }
            syncing: {
                a_server_that_missed_nothing_gets_an_empty_diff,
                a_server_that_comes_back_gets_what_it_missed,
                what_a_server_missed_is_read_from_the_log_if_memory_has_it_no_more,
                a_tail_that_nobody_acknowledged_is_cut,
                a_fresh_server_gets_a_snapshot,
                a_server_that_does_not_answer_holds_up_nobody,
                an_observer_that_does_not_read_gets_it_all_when_it_does,
            }
            outages: {
                a_server_whose_disk_fails_gives_up_its_role_and_comes_back,
                a_server_that_has_taken_no_snapshot_applies_nothing_twice,
                a_server_that_waits_for_its_disk_shuts_down,
                a_leader_with_little_room_on_its_disk_lets_another_lead,
                a_disk_that_comes_back_with_less_ends_its_server,
            }
            outsiders: {
                introductions_that_cannot_be_read,
                frames_that_cannot_be_read_end_their_link_only,
                notifications_that_cannot_be_read_are_dropped,
                packets_that_cannot_be_read_end_their_link_only,
            }
            limits: {
                requests_that_never_end_share_a_bound,
                a_thousand_silent_connections_keep_nobody_out,
                an_introduction_has_a_deadline,
                one_address_has_a_share_of_the_connections,
            }
            sasl: {
                servers_log_in_to_each_other_and_go_on_without_their_leader,
                who_does_not_log_in_is_refused_at_both_ports_and_nothing_else_happens,
                an_ensemble_comes_to_logins_one_server_at_a_time,
                where_no_login_is_required_who_comes_without_or_fails_is_let_in,
                a_server_with_another_password_stays_out_until_it_has_the_right_one,
                logins_that_are_replaced_count_for_links_to_come,
            }
            impostors: {
                a_voters_id_that_is_claimed_from_elsewhere_ends_no_link,
                a_voters_id_that_is_claimed_from_its_own_machine_gives_way_to_it,
            }
            ports: {
                a_leader_whose_port_accepts_nothing_is_replaced_and_not_elected_until_it_does,
                a_socket_that_is_broken_is_opened_anew_and_the_leader_stays,
                an_election_port_that_accepts_nothing_costs_no_leadership,
                a_port_for_clients_that_accepts_nothing_costs_no_leadership,
                no_more_clients_wait_to_be_accepted_than_an_operator_says,
            }
            clients: {
                what_a_client_asks_a_follower_is_answered_in_order,
                a_killed_leader_costs_clients_their_connections_and_new_ones_work,
                a_server_that_ends_closes_its_clients,
                clients_that_are_there_are_served_until_they_leave_a_server_that_ends,
                a_client_that_is_paused_is_not_read,
                a_client_that_does_not_read_costs_only_itself,
                half_a_frame_holds_nothing_up,
                a_client_that_says_nothing_is_closed,
                a_service_hears_when_it_sees_how_long_a_first_frame_is,
                what_is_no_frame_is_answered_and_closed,
                clients_of_one_address_have_a_share_of_the_connections,
                what_services_tell_each_other_arrives,
                without_a_service_nothing_listens_for_clients,
                what_a_service_has_kept_is_told_at_the_next_start_and_damage_stops_nothing,
            }
            client_limits: {
                long_frames_are_sent_in_turns_and_whoever_waits_is_not_closed,
                all_clients_have_a_limit_together_and_who_is_too_many_is_reset,
                any_number_of_clients_may_come_where_no_limit_is_set,
                silent_clients_are_probed_only_where_that_is_wanted,
            }
            client_ports: {
                the_port_for_clients_moves_with_the_membership_and_connections_stay,
                an_address_for_clients_that_cannot_be_had_is_tried_again_and_costs_nothing,
                a_port_for_clients_moves_from_one_interface_to_all,
            }
            operators: {
                a_port_in_use_is_named,
                a_port_that_is_freed_in_time_is_taken,
                a_data_directory_that_cannot_be_used_is_named,
                a_disk_that_is_lost_ends_the_server_and_is_named,
                a_configuration_that_cannot_work_is_named,
            }
            cancelling: {
                a_start_that_is_dropped_leaves_nothing_behind,
                requests_that_are_dropped_free_their_place,
                readers_that_are_dropped_miss_nothing,
                an_end_that_nobody_waits_for_comes_all_the_same,
            }
            endings: {
                the_end_of_a_server_is_told_to_those_who_wait,
                a_handle_kept_after_the_end_says_so,
                a_panic_of_the_application_ends_its_server_only,
                a_panic_of_the_application_on_its_thread_ends_its_server_only,
                a_panic_of_a_reader_is_its_own,
                a_stuck_application_does_not_keep_its_server_from_ending,
                guards_hear_of_a_fault_before_a_peer_sees_a_connection_end,
                guards_hear_of_a_panic_before_a_peer_sees_a_connection_end,
                guards_hear_of_a_peer_that_does_not_read_before_its_connection_ends,
            }
        }
    };
    ($runtimes:expr, $block_on:expr; $($room:ident: { $($scenario:ident,)* })*) => {
        $(mod $room {
            use super::*;
            $(
                #[test]
                fn $scenario() {
                    let stage = $crate::testing::Stage::new($runtimes);
                    ($block_on)($crate::testing::$room::$scenario(stage));
                }
            )*
        })*
    };
}

/// The same of the scenarios with TLS.
#[cfg(feature = "testing-tls")]
#[macro_export]
macro_rules! tls_suite {
    ($runtimes:expr, $block_on:expr) => {
        $crate::suite! { $runtimes, $block_on;
            tls: {
                servers_form_with_tls_and_go_on_without_their_leader,
                a_server_that_does_not_read_with_tls_gets_it_all_when_it_does,
                a_member_whose_bytes_come_one_at_a_time_is_let_in,
                a_server_with_a_wrong_certificate_stays_out_until_it_has_another,
                an_ensemble_comes_to_tls_one_server_at_a_time,
                a_certificate_that_is_replaced_is_shown_to_whoever_comes_then,
                a_plain_server_knows_tls_when_it_sees_it,
            }
            refusals: {
                who_may_not_is_refused_at_both_ports_and_nothing_else_happens,
                who_answers_a_dial_and_may_not_is_refused_on_both_planes,
            }
            client_tls: {
                clients_come_through_tls_or_without_as_each_port_allows,
                a_client_that_may_not_is_refused_before_a_word_of_it_is_read,
                a_port_without_tls_knows_it_when_it_sees_it,
                handshakes_that_do_not_go_on_keep_nobody_out,
                a_certificate_that_is_replaced_is_shown_to_clients_who_come_then,
                a_client_whose_certificate_is_taken_back_is_out_when_an_operator_asks,
                a_port_for_tls_that_is_in_use_is_named,
            }
            renewals: {
                links_whose_keys_are_worn_are_made_anew_one_at_a_time_while_writes_go_on,
                a_learner_makes_its_worn_link_anew_where_its_leader_does_not,
                an_authority_is_replaced_in_three_steps_while_writes_go_on,
                a_member_whose_certificate_is_taken_back_is_out_when_the_list_is_there,
                a_link_whose_certificate_ends_is_told_and_closed_only_if_that_is_wanted,
                an_ensemble_comes_to_tls_and_goes_back_and_no_write_is_lost,
                a_thousand_half_handshakes_of_strangers_keep_no_member_out,
            }
            logins_in_tls: {
                servers_log_in_within_tls_and_go_on_without_their_leader,
                within_tls_who_lacks_a_login_or_a_certificate_is_refused_on_both_planes,
                an_ensemble_with_logins_comes_to_tls_one_server_at_a_time,
            }
            rotations: {
                stores_are_read_again_however_they_are_replaced,
                a_password_that_comes_behind_its_store_is_waited_for,
                stores_are_looked_at_when_an_operator_asks,
            }
        }
    };
}
