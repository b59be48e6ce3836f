/** Who answers for a failure (design.md, rules of the house). */
export type Fault = 'agent' | 'infra' | 'input' | 'attestation';

/**
 * Every code this project can refuse, fail or abort with, and whose fault it is. The list is closed: a new
 * way to fail gets a line here, a row in docs/codes.md (a test compares them) and a test that provokes it.
 */
export const CODES = {
  // documents (spec/01)
  json_not_canonical: 'input',
  json_too_large: 'input',
  json_too_deep: 'input',
  json_duplicate_key: 'input',
  json_malformed: 'input',
  value_not_encodable: 'input',
  f64be_invalid: 'input',
  schema_invalid: 'input',
  // plan (spec/01)
  plan_signature_invalid: 'input',
  signer_signature_invalid: 'input',
  signer_outside_window: 'input',
  plan_challenge_mismatch: 'input',
  plan_expired: 'input',
  plan_not_yet_valid: 'input',
  plan_inconsistent: 'input',
  // mechanism (spec/02)
  mechanism_invalid: 'input',
  mechanism_digest_mismatch: 'input',
  track_unknown: 'input',
  plan_contradicts_mechanism: 'input',
  // score record (spec/01): the record is not what the plan ordered, or not what its own reps say
  record_run_mismatch: 'attestation',
  record_plan_mismatch: 'attestation',
  record_mechanism_mismatch: 'attestation',
  record_cache_mismatch: 'attestation',
  record_toolchain_mismatch: 'attestation',
  record_runtime_mismatch: 'attestation',
  record_grant_mismatch: 'attestation',
  record_track_mismatch: 'attestation',
  record_r_mismatch: 'attestation',
  record_ranked_mismatch: 'attestation',
  record_tasks_mismatch: 'attestation',
  record_limits_mismatch: 'attestation',
  record_image_mismatch: 'attestation',
  record_reps_mismatch: 'attestation',
  record_container_repeated: 'attestation',
  record_probe_repeated: 'attestation',
  record_outcome_inconsistent: 'attestation',
  record_value_mismatch: 'attestation',
  record_value_not_publishable: 'attestation',
  record_verifier_mismatch: 'attestation',
  record_budget_exceeded: 'attestation',
  record_retries_exceeded: 'attestation',
  record_infra_inconsistent: 'attestation',
  record_completed_mismatch: 'attestation',
  record_verdict_mismatch: 'attestation',
  record_score_mismatch: 'attestation',
  record_final_mismatch: 'attestation',
  // agent package (spec/08)
  agent_package_refused: 'input',
  agent_manifest_invalid: 'input',
  // task cache (spec/05)
  task_toml_invalid: 'input',
  task_file_name: 'input',
  task_file_collision: 'input',
  task_file_symlink: 'input',
  task_file_hard_link: 'input',
  task_file_special: 'input',
  task_unknown: 'input',
  cache_unreadable: 'input',
  cache_task_missing: 'input',
  cache_file_missing: 'input',
  cache_file_extra: 'input',
  cache_file_changed: 'input',
  cache_sealed: 'input',
  cache_toolchain_missing: 'input',
  cache_toolchain_changed: 'input',
  // attestation (spec/04)
  quote_malformed: 'attestation',
  td_debug: 'attestation',
  event_log_invalid: 'attestation',
  event_missing: 'attestation',
  event_duplicate: 'attestation',
  event_order: 'attestation',
  event_digest_mismatch: 'attestation',
  event_log_replay_mismatch: 'attestation',
  key_provider_without_id: 'attestation',
  mr_config_id_mismatch: 'attestation',
  storage_fs_not_ext4: 'attestation',
  measurement_not_planned: 'attestation',
  key_provider_not_planned: 'attestation',
  vm_config_invalid: 'attestation',
  vm_shape_mismatch: 'attestation',
  report_data_mismatch: 'attestation',
  // guest agent (spec/04)
  simulator_variable_set: 'input',
  guest_agent_request_invalid: 'input',
  guest_agent_unreachable: 'infra',
  guest_agent_timeout: 'infra',
  guest_agent_error: 'infra',
  guest_agent_malformed: 'infra',
  // engine (spec/03)
  engine_unreachable: 'infra',
  engine_timeout: 'infra',
  engine_not_found: 'infra',
  engine_conflict: 'infra',
  engine_error: 'infra',
  container_not_as_asked: 'infra',
  cgroup_unreadable: 'infra',
  archive_refused: 'agent',
  archive_entry_invalid: 'input',
  // toolchain (spec/03)
  toolchain_unavailable: 'infra',
  toolchain_invalid: 'input',
  // baking tasks (spec/05)
  bake_output_exists: 'input',
  task_duplicate: 'input',
  task_incomplete: 'input',
  task_unsupported: 'input',
  image_declares_volume: 'input',
  image_label_reserved: 'input',
  image_architecture: 'input',
  image_too_large: 'input',
  image_build_failed: 'input',
  image_pull_failed: 'infra',
  base_unavailable: 'infra',
  command_failed: 'infra',
  // verification list (spec/04, spec/07)
  clock_invalid: 'infra',
  quote_trailing_bytes: 'attestation',
  quote_signature_invalid: 'attestation',
  collateral_malformed: 'attestation',
  collateral_not_yet_valid: 'attestation',
  collateral_expired: 'attestation',
  collateral_signature_invalid: 'attestation',
  certificate_malformed: 'attestation',
  certificate_name_mismatch: 'attestation',
  certificate_not_ca: 'attestation',
  certificate_signature_invalid: 'attestation',
  certificate_outside_validity: 'attestation',
  certificate_revoked: 'attestation',
  root_not_trusted: 'attestation',
  crl_malformed: 'attestation',
  crl_foreign: 'attestation',
  crl_not_yet_valid: 'attestation',
  crl_expired: 'attestation',
  seam_signer_invalid: 'attestation',
  qe_identity_mismatch: 'attestation',
  tcb_fmspc_mismatch: 'attestation',
  tcb_level_unmatched: 'attestation',
  tcb_revoked: 'attestation',
  tcb_status_refused: 'attestation',
  td_attributes_invalid: 'attestation',
  measurement_not_allowed: 'attestation',
  key_provider_not_allowed: 'attestation',
  result_ids_mismatch: 'attestation',
  plan_digest_mismatch: 'attestation',
  agent_hash_mismatch: 'attestation',
  image_digest_mismatch: 'attestation',
  scores_digest_mismatch: 'attestation',
  attested_measurement_mismatch: 'attestation',
  attested_report_data_mismatch: 'attestation',
  // trial (spec/02, spec/03): the run ends without a RESULT
  image_changed: 'infra',
  holder_not_running: 'infra',
  timer_late: 'infra',
  engine_broken: 'infra',
  container_interfered: 'infra',
  verifier_broken: 'infra',
  verifier_unserved: 'infra',
  tools_volume_mismatch: 'infra',
  run_aborted: 'infra',
  log_unwritable: 'infra',
  // preflight
  engine_below_floor: 'input',
  image_missing: 'input',
  image_unsupported: 'input',
  task_too_large: 'input',
  cache_digest_mismatch: 'input',
  toolchain_digest_mismatch: 'input',
  task_digest_mismatch: 'input',
  artifact_hash_mismatch: 'input',
  artifact_unavailable: 'infra',
  challenge_unreachable: 'infra',
  run_token_mismatch: 'input',
  sealed_cache_unsupported: 'input',
  network_unsupported: 'input',
  // emit
  record_inconsistent: 'infra',
  result_undelivered: 'infra',
  result_refused: 'input',
  // challenge (spec/07)
  run_unknown: 'input',
  run_token_invalid: 'input',
  run_closed: 'input',
  run_expired: 'input',
  result_too_large: 'input',
  result_conflict: 'input',
  rate_limited: 'input',
  route_unknown: 'input',
  method_not_allowed: 'input',
  request_malformed: 'input',
  server_busy: 'infra',
  verifier_backlog_full: 'infra',
  verifier_failed: 'infra',
  collateral_unavailable: 'infra',
  score_nonce_consumed: 'attestation',
  score_not_computable: 'attestation',
  selection_impossible: 'input',
  ledger_transition_refused: 'infra',
  ledger_unreadable: 'infra',
  // key release (spec/04)
  key_envelope_invalid: 'attestation',
  // command line
  usage: 'input',
  process_failed: 'infra',
  judgement_late: 'infra',
} as const satisfies Record<string, Fault>;

export type Code = keyof typeof CODES;

/** The one error class: a closed code, the fault that follows from it, and a sentence for a person. */
export class EvaluatorError extends Error {
  readonly code: Code;
  readonly fault: Fault;

  /** @param message what was wrong, where, and what to do; never a secret. */
  constructor(code: Code, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'EvaluatorError';
    this.code = code;
    this.fault = CODES[code];
  }
}

/** True when `error` is an EvaluatorError, with that code if one is named. */
export function isEvaluatorError(error: unknown, code?: Code): error is EvaluatorError {
  return error instanceof EvaluatorError && (code === undefined || error.code === code);
}
