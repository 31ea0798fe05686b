/**
 * Who has to act on the error of a request, as one table over error codes and the classes of upstream failures.
 */
import type { FailureClass } from "./FailureClass.ts"
import type { ErrorCode } from "./GatewayError.ts"

/**
 * `caller`: the request or its key. `gateway`: the gateway, its load or its configuration. `upstream`: the model server or the way
 * to it. `account`: the upstream's account, its limits or the lack of one.
 */
export const faultNames = ["caller", "gateway", "upstream", "account"] as const
export type Fault = typeof faultNames[number]

const faults: Readonly<Record<ErrorCode | FailureClass, Fault>> = {
  invalid_request: "caller",
  model_not_found: "caller",
  context_length_exceeded: "caller",
  content_filter: "caller",
  unknown_reference: "caller",
  previous_response_not_found: "caller",
  invalid_stream_id: "caller",
  websocket_stream_limit_reached: "caller",
  websocket_connection_limit_reached: "gateway",
  upgrade_required: "caller",
  authentication_failed: "caller",
  model_not_allowed: "caller",
  model_not_priced: "caller",
  vendor_login_required: "caller",
  role_not_allowed: "caller",
  not_found: "caller",
  method_not_allowed: "caller",
  request_timeout: "caller",
  locked: "caller",
  conflict: "caller",
  request_too_large: "caller",
  unsupported_media_type: "caller",
  rate_limit_exceeded: "caller",
  withdrawn: "caller",
  prompt_too_long: "caller",
  caller_mistake: "caller",
  internal_error: "gateway",
  embeddings_unavailable: "gateway",
  config_not_saved: "gateway",
  store_unavailable: "gateway",
  shutting_down: "gateway",
  endpoint_missing: "gateway",
  no_account_available: "account",
  upstream_rate_limited: "account",
  login_refused: "account",
  account_suspended: "account",
  quota_exhausted: "account",
  rate_limited: "account",
  token_refused: "account",
  key_missing: "account",
  account_busy: "account",
  forbidden: "account",
  proxy_failed: "account",
  tool_choice_violation: "upstream",
  upstream_error: "upstream",
  upstream_timeout: "upstream",
  upstream_empty_output: "upstream",
  overloaded: "upstream",
  session_gone: "upstream",
  model_unavailable: "upstream",
  timed_out: "upstream",
  empty_reply: "upstream",
  unreachable: "upstream",
  cut_off: "upstream",
  disagreement: "upstream",
  overdue: "upstream",
  exhausted: "upstream",
  upstream_trouble: "upstream"
}

const isKnown = (name: string): name is keyof typeof faults => Object.hasOwn(faults, name)

const faultIn = (name: string | undefined): Fault | undefined =>
  name !== undefined && isKnown(name) ? faults[name] : undefined

/** The header of an error's response that says who has to act. */
export const faultHeader = "x-gateway-fault"

/** A failed request. */
export interface FailedRequest {
  /** The error's code. */
  readonly error: string
  /** The class of the failure of the last attempt, which is more specific than the code. */
  readonly cause?: string | undefined
  /** The caller's own token took the place of an account. */
  readonly direct?: boolean
  /** The request was admitted to the queue for an account. */
  readonly admitted?: boolean
}

/** Who has to act; `undefined` for an unknown code. */
export const faultOf = ({ admitted, cause, direct, error }: FailedRequest): Fault | undefined => {
  // The queue refuses with the code of a key's limits.
  if (error === "rate_limit_exceeded" && admitted === true && cause === undefined) return "gateway"
  const fault = faultIn(cause) ?? faultIn(error)
  return direct === true && fault === "account" ? "caller" : fault
}
