//! The store's suite: every case runs on SQLite and on a real PostgreSQL.
//!
//! Invariant: a case does not depend on the database; failures that only one of the two can have are in `crash` and
//! `outage`.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

#[path = "suite/accept.rs"]
mod accept;
#[path = "suite/alone.rs"]
mod alone;
#[path = "suite/applied.rs"]
mod applied;
#[path = "suite/approvals.rs"]
mod approvals;
#[path = "suite/artifacts.rs"]
mod artifacts;
#[path = "suite/audit.rs"]
mod audit;
#[path = "suite/batches.rs"]
mod batches;
#[path = "suite/copies.rs"]
mod copies;
#[path = "suite/crash.rs"]
mod crash;
#[path = "suite/damage.rs"]
mod damage;
#[path = "suite/deliveries.rs"]
mod deliveries;
#[path = "suite/filters.rs"]
mod filters;
#[path = "suite/history.rs"]
mod history;
#[path = "suite/lanes.rs"]
mod lanes;
#[path = "suite/model.rs"]
mod model;
#[path = "suite/opening.rs"]
mod opening;
#[path = "suite/outage.rs"]
mod outage;
#[path = "suite/proxy.rs"]
mod proxy;
#[path = "suite/rates.rs"]
mod rates;
#[path = "suite/reads.rs"]
mod reads;
#[path = "suite/records.rs"]
mod records;
#[path = "suite/retention.rs"]
mod retention;
#[path = "suite/search.rs"]
mod search;
#[path = "suite/senders.rs"]
mod senders;
#[path = "suite/spend.rs"]
mod spend;
#[path = "suite/steering.rs"]
mod steering;
#[path = "suite/storage.rs"]
mod storage;
#[path = "suite/support.rs"]
mod support;
#[path = "suite/texts.rs"]
mod texts;
#[path = "suite/turns.rs"]
mod turns;

macro_rules! suite {
    ($($module:ident: $($case:ident),* ;)*) => {
        mod sqlite {
            $(mod $module { $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    crate::$module::$case(crate::support::Ground::sqlite()).await;
                }
            )* })*
        }
        mod postgres {
            $(mod $module { $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    crate::$module::$case(crate::support::Ground::postgres()).await;
                }
            )* })*
        }
    };
}

