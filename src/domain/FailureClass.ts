/**
 * The classes of upstream failures, of which `failureRules.ts` has the rules.
 */

/** The classes of failures. */
export type FailureClass =
  | "shutting_down"
  | "withdrawn"
  | "login_refused"
  | "account_suspended"
  | "quota_exhausted"
  | "rate_limited"
  | "token_refused"
  | "key_missing"
  | "account_busy"
  | "overloaded"
  | "prompt_too_long"
  | "session_gone"
  | "forbidden"
  | "request_too_large"
  | "endpoint_missing"
  | "model_unavailable"
  | "caller_mistake"
  | "timed_out"
  | "empty_reply"
  | "proxy_failed"
  | "unreachable"
  | "cut_off"
  | "disagreement"
  | "overdue"
  | "exhausted"
  | "upstream_trouble"