suite! {
    accept:
        a_new_event_starts_its_run_at_once,
        the_same_event_again_gives_the_first_run,
        the_same_key_with_another_body_is_a_conflict,
        a_key_belongs_to_its_workspace_and_source,
        an_unbound_event_is_kept_without_a_run,
        an_event_without_a_conversation_never_waits,
        counters_and_items_follow_the_events,
        one_event_from_many_senders_at_once_is_one_run,
        a_grant_is_stored_once,
        a_plain_run_takes_eight_rows_at_most;
    lanes:
        a_serial_run_starts_with_its_predecessors_terminal,
        a_run_starts_after_the_end_of_its_predecessor,
        a_repeated_terminal_returns_the_run_that_it_started,
        results_without_a_terminal_start_nothing,
        a_full_lane_writes_nothing_and_a_retry_is_a_first_try,
        parallel_runs_never_wait_and_are_not_waited_for,
        replace_ends_the_queued_and_marks_the_running,
        replace_starts_at_once_when_nothing_runs,
        a_replacing_run_waits_for_parallel_ones_before_it_only,
        a_thousand_conversations_do_not_wait_for_each_other;
    senders:
        a_limited_sender_joins_no_conversation_of_another,
        event_ids_of_a_limited_sender_are_its_own,
        an_event_from_before_is_still_a_repetition,
        a_run_replaces_those_of_its_own_agent;
    applied:
        everything_of_a_batch_of_results_is_kept,
        state_is_versioned_and_removed,
        reserved_numbers_and_effects_only_grow,
        a_terminal_keeps_error_and_usage,
        late_output_changes_nothing,
        state_is_written_under_conditions,
        diagnostics_are_kept_even_after_the_terminal,
        a_number_is_never_stored_twice,
        of_many_terminals_at_once_one_wins,
        a_grant_is_frozen_once;
    turns:
        cancel_ends_a_queued_run_and_marks_a_running_one,
        cancelling_what_blocks_a_lane_starts_the_next,
        a_restarted_run_has_a_new_attempt_and_new_numbers,
        a_run_is_not_restarted_when_it_must_not_be,
        deliveries_are_claimed_and_settled,
        a_repeated_claim_or_settlement_has_no_second_effect,
        a_repeated_command_changes_nothing_the_second_time;
    deliveries:
        an_attempt_that_failed_keeps_its_time,
        a_retry_goes_before_later_deliveries_with_fresh_time,
        a_delivery_is_retried_once_per_failure,
        what_is_discarded_is_not_sent_and_keeps_nothing_waiting,
        deliveries_are_paged_and_filtered,
        lanes_with_work_are_found_once_each;
    rates:
        runs_are_counted_once_when_they_end,
        calls_of_models_are_counted_with_what_is_known_of_them,
        what_was_counted_long_ago_is_let_go_of;
    reads:
        runs_are_narrowed_in_every_way,
        state_of_all_owners_is_listed_in_order,
        a_page_of_results_starts_at_any_number,
        state_is_listed_by_prefix_within_its_bounds,
        runs_are_paged_and_filtered,
        conversations_and_events_are_paged,
        nobody_sees_another_workspace;
    history:
        a_transcript_is_paged_both_ways,
        a_page_ends_where_its_bytes_do,
        answers_stand_with_their_event,
        a_thread_is_paged_by_itself,
        items_of_some_roles_fill_a_page,
        nothing_is_shown_from_an_event_on,
        a_position_is_read_as_it_was_written;
    filters:
        filters_leave_out_what_they_say,
        another_workspace_is_never_seen,
        removed_items_are_gone_from_the_index;
    search:
        a_sentence_among_a_hundred_thousand_is_found_first,
        words_are_found_in_whatever_way_they_are_written,
        an_item_is_found_from_its_commit_on,
        many_who_index_at_once_index_each_item_once,
        odd_texts_and_queries_do_no_harm,
        parts_of_a_query_come_after_all_of_it_the_rarest_first,
        a_hit_shows_where_it_matches,
        the_index_finds_what_a_scan_finds,
        an_index_of_a_long_transcript_is_asked_from_its_newest_end;
    texts:
        any_character_comes_back,
        u0000_is_replaced_in_prose_and_refused_in_names,
        very_long_texts_come_back;
    approvals:
        an_action_that_is_allowed_beforehand_goes_out_with_its_request,
        a_question_waits_and_acts_once_when_it_is_allowed,
        of_many_answers_at_once_one_is_taken,
        a_denied_question_does_nothing,
        an_answer_needs_the_nonce_and_the_workspace,
        questions_expire_in_order_and_cannot_be_answered_then,
        a_call_is_over_with_its_run_and_a_result_is_not,
        cancelling_a_run_gives_up_what_it_asked,
        a_call_that_is_given_up_takes_its_question_back,
        a_run_asks_only_so_much_at_once,
        a_thousand_questions_are_paged_and_filtered,
        a_call_that_asked_is_open_until_it_has_its_one_record;
    spend:
        a_call_that_nobody_saw_the_end_of_is_charged_with_what_was_reserved,
        what_is_postponed_goes_with_the_next_command_and_at_the_latest_with_the_close,
        calls_are_summed_per_run_and_per_day_and_unknown_is_not_nothing;
    steering:
        a_message_goes_to_the_run_that_is_under_way,
        what_was_never_pulled_becomes_a_run_at_the_end,
        only_so_many_messages_wait_for_a_run,
        what_does_not_fit_the_run_waits_its_turn,
        a_run_takes_messages_once_its_grant_says_so,
        a_cancelled_run_takes_no_more_and_hands_back_what_waits,
        a_replacing_event_ends_what_waits_for_the_run,
        a_new_attempt_pulls_everything_anew,
        answers_stand_with_the_message_that_was_pulled_last,
        a_pull_hands_out_only_so_much_but_always_something,
        many_messages_at_once_reach_one_run_each_once;
    batches:
        one_bad_command_fails_alone,
        a_closed_store_has_kept_what_was_sent;
    audit:
        records_come_back_newest_first_and_unfolded,
        pages_of_records_join_without_a_gap,
        records_are_found_by_run_method_code_and_denial,
        a_rare_record_is_found_over_several_pages,
        a_write_keeps_its_record_with_its_outcome,
        whatever_a_caller_claims_is_kept;
    artifacts:
        artifacts_are_listed_by_age,
        an_artifact_comes_back_and_is_its_workspaces_own,
        a_run_creates_artifacts_only_while_it_is_under_way,
        artifacts_come_with_results_and_with_events,
        an_upload_belongs_to_the_event_that_names_it,
        an_expired_artifact_is_gone_before_it_is_removed,
        bytes_are_referred_to_until_the_last_artifact_is_removed;
    storage:
        a_blob_is_kept_replaced_and_removed,
        only_the_run_under_way_writes,
        names_are_listed_by_any_prefix,
        quotas_hold_for_owner_and_workspace,
        every_write_keeps_its_record,
        state_has_a_quota_through_the_proxy,
        state_has_a_quota_in_results,
        sums_agree_with_the_rows_after_random_writes;
    records:
        an_id_belongs_to_its_owner,
        a_record_without_a_source_is_adopted_by_its_first_change;
    retention:
        the_body_of_an_old_event_goes_and_its_key_stays,
        an_open_run_keeps_what_it_needs,
        the_ledger_of_an_ended_run_goes_in_small_steps,
        old_items_go_from_the_transcript_and_from_search,
        old_audit_records_go,
        expired_state_gives_its_space_back,
        sizes_tell_what_is_kept;
    copies:
        a_copy_has_every_table_with_every_column,
        any_row_survives_a_copy_to_either_database,
        a_host_goes_on_with_a_copy,
        a_copy_is_one_moment_of_a_database_that_is_written_to,
        a_database_that_is_not_empty_is_not_loaded,
        a_load_that_is_not_finished_leaves_no_database,
        a_database_whose_facts_were_moved_is_not_opened;
    opening:
        every_open_is_a_new_epoch_with_the_same_key,
        a_newer_schema_is_refused_and_left_alone,
        a_database_of_an_unreleased_build_is_refused_and_left_alone;
    model:
        random_commands_agree_with_the_model;
}
